"""What a schema says no row can be: as declared, kept, and found broken."""

from __future__ import annotations

import datetime
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.data.conforming import conform
from fedsynth.errors import SchemaError
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Schema,
    load_schema,
)
from fedsynth.schema.checking import Violation, check
from fedsynth.schema.moments import moments
from fedsynth.schema.ordering import least, most

COLUMNS = (
    Identifier(name="id"),
    Categorical(name="relationship", values=("Husband", "Wife", "Own-child")),
    Categorical(name="sex", values=("Female", "Male"), missing=True),
    Integer(name="age", lower=0, upper=90, missing=True),
    Continuous(name="first", lower=0, upper=10, decimals=1, missing=True),
    Continuous(name="second", lower=0, upper=20, decimals=2, missing=True),
    Datetime(name="admitted", lower="2020-01-01", upper="2020-12-31", missing=True),
    Datetime(name="discharged", lower="2019-12-01", upper="2021-12-31", missing=True),
    Datetime(name="hour", lower="2020-01-01", upper="2020-12-31", resolution="hour"),
    Integer(name="stay", lower=0, upper=90, format="h:mm"),
    Datetime(
        name="berlin",
        lower="2020-01-01",
        upper="2020-12-31",
        resolution="hour",
        zone="Europe/Berlin",
        missing=True,
    ),
)
NEVER = {"never": {"relationship": "Husband", "sex": "Female"}}
YOUNG = {"never": {"relationship": ["Husband", "Wife"], "age": {"to": 15}}}
STAY = {"ordered": ["admitted", "discharged"]}


def schema_of(*constraints, columns=COLUMNS):
    return Schema(columns=columns, constraints=constraints)


def frame_of(**cells):
    rows = len(next(iter(cells.values())))
    plain = {
        "relationship": "Wife",
        "sex": "Female",
        "age": 50,
        "first": 1.0,
        "second": 2.0,
        "admitted": "2020-02-01",
        "discharged": "2020-02-02",
        "hour": "2020-01-01",
        "stay": "0:30",
        "berlin": None,
    }
    filled = {name: cells.get(name, [value] * rows) for name, value in plain.items()}
    return pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in filled.items()})


def find_broken(schema, **cells):
    return schema.broken(conform(frame_of(**cells), schema).columns).tolist()


def test_a_schema_without_constraints_keeps_the_digest_that_it_had_before_there_were_any():
    schema = Schema(columns=(Integer(name="age", lower=0, upper=90),))
    content = {"kind": "table", "columns": [{"kind": "integer", "name": "age"}]}
    content["columns"][0] |= {"lower": 0, "upper": 90}
    assert schema.to_dict() == content
    assert Schema(columns=schema.columns, constraints=()).digest == schema.digest
    assert schema_of(NEVER).digest != schema_of().digest
    assert schema_of(NEVER, STAY).digest != schema_of(NEVER).digest


def test_constraints_read_back_from_a_file_as_they_were(tmp_path):
    schema = schema_of(
        NEVER,
        YOUNG,
        STAY,
        {"never": {"sex": None}},
        {"never": {"admitted": {"from": datetime.date(2020, 3, 1)}, "age": np.int64(3)}},
        {"never": {"age": [1, 2], "sex": {"Male", "Female"}}},
        {"never": {"age": float("nan"), "discharged": pd.NaT}},
    )
    schema.save(tmp_path / "schema.yaml")
    assert load_schema(tmp_path / "schema.yaml") == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ({"never": {"age": (30, 40)}}, ("`never`", "tuple", "{from: 30, to: 40}")),
        ({"never": {"relationship": "Huband"}}, ("constraint 1", "relationship", "'Husband'")),
        ({"never": {"relation": "Husband"}}, ("'relation'", "did you mean 'relationship'")),
        ({"never": {"relationship": None}}, ("'relationship'", "never missing")),
        ({"never": {"age": {"from": 91}}}, ("'age'", "no value")),
        ({"never": {"id": 1}}, ("'id'", "identifier")),
        ({"never": {}}, ("never", "conditions by column")),
        ({"never": "age"}, ("never", "conditions by column")),
        ({"nver": {"age": 1}}, ("`never`", "did you mean 'never'")),
        ({"never": {"age": 1}, "ordered": ["first", "second"]}, ("one key",)),
        ("never", ("constraints", "a list of constraints")),
        ({"ordered": ["first"]}, ("ordered", "two or more")),
        ({"ordered": ["first", "first"]}, ("twice",)),
        ({"ordered": ["first", "secnd"]}, ("'secnd'", "did you mean 'second'")),
        ({"ordered": ["id", "first"]}, ("'id'", "identifier")),
        ({"ordered": ["age", "sex"]}, ("numbers",)),
        ({"ordered": ["age", "admitted"]}, ("numbers", "dates")),
        (
            {"ordered": ["admitted", "berlin"]},
            ("'berlin' is on the clock of Europe/Berlin", "`zone: UTC`"),
        ),
        ({"ordered": ["age", "stay"]}, ("one unit", "'age' is a plain number, 'stay' is h:mm")),
    ],
)
def test_a_constraint_that_does_not_fit_the_columns_is_refused(constraint, words):
    with pytest.raises(SchemaError) as caught:
        schema_of(constraint)
    for word in words:
        assert word in str(caught.value)


