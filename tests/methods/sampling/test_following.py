"""Columns that follow from others: conditions, counts and gaps of a fitted model."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedsynth.errors import ConfigError
from fedsynth.methods.marginal.mst import MST
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, Identifier, Integer, Schema
from fedsynth.schema.checking import check

COLUMNS = (
    Identifier(name="id"),
    Integer(name="gross", lower=0, upper=1_200, step=100),
    Integer(name="net", lower=0, upper=1_000, step=100),
    Integer(name="tax", lower=0, upper=200, step=100),
    Categorical(name="kind", values=("a", "b")),
    Categorical(name="again", values=("a", "b")),
)
CONSTRAINTS = (
    {"equal": ["kind", "again"]},
    {"sum": {"total": "gross", "parts": ["net", "tax"]}},
)
SCHEMA = Schema(columns=COLUMNS, target="kind", constraints=CONSTRAINTS)
PLAIN = Schema(columns=[c for c in COLUMNS if c.name not in ("gross", "again")], target="kind")


def table(rows=400):
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], rows)
    net = np.where(kind == "a", 2, 8) + rng.integers(0, 3, rows)
    cells = {"id": np.arange(rows), "net": 100 * net, "tax": 100 * (net > 4), "kind": kind}
    return pd.DataFrame(cells).assign(gross=lambda d: d["net"] + d["tax"], again=kind)


@pytest.fixture(scope="module")
def fitted():
    return MST(SCHEMA).fit(table(), Budget(epsilon=math.inf, trust="central"))


def test_what_follows_is_never_asked_about():
    budget = Budget(epsilon=1.0, curious=1)
    plans = [MST(schema).plan(budget, 3) for schema in (SCHEMA, PLAIN, SCHEMA.whole)]
    releases = [[(one.terms, one.count) for one in plan.releases] for plan in plans]
    assert releases[0] == releases[1] != releases[2]


def test_every_row_is_whole_and_conditions_on_what_follows_hold(fitted):
    rows = fitted.sample(200, seed=1)
    assert check(rows, SCHEMA) == []
    assert (fitted.sample(40, where={"again": "b"}, seed=1)["kind"] == "b").all()
    dear = fitted.sample(40, where={"gross": (900, 1_100), "again": "b"}, seed=1)
    assert check(dear, SCHEMA) == [] and len(dear) == 40
    assert dear["gross"].between(900, 1_100).all() and dear["again"].eq("b").all()
    pd.testing.assert_frame_equal(
        dear, fitted.sample(40, where={"gross": (900, 1_100), "again": "b"}, seed=1)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"where": {"kind": "a", "again": "a"}}, "equals it: give one"),
        ({"where": {"gross": 150}}, "no value 150"),
        ({"where": {"gross": 100}}, "0 of 5 rows after .* hardly a row .* gross"),
        ({"where": {"gross": 900}, "proportions": {"a": 1.0}}, "'gross' is the sum of"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(fitted, arguments, said, monkeypatch):
    monkeypatch.setattr("fedsynth.methods.sampling.following._LEAST_DRAWS", 2_000)
    with pytest.raises(ConfigError, match=said):
        fitted.sample(5, seed=0, **arguments)


def test_counts_of_an_equal_column_are_those_of_what_is_modelled(fitted):
    named, known = fitted.marginal(["again", "tax"]), fitted.marginal(["kind", "tax"])
    pd.testing.assert_frame_equal(named.rename(columns={"again": "kind"}), known)
    with pytest.raises(ConfigError, match="'gross' is the sum of 'net', 'tax', and is not counted"):
        fitted.marginal("gross")
    with pytest.raises(ConfigError, match="two of the columns are equal"):
        fitted.marginal(["kind", "again"])


def test_gaps_are_filled_from_what_follows_and_totals_hold(fitted):
    whole = table(60).astype(object)
    gaps = whole.copy()
    gaps.loc[:19, ["net", "kind"]] = None
    gaps.loc[20:39, ["net", "tax", "again"]] = None
    gaps.loc[40:49, ["gross", "kind", "again"]] = None
    gaps.loc[50:, ["gross", "net"]] = None
    filled = fitted.impute(gaps, seed=0)
    assert check(filled, SCHEMA) == []
    known = gaps.notna().to_numpy()
    assert (filled.to_numpy(object)[known] == whole.to_numpy()[known]).all()
    # One unknown part, and one of two equal cells, are no guess.
    told = filled.loc[:19].astype(whole.dtypes)
    pd.testing.assert_frame_equal(told, whole.loc[:19])
    assert check(fitted.impute(whole.drop(columns=["gross", "again"]), seed=0), SCHEMA) == []
