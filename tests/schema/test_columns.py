from __future__ import annotations

import math

import pandas as pd
import pytest

from fedsynth.errors import SchemaError
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    text_of,
)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Integer(name="a", lower=3, upper=2), ["'a'", "swap"]),
        (lambda: Integer(name="a", lower="x", upper=2), ["`lower`", "whole number", "'x'"]),
        (lambda: Integer(name="a", lower=0.5, upper=2), ["`lower`", "whole number"]),
        (lambda: Integer(name="a", lower=0, upper=2**60), ["too wide"]),
        (lambda: Integer(name="a", lower=0, upper=300, dtype="uint8"), ["uint8", "fit"]),
        (lambda: Integer(name="a", lower=-1, upper=3, dtype="UInt8"), ["UInt8", "fit"]),
        (lambda: Integer(name="a", lower=0, upper=3, dtype="int8", missing=True), ["missing"]),
        (lambda: Integer(name="a", lower=0, upper=3, dtype="category"), ["category", "Int64"]),
        (lambda: Integer(name="a", lower=0, upper=9, edges=[0, 5]), ["edges", "rise"]),
        (lambda: Integer(name="a", lower=0, upper=9, edges=[0, 5, 5, 9]), ["edges", "rise"]),
        (lambda: Integer(name="a", lower=0, upper=9, spikes=[10]), ["spikes", "between"]),
        (lambda: Integer(name="a", lower=0, upper=9, spikes=[1, 1]), ["spikes", "twice"]),
        (lambda: Integer(lower=0, upper=9), ["unnamed", "`name` is needed"]),
        (lambda: Integer(name="", lower=0, upper=9), ["`name`", "not empty"]),
        (lambda: Continuous(name="x", lower=0, upper=math.inf, decimals=1), ["`upper`", "finite"]),
        (lambda: Continuous(name="x", lower=0, upper=1), ["`decimals` is needed"]),
        (lambda: Continuous(name="x", lower=0, upper=1, decimals=13), ["`decimals`", "0 to 12"]),
        (lambda: Continuous(name="x", lower=0.25, upper=1, decimals=1), ["0.25", "decimals"]),
        (lambda: Continuous(name="x", lower=0, upper=1e5, decimals=12), ["too wide"]),
        (lambda: Categorical(name="c", values=[]), ["'c'", "`values`"]),
        (lambda: Categorical(name="c", values="abc"), ["'c'", "`values`", "list"]),
        (lambda: Categorical(name="c", values=["a", None]), ["'c'", "entry 2"]),
        (lambda: Categorical(name="c", values=["a", math.nan]), ["'c'", "missing: true"]),
        (lambda: Categorical(name="c", values=[1, "1"]), ["'c'", "read alike"]),
        (lambda: Categorical(name="c", values=[1, 1]), ["'c'", "1"]),
        (lambda: Categorical(name="c", values=["a", " a"]), ["'c'", "read alike"]),
        (lambda: Categorical(name="c", values=["a"], dtype="int64"), ["'c'", "int64"]),
        (lambda: Boolean(name="b", missing="perhaps"), ["'b'", "true or false"]),
        (lambda: Boolean(name="b", missing=True, dtype="bool"), ["'b'", "cannot hold missing"]),
        (lambda: Datetime(name="t", lower=5, upper="2020-01-01"), ["'t'", "`lower`", "quotes"]),
        (lambda: Datetime(name="t", lower="soon", upper="2020-01-01"), ["'t'", "'soon'"]),
        (lambda: Datetime(name="t", lower="2020-01-02", upper="2020-01-01"), ["'t'", "swap"]),
        (lambda: Datetime(name="t", lower="0001-01-01", upper="2020-01-01"), ["1678"]),
        (lambda: Datetime(name="t", lower="2020-01-01T01:00", upper="2020-01-02"), ["whole day"]),
        (lambda: Datetime(name="t", lower="2020-01-01Z", upper="2020-01-02"), ["`lower`"]),
        (
            lambda: Datetime(name="t", lower="2020-01-01", upper="2020-01-02", resolution="week"),
            ["`resolution`", "year, month, day, hour"],
        ),
        (
            lambda: Datetime(name="t", lower="2020-01-02", upper="2021-01-01", resolution="month"),
            ["whole month"],
        ),
        (
            lambda: Datetime(name="t", lower="2020-02-01", upper="2021-01-01", resolution="year"),
            ["whole year"],
        ),
        (lambda: Identifier(name="id", prefix="P", dtype="int64"), ["'id'", "int64"]),
        (lambda: Identifier(name="id", width=4, dtype="int64"), ["'id'", "int64"]),
        (lambda: Identifier(name="id", width=0), ["'id'", "`width`", "1 to 40"]),
        (lambda: Identifier(name="id", dtype="uint8"), ["'id'", "uint8"]),
        (lambda: Categorical(name="c", values=["a"], ordered=True), ["'c'", "dtype: category"]),
        (lambda: Categorical(name="c", values=[1, 300], dtype="uint8"), ["'c'", "uint8", "fit"]),
        (
            lambda: Integer(name="a", lower=0, upper=300, dtype="int8[pyarrow]"),
            ["int8[pyarrow]", "fit"],
        ),
        (
            lambda: Integer(name="a", lower=0, upper=300, dtype="decimal128(4, 2)[pyarrow]"),
            ["decimal128", "fit"],
        ),
        (lambda: Integer(name="a", lower=0, upper=9, dtype="timedelta64[ns]"), ["timedelta64"]),
        (
            lambda: Integer(name="a", lower=0, upper=1_440, dtype="time", format="h:mm"),
            ["below 24 hours"],
        ),
        (
            lambda: Continuous(name="x", lower=0, upper=9, decimals=1, format="$1,234"),
            ["'x'", "no decimals"],
        ),
        (lambda: Integer(name="a", lower=5, upper=1_000, step=500), ["'a'", "`step` 500", "5 to"]),
        (lambda: Integer(name="a", lower=0, upper=9, step=0), ["'a'", "`step`", "at least 1"]),
        (lambda: Integer(name="a", lower=0, upper=9, step=3, spikes=[4]), ["'a'", "`spikes`"]),
        (
            lambda: Continuous(name="x", lower=0, upper=1, decimals=1, step=0.25),
            ["'x'", "0.25", "`decimals`: 1"],
        ),
        (
            lambda: Datetime(name="t", lower="2020-01-01", upper="2020-01-09", step=7),
            ["'t'", "`step` 7"],
        ),
        (
            lambda: Datetime(name="t", lower="2020-01-01", upper="2020-01-02", zone="Bonn"),
            ["'t'", "`zone`", "'Bonn' is no time zone", "Europe/Berlin"],
        ),
        (
            lambda: Datetime(name="t", lower="1901-01-01", upper="1950-01-02", zone="Asia/Tokyo"),
            ["'t'", "'Asia/Tokyo' is known from 1902 on"],
        ),
        (
            lambda: Datetime(
                name="t",
                lower="2020-01-01",
                upper="2020-01-02",
                dtype="date",
                zone="UTC",
            ),
            ["'t'", "days alone"],
        ),
    ],
)
def test_an_impossible_column_is_refused_with_its_name_and_key(build, words):
    with pytest.raises(SchemaError) as error:
        build()
    for word in words:
        assert word in str(error.value)


