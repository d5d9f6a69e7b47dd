"""Rows that break constraints change where they are broken, and nowhere else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.conforming import conform
from fedsynth.errors import ConfigError
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.mending import Rows, Rules, mend
from fedsynth.schema import Categorical, Continuous, Integer, Schema

COLUMNS = (
    Integer(name="start", lower=0, upper=60),
    Integer(name="stop", lower=0, upper=60, missing=True),
    Categorical(name="role", values=("husband", "wife", "child"), missing=True),
    Categorical(name="sex", values=("f", "m")),
    Continuous(name="dose", lower=0, upper=9, decimals=2, missing=True),
    Categorical(name="ill", values=("no", "yes")),
)
CONSTRAINTS = (
    {"ordered": ["start", "stop"]},
    {"never": {"role": "husband", "sex": "f"}},
    {"never": {"role": "wife", "sex": "m"}},
    {"never": {"ill": "yes", "dose": {"to": 1}}},
)
TIED = [["start", "stop"], ["role", "sex"], ["dose", "ill"]]


def draw(labels, rows, rng):
    """The ill begin late, so that most of them stop too soon, and rarely say when they stop."""
    ill = labels == 1
    gone = {"stop": np.where(ill, 0.6, 0.1), "role": 0.2, "dose": np.where(ill, 0.3, 0.05)}
    cells = {
        "start": np.where(ill, rng.integers(40, 61, rows), rng.integers(0, 30, rows)) * 1.0,
        "stop": rng.integers(0, 61, rows) * 1.0,
        "role": rng.integers(0, 3, rows),
        "sex": rng.integers(0, 2, rows),
        "dose": rng.uniform(0, 9, rows),
    }
    for name, share in gone.items():
        nothing = np.nan if cells[name].dtype.kind == "f" else -1
        cells[name] = np.where(rng.random(rows) < share, nothing, cells[name])
    return cells


def drawn(*constraints, rows=2_000, seed=0, **options):
    schema = Schema(columns=COLUMNS, target="ill", constraints=constraints)
    given = {"where": None, "proportions": None, **options}
    return draw_table(schema, np.array([0.5, 0.5]), rows, seed=seed, draw=draw, **given)


def broken_by(rows):
    """Of each set of columns tied together, which rows break what is said of them: by hand."""
    late = rows["start"] > rows["stop"].astype(float)
    pair = rows["role"].eq("husband") & rows["sex"].eq("f")
    pair |= rows["role"].eq("wife") & rows["sex"].eq("m")
    return [late, pair, rows["ill"].eq("yes") & (rows["dose"] <= 1)]


def test_only_broken_cells_change_and_neither_classes_nor_gaps_do():
    free, kept = drawn(), drawn(*CONSTRAINTS)
    before, after = broken_by(free), broken_by(kept)
    # Drawn again as whole rows, as they once were, these would be the only ones left.
    whole = free[~np.logical_or.reduce(before)]
    assert (whole["ill"] == "yes").mean() < 0.46 and free["stop"].isna().mean() < 0.4
    assert whole["stop"].isna().mean() > free["stop"].isna().mean() + 0.05
    assert not any(mask.any() for mask in after)
    assert kept["ill"].equals(free["ill"])
    pd.testing.assert_frame_equal(kept.isna(), free.isna())
    for names, mask in zip(TIED, before, strict=True):
        pd.testing.assert_frame_equal(kept.loc[~mask, names], free.loc[~mask, names])


def test_a_broken_row_takes_what_is_most_like_it():
    rules = Rules(
        [("a", "b")], lambda own: [own["a"] > own["b"]], lambda name, cells: np.isnan(cells)
    )
    columns = {
        "a": np.array([9.0, 1.0, 5.0, 8.0]),
        "b": np.array([8.0, 2.0, 6.0, 9.0]),
        "c": np.array([1, 1, 1, 1]),
    }
    rows = Rows(columns, np.zeros(4, np.int64))
    left = mend(rows, rules, rows.take, np.random.default_rng(0), strict=True)
    assert not left.any()
    assert (columns["a"].tolist(), columns["b"].tolist()) == ([8, 1, 5, 8], [9, 2, 6, 9])


def test_conditions_and_shares_hold_beside_constraints():
    rows = drawn(*CONSTRAINTS, where={"sex": "f", "dose": (0.5, 3)}, rows=300)
    assert not any(mask.any() for mask in broken_by(rows))
    assert rows["sex"].eq("f").all() and rows["dose"].between(0.5, 3).all()
    wanted = {"yes": 0.8, "no": 0.2}
    shared = drawn(*CONSTRAINTS, proportions=wanted), drawn(proportions=wanted)
    assert shared[0]["ill"].equals(shared[1]["ill"])


def test_a_class_that_is_never_allowed_becomes_another_and_is_refused_where_it_is_asked_for():
    never = {"never": {"ill": "yes", "sex": ["f", "m"]}}
    rows, free = drawn(never, rows=60), drawn(rows=60)
    assert rows["ill"].eq("no").all() and free["ill"].eq("yes").any()
    others = ["start", "stop", "role", "dose"]
    pd.testing.assert_frame_equal(rows[others], free[others])
    with pytest.raises(ConfigError, match="0 of 9 rows: hardly a row"):
        drawn(never, rows=9, where={"ill": "yes"})


def test_gaps_change_only_where_every_other_row_with_them_breaks_something():
    rows = drawn({"never": {"role": None}}, rows=200)
    assert rows["role"].notna().all()
    assert rows["ill"].equals(drawn(rows=200)["ill"])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(CONSTRAINTS), min_size=1, unique_by=str))
def test_no_row_breaks_any_of_several_constraints(seed, constraints):
    schema = Schema(columns=COLUMNS, target="ill", constraints=constraints)
    rows, free = drawn(*constraints, rows=40, seed=seed), drawn(rows=40, seed=seed)
    assert not schema.broken(conform(rows, schema).columns).any()
    assert rows["ill"].equals(free["ill"])
