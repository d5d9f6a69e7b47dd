"""Rows as evaluation reads them: as found, or what their schema makes of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.conforming import conform
from fedsynth.errors import DataError
from fedsynth.evaluation.federated import federated_scores
from fedsynth.evaluation.measures.columns import column_scores
from fedsynth.evaluation.measures.marginals import marginal_error
from fedsynth.evaluation.reading.rows import read_real_rows, read_rows, shuffle_columns
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from tests.evaluation.compared_people import SCHEMA, people, table


def test_cells_become_numbers_codes_and_units_by_hand():
    frame = pd.DataFrame(
        {
            "colour": ["blue", None, "pink"],
            "shape": ["round", "odd", None],
            "count": [7, 101, 2.5],
            "x": ["0.126", "", "many"],
            "day": ["2020-01-03", "2021-01-01", None],
            "flag": ["yes", 0, "perhaps"],
        }
    )
    rows = read_rows(frame, SCHEMA, "rows")
    nan = np.nan
    expected = [[2, 0, 7, 0.13, 2, 1], [nan, 2, 101, nan, 366, 0], [3, nan, 2.5, nan, nan, 2]]
    np.testing.assert_array_equal(rows.values, expected)
    assert rows.outside.tolist() == [
        [False] * 6,
        # A gap is allowed in colour and x; 101 and the day lie above their bounds.
        [False, False, True, False, True, False],
        # pink, a gap in shape, a fraction, a text for a number, and no truth value.
        [True, True, True, True, False, True],
    ]
    assert rows.sizes == (4, 4, 0, 0, 0, 3)


def test_columns_come_in_the_schemas_order_without_identifiers():
    schema = Schema(columns=(Identifier(name="id"), *SCHEMA.columns), target="flag")
    frame = table(20).assign(id=range(20))
    rows = read_rows(frame[frame.columns[::-1]], schema, "rows")
    assert rows.names == tuple(column.name for column in SCHEMA.columns)
    np.testing.assert_array_equal(rows.values, people(20).values)
    assert len(rows) == 20


def test_infinite_numbers_stay_apart_from_all_others_and_sums_stay_finite():
    schema = Schema(columns=(Continuous(name="x", lower=0, upper=10, decimals=1),))
    values = [np.inf, -np.inf, 1e300, 11.0, 3.0]
    rows = read_rows(pd.DataFrame({"x": values}), schema, "rows")
    assert np.isfinite(rows.values.sum() + rows.values.std())
    assert rows.values[0] > 1e6 > rows.values[3] == 11
    assert rows.values[1] < -1e6
    assert rows.outside[:, 0].tolist() == [True, True, True, True, False]


def test_numbers_finer_than_the_agreed_decimals_are_rounded_and_no_zero_is_negative():
    schema = Schema(columns=(Continuous(name="x", lower=-1, upper=1, decimals=1),))
    rows = read_rows(pd.DataFrame({"x": [0.1 + 1e-12, -0.04, 0.26]}), schema, "rows")
    assert rows.values[:, 0].tolist() == [0.1, 0.0, 0.3]
    assert not np.signbit(rows.values).any()


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 40), most=st.integers(1, 50), seed=st.integers(0, 99))
def test_a_sample_holds_rows_once_in_order_or_all(n, most, seed):
    schema = Schema(columns=(Integer(name="i", lower=0, upper=99),))
    rows = read_rows(pd.DataFrame({"i": range(n)}), schema, "rows")
    drawn = rows.sample(most, seed)
    places = drawn.values[:, 0]
    assert len(drawn) == min(n, most)
    assert np.all(np.diff(places) > 0)
    np.testing.assert_array_equal(places, rows.sample(most, seed).values[:, 0])
    if n > 2 * most > 20:
        assert (places != np.arange(len(places))).any()


def test_independent_columns_keep_every_column_and_lose_relations():
    rows = people(
        4000, x=np.linspace(-5, 5, 4000).round(2), count=[101, *range(100)] * 39 + [0] * 61
    )
    alone = shuffle_columns(rows, 3)
    np.testing.assert_array_equal(np.sort(alone.values, axis=0), np.sort(rows.values, axis=0))
    # Marks stay with their cells.
    np.testing.assert_array_equal(alone.outside[:, 2], alone.values[:, 2] > 100)
    before = np.corrcoef(people(4000).values[:, [2, 5]].T)[0, 1]
    after = np.corrcoef(shuffle_columns(people(4000), 0).values[:, [2, 5]].T)[0, 1]
    assert before > 0.2
    assert abs(after) < 0.06
    np.testing.assert_array_equal(shuffle_columns(rows, 3).values, alone.values)
    assert (shuffle_columns(rows, 4).values[:, 2] != alone.values[:, 2]).any()


def test_empty_tables_and_other_columns_are_refused():
    with pytest.raises(DataError, match="shop A: has no rows"):
        read_rows(table(5).iloc[:0], SCHEMA, "shop A")
    with pytest.raises(DataError, match="shop A: lacks columns"):
        read_rows(table(5).drop(columns="x"), SCHEMA, "shop A")
    with pytest.raises(DataError, match="shop A: has columns"):
        read_rows(table(5).assign(more=1), SCHEMA, "shop A")


def test_undeclared_values_are_other_else_share_a_code_behind_the_last_one():
    columns = (
        Categorical(name="other", values=("a", "b"), other="else"),
        Categorical(name="both", values=("a", "b"), other="a", missing=True),
        Categorical(name="gap", values=("a", "b"), missing=True),
        Categorical(name="plain", values=("a", "b")),
    )
    frame = pd.DataFrame({column.name: ["b", "p", "q", None] for column in columns})
    rows = read_rows(frame, Schema(columns=columns), "rows")
    nan = np.nan
    np.testing.assert_equal(
        rows.values,
        np.array([[1, 2, 2, nan], [1, 0, 0, nan], [1, 2, 2, nan], [1, 2, 2, nan]]).T,
    )
    assert rows.sizes == (4, 3, 3, 3)
    assert rows.outside[1:3].all() and not rows.outside[0].any()


def test_the_best_rows_that_a_schema_allows_score_best_against_values_that_it_does_not_list():
    """Of 20 real values in 5 declared codes and 15 others, all equally frequent."""
    schema = Schema(columns=(Categorical(name="zip", values=list("abcde"), other="other"),))
    real = pd.DataFrame({"zip": list("abcdefghijklmnopqrst")})
    best = pd.DataFrame({"zip": [*"abcde", *["other"] * 15]})
    assert marginal_error(real, best, schema, 1).mean == 0
    of_all = read_rows(real, schema, "real"), read_rows(best, schema, "synthetic")
    score = column_scores(of_all[1], of_all[0], of_all[0])[0]
    assert (score.score, score.coverage, score.outside) == (1, 1, 0)
    budget = Budget(epsilon=math.inf, trust="central")
    found = federated_scores({"a": real}, best, schema, budget)
    assert found.columns["zip"].value == pytest.approx(0, abs=1e-9)


def test_rows_that_are_conformed_are_those_that_are_learned_from():
    """By `conform`, cell by cell, whatever a column may be and hold."""
    columns = (
        Categorical(name="other", values=("a", "b"), other="else"),
        Categorical(name="both", values=("a", "b"), other="a", missing=True),
        Categorical(name="gap", values=("a", "b"), missing=True),
        Categorical(name="plain", values=("a", "b")),
        Boolean(name="flag", missing=True),
        Integer(name="whole", lower=0, upper=9, missing=True),
        Integer(name="sure", lower=0, upper=9),
        Continuous(name="x", lower=-1, upper=1, decimals=1, missing=True),
        Datetime(name="day", lower="2020-01-01", upper="2020-12-31", missing=True),
    )
    schema = Schema(columns=columns)
    texts = ["a", "b", "p", None]
    numbers = ["3", "-7", "2.5", "99", "many", None, "inf", "0.04"]
    days = ["2020-03-01", "1999-01-01", "2031-01-01", "soon", None]
    rng = np.random.default_rng(0)
    of = [texts] * 4 + [["yes", "no", "perhaps", None]] + [numbers] * 3 + [days]
    frame = pd.DataFrame(
        {
            column.name: rng.choice(np.array(cells, object), 3_000)
            for column, cells in zip(columns, of, strict=True)
        }
    )
    expected = conform(frame, schema)
    found = read_real_rows(frame, schema, "rows")
    assert 0 < len(found) == expected.rows < 3_000 and not found.outside.any()
    arrays = [
        np.where(a < 0, np.nan, a) if a.dtype == np.int64 else a for a in expected.columns.values()
    ]
    np.testing.assert_array_equal(found.values, np.stack(arrays, axis=1))


def test_rows_of_which_none_fits_are_refused():
    schema = Schema(columns=(Categorical(name="plain", values=("a", "b")),))
    with pytest.raises(DataError, match="shop A: every row has a cell outside the schema"):
        read_real_rows(pd.DataFrame({"plain": ["c", None]}), schema, "shop A")
