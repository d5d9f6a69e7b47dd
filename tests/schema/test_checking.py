from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.conforming import conform, restore
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from fedsynth.schema.cells import read_cells
from fedsynth.schema.checking import ColumnCheck, Violation, check, check_columns
from tests.schemas import arrays, schemas


def test_every_value_outside_is_listed_with_its_count():
    schema = Schema(
        columns=[
            Integer(name="age", lower=0, upper=90),
            Categorical(name="sex", values=["f", "m"], missing=True),
            Continuous(name="x", lower=0, upper=1, decimals=1),
            Datetime(name="t", lower="2020-01-01", upper="2020-12-31"),
            Boolean(name="b"),
            Identifier(name="id"),
            Integer(name="gone", lower=0, upper=1),
        ]
    )
    frame = pd.DataFrame(
        {
            "age": ["95", "91", "95", "-1", "3.5", "old"],
            "sex": ["f", "d", "d", None, "", "x"],
            "x": [0.0, 0.55, 1.0, np.nan, np.inf, 2.0],
            "t": [
                "2020-01-01",
                "2019-12-31",
                "03/04/2020",
                "2020-06-01",
                "2021-01-01",
                "2020-02-30",
            ],
            "b": ["yes", "no", 1, 0, "maybe", True],
            "id": ["p1", "p2", "p1", "p1", "p3", "p4"],
            "new": 0,
        }
    )
    assert set(check(frame, schema)) == {
        Violation("age", "above", "95", 2),
        Violation("age", "above", "91", 1),
        Violation("age", "below", "-1", 1),
        Violation("age", "fraction", "3.5", 1),
        Violation("age", "unreadable", "old", 1),
        Violation("sex", "undeclared", "d", 2),
        Violation("sex", "undeclared", "x", 1),
        Violation("x", "missing", None, 1),
        Violation("x", "above", "inf", 1),
        Violation("x", "above", "2.0", 1),
        Violation("t", "below", "2019-12-31", 1),
        Violation("t", "above", "2021-01-01", 1),
        Violation("t", "unreadable", "03/04/2020", 1),
        Violation("t", "unreadable", "2020-02-30", 1),
        Violation("b", "undeclared", "maybe", 1),
        Violation("id", "repeated", "p1", 2),
        Violation("gone", "absent", None, 6),
        Violation("new", "extra", None, 6),
    }


@given(schemas(), st.integers(1, 10), st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_a_table_of_the_schema_has_no_findings(schema, rows, seed):
    rng = np.random.default_rng(seed)
    assert check(restore(arrays(schema, rows, rng), schema, rng), schema) == []


@given(st.lists(st.sampled_from(["a", "b", "z", "1", "7", "1.5", "", None, "x y"]), min_size=1))
def test_findings_count_as_many_cells_as_conform_replaces(cells):
    schema = Schema(
        columns=[
            Integer(name="i", lower=0, upper=5),
            Categorical(name="c", values=["a", "b"], other="b"),
            Boolean(name="b", missing=True),
        ]
    )
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in "icb"})
    findings = check(frame, schema)
    for name, outside in conform(frame, schema).outside.items():
        assert outside == sum(finding.count for finding in findings if finding.column == name)


def test_every_column_is_a_line_with_its_range_count_and_commonest_examples():
    schema = Schema(
        columns=[
            Integer(name="n", lower=0, upper=9, missing=True),
            Datetime(name="t", lower="2020-01-01", upper="2020-12-31"),
            Categorical(name="c", values=["a", "b"], other="else"),
            Boolean(name="gone"),
            Identifier(name="id"),
        ]
    )
    frame = pd.DataFrame(
        {
            "n": ["3", "12", "12", "-1", "many", None],
            "t": ["2020-05-01", "2020-03-01", None, "9999-12-31", "2020-03-01", "2020-03-02"],
            "c": ["a", "a", "p", "q", "q", "r"],
            "id": [1, 1, 2, 3, 4, 5],
            "site": "x",
        }
    )
    assert check_columns(frame, schema, check(frame, schema)) == [
        ColumnCheck(
            "n", "0 to 9, missing", "-1 to 12", 4, 4 / 6, (("12", 2), ("many", 1), ("-1", 1))
        ),
        ColumnCheck(
            "t",
            "2020-01-01 to 2020-12-31",
            "2020-03-01 to 9999-12-31",
            2,
            2 / 6,
            (("9999-12-31", 1), ("(missing)", 1)),
        ),
        ColumnCheck("c", "2 values, else else", "1 of 3", 4, 4 / 6, (("q", 2), ("p", 1), ("r", 1))),
        ColumnCheck("gone", "true, false", None, None, None, (), "absent"),
        ColumnCheck("id", "identifier", None, None, None, (("1", 1),), "repeated"),
        ColumnCheck("site", None, None, None, None, (), "extra"),
    ]


def test_a_persons_key_may_repeat_and_has_no_gaps():
    schema = Schema(
        columns=[Identifier(name="id"), Integer(name="n", lower=0, upper=9)],
        person="id",
        missing_values=["?"],
    )
    frame = pd.DataFrame({"id": ["1", "2", "1", "?", None, "1"], "n": 1})
    found = check(frame, schema)
    assert found == [Violation("id", "missing", None, 2)]
    line = ColumnCheck("id", "person", "2 persons", 2, 2 / 6, (("(missing)", 2),))
    assert check_columns(frame, schema, found)[0] == line
    assert check(frame[:3], schema) == []
    assert check(frame[["n"]], schema) == [Violation("id", "absent", None, 6)]


def test_a_column_that_stands_twice_is_extra():
    frame = pd.DataFrame([[1, 1]], columns=["a", "a"])
    schema = Schema(columns=[Integer(name="a", lower=0, upper=1)])
    assert check(frame, schema) == [Violation("a", "extra", None, 1)]


def test_a_line_tells_the_notation_and_the_zone():
    schema = Schema(
        columns=[
            Integer(name="a", lower=0, upper=90, format="$1,234"),
            Datetime(
                name="t",
                lower="2020-01-01",
                upper="2020-12-31",
                resolution="hour",
                zone="Europe/Berlin",
            ),
        ]
    )
    moments = pd.to_datetime(["2020-07-01 05:00", "2020-01-01 05:00"], utc=True)
    frame = pd.DataFrame({"a": ["$17", "€5"], "t": moments})
    amount, moment = check_columns(frame, schema, check(frame, schema))
    assert (amount.allowed, amount.found) == ("0 to 90 as $1,234", "17 to 17")
    assert amount.examples == (("€5", 1),)
    assert moment.allowed.endswith("in Europe/Berlin")
    # Two hours before UTC in July, one in January.
    assert moment.found == "2020-01-01 06:00:00 to 2020-07-01 07:00:00"


def test_texts_that_repeat_are_read_as_each_would_be_alone():
    texts = [
        "1",
        " 2 ",
        "3.5",
        "1e3",
        "x",
        "",
        "NA",
        "inf",
        "-0",
        "9007199254740993",
        "0.1",
        "True",
    ]
    column = Continuous(name="a", lower=-9, upper=1e4, decimals=1, missing=True)
    alone = [read_cells(pd.Series([text], dtype=object), column, ["NA"]) for text in texts]
    for times in (1, 100):
        together = read_cells(pd.Series(texts * times, dtype=object), column, ["NA"])
        for field in ("values", "missing", "unreadable"):
            wanted = np.tile(np.concatenate([getattr(one, field) for one in alone]), times)
            np.testing.assert_array_equal(getattr(together, field), wanted)