def test_columns_cannot_be_changed():
    column = Integer(name="a", lower=0, upper=1)
    with pytest.raises(Exception, match="frozen"):
        column.upper = 2


def test_categories_are_the_values_and_other_behind_them():
    assert Categorical(name="c", values=["b", 1, 2.5]).categories == ("b", 1, 2.5)
    assert Categorical(name="c", values=["b"], other="rest").categories == ("b", "rest")
    assert Categorical(name="c", values=["a", "b"], other="b").categories == ("a", "b")
    assert Categorical(name="c", values=["a", "b"], other="b").other_code == 1
    assert Categorical(name="c", values=["a"]).other_code is None


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (Categorical(name="c", values=["a", 1]), "object"),
        (Categorical(name="c", values=[1, 2]), "int64"),
        (Categorical(name="c", values=[1, 2], missing=True), "Int64"),
        (Categorical(name="c", values=[1, 2.5]), "float64"),
        (Categorical(name="c", values=[True, False]), "bool"),
        (Categorical(name="c", values=["a"], dtype="category"), "category"),
        (Boolean(name="b"), "bool"),
        (Boolean(name="b", missing=True), "boolean"),
        (Integer(name="i", lower=0, upper=1), "int64"),
        (Integer(name="i", lower=0, upper=1, missing=True), "Int64"),
        (Integer(name="i", lower=0, upper=1, missing=True, dtype="float64"), "float64"),
        (Continuous(name="x", lower=0, upper=1, decimals=2), "float64"),
        (Datetime(name="t", lower="2020-01-01", upper="2020-01-02"), "datetime64[ns]"),
        (Identifier(name="id"), "int64"),
        (Identifier(name="id", prefix="P"), "object"),
    ],
)
def test_each_kind_has_a_dtype_to_be_given_back_in(column, dtype):
    assert column.pandas_dtype == dtype
    pd.Series([], dtype=column.pandas_dtype)


def test_equal_values_have_one_text_whatever_their_type():
    assert {text_of(value) for value in (1, 1.0, "1", " 1 ")} == {"1"}
    assert text_of(True) != text_of(1)
    assert text_of(0.5) == "0.5"


@pytest.mark.parametrize(
    ("pattern", "resolution", "message"),
    [
        ("%Q", "day", "'%Q' is none of strptime's, such as %d/%m/%Y"),
        ("%d/%m", "day", "names no year"),
        ("%Y", "month", "names no month"),
        ("%m/%Y", "day", "names no day"),
        ("%H:%M", "minute", "names no year"),
        ("%d/%m/%Y", "day", None),
        ("%d %b %y %I:%M %p", "minute", None),
        ("%Y-%m-%dT%H:%M%z", "minute", None),
        ("%j of %Y", "day", None),
        ("%m/%Y", "month", None),
        ("%Y", "year", None),
    ],
)
def test_a_format_of_dates_is_read_back_to_the_day_month_or_year(pattern, resolution, message):
    ends = {"lower": "2020-01-01", "upper": "2022-01-01", "resolution": resolution}
    if message is None:
        assert Datetime(name="t", format=pattern, **ends).format == pattern
        return
    with pytest.raises(SchemaError, match=message):
        Datetime(name="t", format=pattern, **ends)
