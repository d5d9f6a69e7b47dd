"""Decimal commas become points where a column leaves no doubt, and no number another."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.data.decimals import read_decimals
from fedsynth.errors import DataError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema


def convert(columns, decimal=None, schema=None):
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    declared = {} if schema is None else {column.name: column for column in schema.columns}
    table, found = read_decimals(table, decimal, declared, "t.csv")
    return table.to_pydict(), found


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["1,5", "2"], ["1.5", "2"]),
        ([",5", "-0,125", "+3,0e-2"], [".5", "-0.125", "+3.0e-2"]),
        (["1.234,56", "0,5"], ["1234.56", "0.5"]),
        (["1.234", "0,5", "12.345.678"], ["1234", "0.5", "12345678"]),
        # With a sign they are left to a notation.
        (["12,5 %", "3 %"], ["12,5 %", "3 %"]),
        (["€ 3,50", ""], ["€ 3,50", ""]),
        (["1,5", "NA"], ["1.5", "NA"]),
        # Thousands may be meant.
        (["1,234", "5,678"], None),
        # Another notation, or none of numbers.
        (["1,5", "2.5"], None),
        (["1,5", "1,2,3"], None),
        (["1,234.5", "2,5"], None),
        (["1,5", "see", "overleaf"], None),
        (["31.12.2020", "01.01.2021"], None),
        (["1.5", "2.5"], None),
        ([], None),
    ],
)
def test_a_column_says_whether_its_commas_stand_before_decimals(cells, found):
    converted, decimal = convert({"a": cells})
    assert decimal == ("." if found is None else ",")
    assert converted == {"a": cells if found is None else found}


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 4)), min_size=1), st.booleans())
def test_numbers_written_with_commas_are_read_as_they_were(numbers, thousands):
    english = [f"{x:,.4f}" if thousands else f"{x:.4f}" for x in numbers]
    german = [text.translate(str.maketrans(",.", ".,")) for text in english]
    converted, decimal = convert({"a": german})
    assert decimal == "," and [float(text) for text in converted["a"]] == numbers


def test_one_column_speaks_for_those_that_could_be_either():
    columns = {"a": ["1,5"], "b": ["1,234"], "c": ["2.5"], "d": ["x,y"]}
    assert convert(columns)[0] == {"a": ["1.5"], "b": ["1.234"], "c": ["2.5"], "d": ["x,y"]}


def test_points_that_may_part_thousands_are_asked_about():
    columns = {"a": ["1,5", "1,5"], "b": ["7", "1.234"]}
    with pytest.raises(DataError, match=r"t\.csv: column 'b' has points .*\(row 3\).*`decimal"):
        convert(columns)
    assert convert(columns, ",")[0]["b"] == ["7", "1234"]
    assert convert(columns, ".") == (columns, ".")


SCHEMA = Schema(
    columns=[
        Continuous(name="x", lower=0, upper=9, decimals=1),
        Integer(name="n", lower=0, upper=9000),
        Categorical(name="c", values=["1,5", "2,5"]),
        Categorical(name="d", values=[1.5, 2.5]),
        Datetime(name="t", lower="2020-01-01", upper="2021-01-01"),
        Boolean(name="b"),
    ]
)


def test_a_schema_says_which_columns_are_numbers():
    columns = {"x": ["1,5", "high"], "n": ["1.200", "3,0"], "c": ["1,5", "2,5"], "d": ["1,5"] * 2}
    columns |= {"t": ["2020-01-01", "1,5"], "b": ["1,0", "0"], "other": ["a,b", "1,5"]}
    assert convert(columns, schema=SCHEMA)[0] == columns | {
        "x": ["1.5", "high"], "n": ["1200", "3.0"], "d": ["1.5"] * 2, "other": ["a,b", "1.5"],
    }  # fmt: skip


def test_numbers_of_a_schema_that_are_written_in_two_ways_are_an_error_with_a_row():
    with pytest.raises(DataError, match=r"column 'x' has numbers with decimal commas.*row 3"):
        convert({"x": ["1,5", "2.5"]}, ",", SCHEMA)
    # Nobody said that commas are decimals, and nothing did.
    assert convert({"x": ["1,5", "2.5"]}, None, SCHEMA)[1] == "."
    assert convert({"x": ["1.5", "2.5"]}, ",", SCHEMA)[0] == {"x": ["1.5", "2.5"]}


def test_agrees_with_pandas_where_that_reads_commas():
    text = "a;b;c\n1,5;x;2\n-0,25;y;3\n1.000,5;z;4\n"
    columns = pd.read_csv(pd.io.common.StringIO(text), sep=";", dtype=str).to_dict("list")
    expected = pd.read_csv(pd.io.common.StringIO(text), sep=";", decimal=",", thousands=".")
    assert [float(one) for one in convert(columns)[0]["a"]] == expected["a"].tolist()