def test_columns_that_never_can_be_in_order_are_refused():
    columns = (Integer(name="a", lower=5, upper=9), Integer(name="b", lower=0, upper=4))
    with pytest.raises(SchemaError, match="above"):
        schema_of({"ordered": ["a", "b"]}, columns=columns)
    assert schema_of({"ordered": ["b", "a"]}, columns=columns).constraints


def test_a_row_breaks_a_combination_only_if_all_of_it_holds():
    relationship = ["Husband", "Husband", "Wife", "Husband"]
    sex = ["Female", "Male", "Female", None]
    assert find_broken(schema_of(NEVER), relationship=relationship, sex=sex) == [True, *[False] * 3]
    forbidden = schema_of({"never": {"sex": None}})
    assert find_broken(forbidden, sex=["Male", None]) == [False, True]
    assert find_broken(schema_of(YOUNG), age=[15, 16, None, 3]) == [True, False, False, True]


def test_dates_are_ordered_by_the_calendar_whatever_their_columns_begin_with():
    admitted = ["2020-01-01", "2020-01-01", "2020-05-01", None, "2020-05-01"]
    discharged = ["2019-12-31", "2020-01-01", "2020-04-30", "2019-12-01", None]
    cells = {"admitted": admitted, "discharged": discharged}
    assert find_broken(schema_of(STAY), **cells) == [True, False, True, False, False]


MOMENTS = {
    "day": Datetime(name="day", lower="2020-02-27", upper="2020-03-03"),
    "hour": Datetime(
        name="hour", lower="2020-02-27 05:00", upper="2020-03-03", resolution="hour", zone="+05:30"
    ),
    "minute": Datetime(name="minute", lower="2020-02-28", upper="2020-03-02", resolution="minute"),
}


def drawn_in_order(columns, seed):
    """The schema in which the first is at most the second, and 500 values of each at random."""
    rng = np.random.default_rng(seed)
    schema = schema_of({"ordered": [one.name for one in columns]}, columns=columns)
    return schema, {one.name: rng.integers(0, int(one.high) + 1, 500) * 1.0 for one in columns}


@pytest.mark.parametrize(("low", "high"), list(itertools.permutations(MOMENTS, 2)))
def test_moments_are_ordered_by_the_coarser_of_two_resolutions(low, high):
    columns = MOMENTS[low], MOMENTS[high]
    schema, values = drawn_in_order(columns, 3)
    starts = {"day": "2020-02-27", "hour": "2020-02-27 05:00+05:30", "minute": "2020-02-28"}
    moments = {
        name: pd.Timestamp(starts[name]) + pd.to_timedelta(units, name)
        for name, units in values.items()
    }
    # What an hour is, UTC tells; which day it is, the column's own clock.
    local = {"day": None} if "day" in (low, high) else {}
    told = {
        name: moment.tz_localize(None)
        if local and moment.tz
        else moment.tz_convert("UTC")
        if moment.tz
        else moment
        if local
        else moment.tz_localize("UTC")
        for name, moment in moments.items()
    }
    coarse = MOMENTS[low] if columns[0].seconds > columns[1].seconds else MOMENTS[high]
    grid = pd.Timedelta(1, coarse.resolution)
    begin = told[coarse.name].min() - values[coarse.name].min() * grid
    places = [np.floor((told[name] - begin) / grid) for name in (low, high)]
    assert schema.broken(values).tolist() == (places[0] > places[1]).tolist()
    assert 100 < schema.broken(values).sum() < 400


CALENDAR = {
    "year": Datetime(name="year", lower="2018-01-01", upper="2022-01-01", resolution="year"),
    "month": Datetime(name="month", lower="2018-11-01", upper="2021-06-01", resolution="month"),
    "day": Datetime(name="day", lower="2019-01-15", upper="2021-03-03"),
    "hour": Datetime(name="hour", lower="2019-02-01", upper="2021-02-01", resolution="hour"),
}


