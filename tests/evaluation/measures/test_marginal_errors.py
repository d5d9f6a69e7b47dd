"""Marginal errors: identity, hand-worked distances, what shuffling keeps and destroys."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.measures.marginals import marginal_error
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Schema,
)

SCHEMA = Schema(
    columns=(
        Identifier(name="id"),
        Categorical(name="colour", values=("red", "green", "blue"), missing=True),
        Integer(name="count", lower=0, upper=100),
        Continuous(name="x", lower=-5, upper=5, decimals=2, missing=True),
        Datetime(name="day", lower="2020-01-01", upper="2020-12-30", missing=True),
        Boolean(name="flag"),
    ),
    target="flag",
)


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows).clip(-5, 5).round(2)
    x[rng.random(rows) < 0.1] = np.nan
    days = pd.Series(
        pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(365, size=rows), "D")
    )
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "colour": rng.choice(["red", "green", "blue", None], rows),
            "count": np.where(rng.random(rows) < 0.9, 0, rng.integers(101, size=rows)),
            "x": x,
            "day": days.where(rng.random(rows) < 0.9),
            "flag": np.nan_to_num(x) > 0,
        }
    )


def pair(first: list[str], second: list[str]) -> tuple[Schema, pd.DataFrame]:
    schema = Schema(
        columns=(
            Categorical(name="a", values=("p", "q")),
            Categorical(name="b", values=("p", "q")),
        )
    )
    return schema, pd.DataFrame({"a": first, "b": second})


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 60), seed=st.integers(0, 2**32), order=st.integers(1, 5))
def test_a_table_is_at_distance_zero_of_itself_in_any_order(rows, seed, order):
    real = table(rows, seed)
    found = marginal_error(real, real.sample(frac=1, random_state=1), SCHEMA, order)
    assert (found.mean, found.worst) == (0, 0)


def test_distance_by_hand():
    schema, real = pair(["p", "p", "q", "q"], ["p", "q", "p", "q"])
    _, made = pair(["p", "p", "p", "q"], ["p", "p", "p", "q"])
    # a: (1/2, 1/2) against (3/4, 1/4), and b alike; jointly 1/4 each against (3/4, 0, 0, 1/4).
    assert marginal_error(real, made, schema, 1).mean == 0.25
    assert marginal_error(real, made, schema, 2).mean == 0.5


def test_disjoint_tables_are_at_distance_one():
    schema, real = pair(["p"] * 3, ["p"] * 3)
    _, made = pair(["q"] * 5, ["p"] * 5)
    found = marginal_error(real, made, schema, 1)
    assert (found.worst, found.worst_columns, found.mean) == (1, ("a",), 0.5)


def test_shuffling_columns_apart_keeps_every_column_and_loses_the_pairs():
    real = table(3000)
    rng = np.random.default_rng(5)
    shuffled = real.apply(lambda column: rng.permutation(column.to_numpy()))
    assert marginal_error(real, shuffled, SCHEMA, 1).worst == 0
    pairs = marginal_error(real, shuffled, SCHEMA, 2)
    # flag is x > 0, so half of x's mass lies in cells that independence would share out.
    assert set(pairs.worst_columns) == {"x", "flag"}
    assert pairs.worst > 0.4
    assert marginal_error(real, shuffled, SCHEMA, 3).worst > pairs.worst


def test_all_sets_of_columns_are_compared_or_the_limit():
    real = table(50)
    for order in (1, 2, 3):
        count = len(list(itertools.combinations(range(5), order)))
        assert marginal_error(real, real, SCHEMA, order).sets == count
    assert marginal_error(real, real, SCHEMA, 2, limit=4, seed=1).sets == 4
    first, again = (marginal_error(real, table(50, 1), SCHEMA, 2, limit=4, seed=3) for _ in "ab")
    assert first == again


def test_a_spike_and_a_gap_are_cells_of_their_own():
    schema = Schema(columns=(Integer(name="gain", lower=0, upper=9, missing=True),))
    real = pd.DataFrame({"gain": [0.0] * 90 + list(range(1, 10)) + [np.nan]})
    near = real.replace({"gain": {0.0: 1.0}})
    assert marginal_error(real, near, schema, 1).mean == pytest.approx(0.9)
    gap = real.replace({"gain": {0.0: np.nan}})
    assert marginal_error(real, gap, schema, 1).mean == pytest.approx(0.9)


def test_bins_have_equal_mass_so_a_moved_tenth_shows():
    schema = Schema(columns=(Continuous(name="x", lower=0, upper=1, decimals=3),))
    real = pd.DataFrame({"x": np.arange(1000) / 1000})
    made = real.assign(x=np.where(real["x"] < 0.1, 0.95, real["x"]))
    assert marginal_error(real, made, schema, 1).mean == pytest.approx(0.1)


def test_all_missing_and_constant_columns_are_compared():
    schema = Schema(
        columns=(
            Continuous(name="gap", lower=0, upper=1, decimals=1, missing=True),
            Integer(name="one", lower=1, upper=1),
        )
    )
    real = pd.DataFrame({"gap": [np.nan] * 4, "one": [1] * 4})
    made = pd.DataFrame({"gap": [np.nan, 0.5], "one": [1, 1]})
    assert marginal_error(real, made, schema, 1).worst == 0.5
    assert marginal_error(real, made, schema, 2).worst == 0.5


def test_a_marginal_of_very_many_cells_equals_the_small_one():
    rng = np.random.default_rng(0)
    many = tuple(f"v{i}" for i in range(3000))
    wide = Schema(columns=tuple(Categorical(name=n, values=many) for n in "ab"))
    narrow = Schema(columns=tuple(Categorical(name=n, values=many[:5]) for n in "ab"))
    real, made = (pd.DataFrame(rng.choice(many[:5], (200, 2)), columns=["a", "b"]) for _ in "ab")
    found = marginal_error(real, made, wide, 2).mean
    assert found == pytest.approx(marginal_error(real, made, narrow, 2).mean)


def test_orders_and_tables_that_do_not_fit_are_refused():
    real = table(5)
    for order in (0, 6):
        with pytest.raises(ConfigError, match="order"):
            marginal_error(real, real, SCHEMA, order)
    with pytest.raises(DataError, match="synthetic"):
        marginal_error(real, real.drop(columns="x"), SCHEMA, 1)
    with pytest.raises(DataError, match="real"):
        marginal_error(real.iloc[:0], real, SCHEMA, 1)
