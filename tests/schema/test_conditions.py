"""Conditions on one column, as they are given and as they hold."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer
from fedsynth.schema.conditions import condition_on, demand_modelled

AGE = Integer(name="age", lower=0, upper=90, missing=True)
SHARE = Continuous(name="share", lower=-1, upper=1, decimals=1)
PRICE = Integer(name="price", lower=100, upper=2_100, step=500)
KIND = Categorical(name="kind", values=("husband", "wife", 3), missing=True)
SEEN = Boolean(name="seen")
DAY = Datetime(name="day", lower="2020-01-01", upper="2020-12-31")
HOUR = Datetime(name="hour", lower="2020-01-01", upper="2020-01-03", resolution="hour")


@pytest.mark.parametrize(
    ("column", "given_", "values", "expected"),
    [
        (AGE, 30, [29, 30, 31, np.nan], [False, True, False, False]),
        (AGE, "30", [29, 30, 31, np.nan], [False, True, False, False]),
        (AGE, [70, 30], [30, 31, 70, np.nan], [True, False, True, False]),
        (AGE, None, [30, np.nan], [False, True]),
        (AGE, [None, 30], [30, 31, np.nan], [True, False, True]),
        (AGE, {"from": 30, "to": 40}, [29, 30, 40, 41, np.nan], [False, True, True, False, False]),
        (AGE, {"from": 30}, [29, 30, 90], [False, True, True]),
        (AGE, {"to": 30}, [0, 30, 31], [True, True, False]),
        (AGE, {"from": 29.5, "to": 30.5}, [29, 30, 31], [False, True, False]),
        (AGE, {"from": -1e300, "to": 1e300}, [0, 90, np.nan], [True, True, False]),
        (SHARE, 0.1 + 0.2, [0.2, 0.3, 0.4], [False, True, False]),
        (SHARE, {"from": 0.1 + 0.2}, [0.2, 0.3, 0.4], [False, True, True]),
        (SHARE, {"from": -0.7, "to": 0.7}, [-0.8, -0.7, 0.7, 0.8], [False, True, True, False]),
        (PRICE, {"from": 101, "to": 1_100}, [100, 600, 1_100, 1_600], [False, True, True, False]),
        (PRICE, [600, 1_600], [100, 600, 1_100, 1_600], [False, True, False, True]),
        (KIND, "wife", [0, 1, 2, -1], [False, True, False, False]),
        (KIND, [3, "husband"], [0, 1, 2, -1], [True, False, True, False]),
        (KIND, None, [0, -1], [False, True]),
        (SEEN, True, [0, 1], [False, True]),
        (SEEN, "no", [0, 1], [True, False]),
        (DAY, "2020-03-01", [59, 60, 61], [False, True, False]),
        (DAY, datetime.date(2020, 3, 1), [59, 60, 61], [False, True, False]),
        (DAY, pd.Timestamp(2020, 3, 1), [59, 60, 61], [False, True, False]),
        (DAY, {"from": "2020-12-30", "to": "9999-12-31"}, [363, 364, 365], [False, True, True]),
        (HOUR, {"to": "2020-01-02"}, [23, 24, 25], [True, True, False]),
    ],
)
def test_a_condition_holds_for_what_it_names(column, given_, values, expected):
    codes = isinstance(column, Categorical | Boolean)
    cells = np.array(values, np.int64 if codes else np.float64)
    assert condition_on(column, given_).holds(cells).tolist() == expected


@pytest.mark.parametrize("wrap", [list, set, np.array])
def test_any_collection_is_a_list_of_values(wrap):
    assert condition_on(AGE, wrap([3, 4])) == condition_on(AGE, [4, 3])
    assert condition_on(AGE, np.int32(3)) == condition_on(AGE, 3)


@given(st.data())
def test_a_condition_within_another_is_met_by_no_other_cell(data):
    ranges = st.tuples(st.integers(0, 90), st.integers(0, 90)).map(lambda ends: tuple(sorted(ends)))
    wanted = st.lists(st.integers(0, 4) | st.none(), min_size=1, max_size=3) | ranges
    first, second = (condition_on(AGE, data.draw(wanted)) for _ in range(2))
    cells = np.append(np.arange(91.0), np.nan)
    assert first.within(first)
    if first.within(second):
        assert not (first.holds(cells) & ~second.holds(cells)).any()


@given(st.integers(0, 90), st.integers(0, 90))
def test_a_tuple_on_numbers_is_a_range(first, second):
    low, high = min(first, second), max(first, second)
    held = condition_on(AGE, (low, high)).holds(np.arange(91.0))
    assert held.tolist() == [low <= age <= high for age in range(91)]
    assert condition_on(AGE, (low, None)) == condition_on(AGE, {"from": low})
    assert condition_on(AGE, (None, high)) == condition_on(AGE, {"to": high})


def test_a_tuple_is_a_range_of_dates_and_a_list_of_categories():
    days = ("2020-02-01", datetime.date(2020, 2, 29))
    assert condition_on(DAY, days) == condition_on(DAY, {"from": days[0], "to": days[1]})
    assert condition_on(KIND, ("husband", 3)) == condition_on(KIND, ["husband", 3])


@given(st.lists(st.integers(0, 90), min_size=1), st.lists(st.integers(0, 90) | st.none()))
def test_a_list_holds_where_any_of_its_values_does(wanted, cells):
    values = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    held = condition_on(AGE, wanted).holds(values)
    assert held.tolist() == [cell in wanted for cell in cells]


@pytest.mark.parametrize(
    ("column", "given_", "words"),
    [
        (PRICE, 700, ("'price'", "no value 700")),
        (PRICE, {"from": 601, "to": 1_099}, ("'price'", "no value lies in this range")),
        (KIND, "huband", ("'kind'", "'huband'", "did you mean 'husband'")),
        (KIND, {"from": 1}, ("'kind'", "categories")),
        (SEEN, None, ("'seen'", "never missing")),
        (SEEN, "perhaps", ("'seen'", "'perhaps'")),
        (AGE, "old", ("'age'", "'old'", "no number")),
        (AGE, 91, ("'age'", "91", "bounds")),
        (AGE, 30.5, ("'age'", "30.5", "range")),
        (AGE, [30, -1], ("'age'", "-1")),
        (AGE, [], ("'age'", "empty")),
        (AGE, (30, 35, 40), ("'age'", "two ends", "[30, 35, 40]")),
        (AGE, (30,), ("'age'", "two ends")),
        (AGE, (40, 30), ("'age'", "no value")),
        (AGE, (None, None), ("'age'", "`from`")),
        (AGE, [[30]], ("'age'", "one list")),
        (AGE, [{"from": 3}], ("'age'", "one range")),
        (AGE, {}, ("'age'", "`from`")),
        (AGE, {"form": 3}, ("'age'", "'form'", "did you mean 'from'")),
        (AGE, {"from": 40, "to": 30}, ("'age'", "no value")),
        (AGE, {"from": 91}, ("'age'", "no value")),
        (AGE, {"to": -1}, ("'age'", "no value")),
        (AGE, {"from": 30.2, "to": 30.8}, ("'age'", "no value")),
        (AGE, {"from": None}, ("'age'", "`from`", "no number")),
        (AGE, {"to": float("inf")}, ("'age'", "`to`", "no number")),
        (DAY, 5, ("'day'", "no date")),
        (DAY, "2020-02-30", ("'day'", "2020-02-30", "no date")),
        (DAY, "2021-01-01", ("'day'", "2021-01-01", "bounds")),
        (Identifier(name="id"), 1, ("'id'", "identifier")),
    ],
)
def test_a_condition_that_no_row_can_meet_is_refused(column, given_, words):
    with pytest.raises(ConfigError) as caught:
        condition_on(column, given_)
    for word in words:
        assert word in str(caught.value)


def test_a_fraction_of_a_large_whole_number_is_no_value():
    column = Integer(name="n", lower=0, upper=2 * 10**9)
    with pytest.raises(ConfigError, match="no value"):
        condition_on(column, 1_234_567_890.5)


def test_what_no_model_knows_is_told_apart_from_what_is_misspelt():
    columns = (AGE, Identifier(name="id"))
    demand_modelled("age", columns, ["age"])
    with pytest.raises(ConfigError, match="'id' is an identifier: it is made anew"):
        demand_modelled("id", columns, ["age"])
    with pytest.raises(ConfigError, match="cannot condition on 'agee'; did you mean 'age'"):
        demand_modelled("agee", columns, ["age"])