@pytest.mark.parametrize(("low", "high"), list(itertools.permutations(CALENDAR, 2)))
def test_years_and_months_are_ordered_as_pandas_periods_are(low, high):
    columns = CALENDAR[low], CALENDAR[high]
    schema, values = drawn_in_order(columns, 4)
    coarse = max(columns, key=lambda one: one.seconds).resolution
    period = {"year": "Y", "month": "M", "day": "D"}[coarse]
    first, then = (moments(values[one.name], one).dt.to_period(period) for one in columns)
    assert schema.broken(values).tolist() == (first > then).tolist()
    assert 50 < schema.broken(values).sum() < 450
    # Where one value is as far as it may be, the other still has a place.
    for one, other, bound in ((*columns, least), (*columns[::-1], most)):
        ends = np.array([0.0, one.high, np.nan, np.inf])
        found = bound(*columns, ends)
        assert np.isnan(found[2]) and found[3] == np.inf
        assert (found[:2] == np.floor(found[:2])).all() or one.resolution == other.resolution


def test_durations_of_different_units_are_ordered_by_their_length():
    columns = (
        Integer(name="wait", lower=0, upper=600, format="h:mm"),
        Integer(name="stay", lower=0, upper=36_000, format="h:mm:ss"),
    )
    schema = schema_of({"ordered": ["wait", "stay"]}, columns=columns)
    values = {"wait": np.array([10.0, 10, 10]), "stay": np.array([599.0, 600, 601])}
    assert schema.broken(values).tolist() == [True, False, False]


_numbers = st.none() | st.integers(0, 100)


@given(st.lists(st.tuples(_numbers, _numbers, _numbers), min_size=1, max_size=20))
def test_numbers_of_any_decimals_are_ordered_pair_by_pair(rows):
    schema = schema_of({"ordered": ["first", "second", "age"]})
    cells = [
        (
            None if a is None else a / 10,
            None if b is None else b / 20,
            None if c is None else c % 91,
        )
        for a, b, c in rows
    ]
    first, second, age = (list(column) for column in zip(*cells, strict=True))
    for row, bad in zip(
        cells, find_broken(schema, first=first, second=second, age=age), strict=True
    ):
        pairs = itertools.pairwise(row)
        assert bad == any(None not in pair and pair[0] > pair[1] for pair in pairs)


def test_a_row_breaks_the_schema_if_it_breaks_any_constraint():
    schema = schema_of(NEVER, STAY)
    cells = {"relationship": ["Husband", "Wife", "Wife"], "admitted": ["2020-01-01"] * 3}
    cells["discharged"] = ["2020-01-01", "2019-12-31", "2020-01-01"]
    assert find_broken(schema, **cells) == [True, True, False]
    assert find_broken(schema_of(), **cells) == [False] * 3


def test_rows_that_break_a_constraint_are_found_and_left_as_they_are():
    schema = schema_of(NEVER, YOUNG, STAY)
    frame = frame_of(
        relationship=["Husband", "Husband", "Wife", "Own-child", "Husband"],
        sex=["Female", "Female", "Male", "Male", "unknown"],
        age=[20, 15, 90, 3, "old"],
        admitted=["2020-05-01"] * 5,
        discharged=["2020-05-01", "2020-04-30", "2020-04-30", "2020-04-29", "soon"],
    )
    broken = [finding for finding in check(frame, schema) if ", " in finding.column]
    assert broken == [
        Violation("relationship, sex", "never", "Husband, Female", 2),
        Violation("relationship, age", "never", "Husband or Wife, to 15", 1),
        Violation("admitted, discharged", "ordered", "each at most the next", 3),
    ]
    conformed = conform(frame, schema)
    assert conformed.columns["relationship"].tolist() == [0, 0, 1, 2, 0]
    assert conformed.columns["age"][:4].tolist() == [20, 15, 90, 3]
    assert conformed.outside == conform(frame, schema_of()).outside


def test_an_unreadable_cell_breaks_no_constraint_on_missing_ones():
    schema = schema_of({"never": {"sex": None}})
    frame = frame_of(sex=["unknown", None, "Male"])
    broken = [finding for finding in check(frame, schema) if finding.rule == "never"]
    assert broken == [Violation("sex", "never", "missing", 1)]


def test_a_table_without_a_constraints_column_has_no_finding_for_it():
    schema = schema_of(NEVER)
    frame = frame_of(relationship=["Husband"], sex=["Female"]).drop(columns="sex")
    assert {finding.rule for finding in check(frame, schema)} == {"absent"}


def test_a_number_is_checked_as_the_decimal_that_it_stands_for():
    columns = (Continuous(name="x", lower=0, upper=1, decimals=1), Boolean(name="b"))
    schema = schema_of({"never": {"x": 0.3}}, columns=columns)
    frame = pd.DataFrame({"x": [0.1 + 0.2, 0.34, 0.26, 0.4, 0.35, 0.24], "b": True})
    assert [finding.count for finding in check(frame, schema)] == [3]
    assert schema.broken(conform(frame, schema).columns).sum() == 3
