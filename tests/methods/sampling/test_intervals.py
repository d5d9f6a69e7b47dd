"""Cells of tables: back to the values, within bounds whatever the values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.data.conforming import conform
from fedsynth.methods.sampling.intervals import Encoding, cells_of
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from fedsynth.schema.rounding import round_to_grid

SCHEMA = Schema(
    columns=[
        Integer(name="age", lower=18, upper=90, missing=True),
        Integer(name="debt", lower=-200_000, upper=900_000),
        Continuous(name="dose", lower=0, upper=10, decimals=2),
        Integer(name="always", lower=7, upper=7),
        Categorical(name="colour", values=["red", "green"], missing=True),
        Boolean(name="smoker"),
        Datetime(name="seen", lower="2020-01-01", upper="2080-01-01", missing=True),
        Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)
ENCODING = Encoding(SCHEMA)


def rows(ages, debts, doses, colours, smokers, seen):
    n = len(ages)
    return {
        "age": np.array(ages, float),
        "debt": np.array(debts, float),
        "dose": np.array(doses, float),
        "always": np.full(n, 7.0),
        "colour": np.array(colours, np.int64),
        "smoker": np.array(smokers, np.int64),
        "seen": np.array(seen, float),
        "outcome": np.zeros(n, np.int64),
    }


VALUES = st.tuples(
    st.one_of(st.integers(18, 90), st.just(float("nan"))),
    st.integers(-200_000, 900_000),
    st.integers(0, 1000).map(lambda v: v / 100),
    st.integers(-1, 1),
    st.integers(0, 1),
    st.one_of(st.integers(0, 21_915), st.just(float("nan"))),
)


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_cells_decode_to_the_values(drawn):
    columns = rows(*zip(*drawn, strict=True))
    cells = ENCODING.encode(columns)
    assert cells.shape == (len(drawn), ENCODING.cells.width)
    assert (np.abs(cells) <= 1).all()
    back = ENCODING.decode(cells)
    for name in ("age", "dose", "always", "seen"):
        on = round_to_grid(back[name], SCHEMA.column(name))
        assert np.array_equal(on, columns[name], equal_nan=True)
    # Amounts on a logarithmic scale: to a relative float32 rounding.
    assert np.allclose(back["debt"], columns["debt"], rtol=2e-5, atol=1e-2)
    for name in ("colour", "smoker"):
        assert np.array_equal(back[name], columns[name])
    assert "outcome" not in back


def test_infinite_and_huge_numbers_stay_in_the_cells():
    frame = pd.DataFrame(
        {
            "age": [np.inf, 1e300],
            "debt": [-np.inf, -1e300],
            "dose": [1e300, np.nan],
            "always": [0, 9],
            "colour": ["blue", None],
            "smoker": [True, False],
            "seen": ["1700-01-01", None],
            "outcome": ["well", "ill"],
        }
    )
    cells = ENCODING.encode(conform(frame, SCHEMA).columns)
    assert np.isfinite(cells).all()
    assert (np.abs(cells) <= 1).all()


@given(st.lists(st.floats(-1, 1, width=32), min_size=14, max_size=14))
def test_any_cells_decode_within_the_schema(numbers):
    cells = np.array([numbers], np.float32)
    back = ENCODING.decode(cells[:, : ENCODING.cells.width])
    for name in ("age", "debt", "dose", "always", "seen"):
        column = SCHEMA.column(name)
        value = back[name][0]
        assert np.isnan(value) or column.low <= value <= column.high
    assert -1 <= back["colour"][0] <= 1


def test_a_lone_target_is_a_column_like_any_other():
    schema = Schema(columns=[Categorical(name="c", values=["a", "b"])], target="c")
    assert cells_of(schema).columns == (2,)
    cells = Encoding(schema).encode({"c": np.array([1, 0])})
    assert cells.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(("upper", "middle"), [(10_000, 0.0), (1_000_000, 0.9)])
def test_only_wide_ranges_are_spread_by_their_logarithm(upper, middle):
    schema = Schema(columns=[Integer(name="n", lower=0, upper=upper)])
    cells = Encoding(schema).encode({"n": np.array([0.0, upper / 2, upper])})
    assert cells[0, 0] == -1
    assert cells[2, 0] == 1
    assert cells[1, 0] == pytest.approx(middle, abs=0.01)
