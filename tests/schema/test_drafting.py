from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.conforming import conform, restore
from fedsynth.data.tables import read_table
from fedsynth.errors import DataError, SchemaError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from fedsynth.schema.checking import check


def draft(cells, target=None, name="a", **options):
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, **options)
    return Schema.draft(pd.DataFrame({name: series}).assign(other=True), target).columns[0]


_cells = st.one_of(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.lists(st.none() | st.floats(0, 1).map(lambda x: round(x, 3)), min_size=1, max_size=30),
    st.lists(st.none() | st.booleans(), min_size=1, max_size=30),
    st.lists(st.none() | st.text(max_size=4), min_size=1, max_size=30),
    st.lists(st.datetimes(pd.Timestamp("1800-01-01"), pd.Timestamp("2200-01-01")), min_size=1),
    st.lists(st.dates().map(str), min_size=1, max_size=30),
    st.lists(st.sampled_from([1, "1", 1.0, True, "a", None, "?", "NA", "007"]), min_size=1),
)


@given(_cells)
@settings(max_examples=60, deadline=None)
def test_a_drafted_schema_allows_every_row_it_was_drafted_from(cells):
    frame = pd.DataFrame({"a": pd.Series(cells)})
    schema = Schema.draft(frame.assign(b=[True] * len(frame)))
    assert check(frame.assign(b=True), schema) == []
    result = conform(frame.assign(b=True), schema)
    assert sum(result.outside.values()) == 0
    restored = restore(result.columns, schema, np.random.default_rng(0))
    assert len(restored) == len(frame)


def test_integers_get_the_bounds_found():
    column = draft([5, 90, 17, *range(20, 40)])
    assert column == Integer(name="a", lower=5, upper=90)
    gaps = draft([5.0, 90.0, None, *range(20, 40)])
    assert gaps == Integer(name="a", lower=5, upper=90, missing=True, dtype="float64")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "Int32", "int64"])
def test_the_dtype_is_kept(dtype):
    column = draft([5, 100, 17, *range(20, 40)], dtype=dtype)
    assert column.pandas_dtype == dtype
    assert draft(["x", "y"] * 5, dtype="category").pandas_dtype == "category"
    assert draft(["x", "y"] * 5, dtype="string").pandas_dtype == "string"


@pytest.mark.parametrize(
    ("cells", "decimals", "lower", "upper"),
    [
        ([0.5, 1.25, 3.0], 2, 0.5, 3.0),
        ([-0.001, 7.0], 3, -0.001, 7.0),
        ([1e-7, 2e-7], 7, 1e-7, 2e-7),
        ([0.1, None, 0.2], 1, 0.1, 0.2),
    ],
)
def test_decimals_are_the_fewest_that_hold_every_number(cells, decimals, lower, upper):
    column = draft(cells)
    assert isinstance(column, Continuous)
    assert (column.decimals, column.lower, column.upper) == (decimals, lower, upper)


def test_decimals_of_single_precision_numbers_are_those_they_were_written_with():
    column = draft([0.1, 0.25, 3.3], dtype="float32")
    assert (column.decimals, column.dtype) == (2, "float32")


def test_numbers_of_full_precision_get_eight_digits_and_bounds_that_hold_them():
    values = np.random.default_rng(0).normal(0, 100, 500)
    column = draft(values)
    assert column.decimals == 5
    assert column.lower <= values.min() < values.max() <= column.upper


def test_infinite_numbers_do_not_become_bounds():
    column = draft([0.5, np.inf, -np.inf, 1.5])
    assert (column.lower, column.upper) == (0.5, 1.5)


def test_few_whole_numbers_are_categories_and_so_is_a_target():
    assert draft([0, 1] * 20) == Categorical(name="a", values=[0, 1])
    grades = list(range(30)) * 2
    assert draft(grades) == Integer(name="a", lower=0, upper=29)
    assert draft(grades, target="a") == Categorical(name="a", values=range(30))


def test_texts_are_categories_in_their_own_spelling():
    column = draft(["b ", "a", "b ", None] * 5)
    assert column == Categorical(name="a", values=["a", "b "], missing=True)


def test_texts_beyond_five_hundred_fall_into_other():
    cells = [f"word {i % 700}" for i in range(700)] + [f"word {i}" for i in range(300)]
    column = draft(cells)
    assert len(column.values) == 500
    assert column.other == "other"
    assert {f"word {i}" for i in range(300)} <= set(column.values)


def test_a_column_of_numbers_and_words_is_categorical():
    assert draft([1, 2, "NUH", 2] * 4) == Categorical(name="a", values=[1, 2, "NUH"])
    assert draft(["1", "2", "NUH", "2"] * 4) == Categorical(name="a", values=["1", "2", "NUH"])


def test_distinct_texts_and_counted_rows_are_identifiers():
    assert draft([f"P{i:03d}" for i in range(1, 30)]) == Identifier(name="a", prefix="P")
    names = draft([f"{chr(97 + i)}x" for i in range(20)])
    assert names == Identifier(name="a", prefix="a-")
    assert draft(range(100, 150)) == Identifier(name="a")
    scattered = [i * i for i in range(50)]
    assert draft(scattered, name="patient_id") == Identifier(name="patient_id")
    assert draft(scattered) == Integer(name="a", lower=0, upper=49**2)


def test_markers_of_missing_values_are_found():
    frame = pd.DataFrame(
        {
            "n": ["1", "?", "3", "NA"] * 5,
            "c": ["x", "?", "NA", "y"] * 5,
            "b": [True, False] * 10,
        }
    )
    schema = Schema.draft(frame)
    assert set(schema.missing_values) == {"?", "NA"}
    assert schema.column("n").missing
    # Among words NA may be Namibia, and a declared category is one.
    assert schema.column("c") == Categorical(name="c", values=["NA", "x", "y"], missing=True)


def test_codes_with_leading_zeros_stay_text():
    assert draft(["007", "008", "007"] * 4).values == ("007", "008")


@pytest.mark.parametrize("dtype", [None, "bool", "boolean"])
def test_truth_values_are_boolean(dtype):
    assert isinstance(draft([True, False], dtype=dtype), Boolean)
    gaps = draft([True, None, False])
    assert gaps == Boolean(name="a", missing=True, dtype="object")


@pytest.mark.parametrize(
    ("cells", "resolution", "pattern"),
    [
        (pd.to_datetime(["2020-01-01", "2020-03-01"]), "day", None),
        (pd.to_datetime(["2020-01-01 05:00", "2020-03-01 06:00"]), "hour", None),
        (pd.to_datetime(["2020-01-01 05:01", "2020-03-01 06:00"]), "minute", None),
        (pd.to_datetime(["2020-01-01 05:01:02", "2020-03-01 06:00:00"]), "second", None),
        (["2020-01-01", "2020-03-01"], "day", None),
        (["31/01/2020", "01/03/2020"], "day", "%d/%m/%Y"),
        (["01/31/2020", "03/01/2020"], "day", "%m/%d/%Y"),
        (["31.01.2020 10:30", "01.03.2020 11:45"], "minute", "%d.%m.%Y %H:%M"),
        ([datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)], "day", None),
    ],
)
def test_dates_get_their_resolution_and_format(cells, resolution, pattern):
    column = draft(pd.Series(cells))
    assert isinstance(column, Datetime)
    assert (column.resolution, column.format) == (resolution, pattern)


def test_all_missing_and_constant_columns_are_drafted():
    for cells in ([None, None], [np.nan, np.nan], ["", "?"], pd.Series([None], dtype="string")):
        assert draft(cells).missing
    assert draft([7, 7]) == Integer(name="a", lower=7, upper=7)


def test_an_empty_or_ambiguous_table_is_refused():
    with pytest.raises(DataError, match="no rows"):
        Schema.draft(pd.DataFrame({"a": []}))
    with pytest.raises(DataError, match="'a'"):
        Schema.draft(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(SchemaError, match="'y'"):
        Schema.draft(pd.DataFrame({"a": [1, 2]}), target="y")
    with pytest.raises(SchemaError, match=r"'a'.*drop the rows"):
        Schema.draft(pd.DataFrame({"a": ["x", None]}), target="a")


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("adult/adult", "income"),
        ("audit/audit_risk", "Risk"),
        ("bank_marketing/bank_full", "y"),
        ("breast_cancer/breast_cancer_wisconsin_original", "Class"),
        ("credit_default/credit_default", "default payment next month"),
        ("iris/iris", "class"),
    ],
)
def test_real_tables_are_drafted_without_a_value_outside(file, target, shared_data):
    table = read_table(shared_data / f"{file}.csv.gz")
    schema = Schema.draft(table, target)
    assert check(table, schema) == []
    assert schema.classes == table[target].nunique()


@pytest.mark.parametrize(
    "cells",
    [
        [[1], [2]],
        [{"a": 1}, {"a": 2}],
        [1j, 2j],
        pd.to_timedelta([1, 2], unit="D"),
        pd.interval_range(0, 2),
    ],
)
def test_cells_that_no_column_can_hold_are_named(cells):
    with pytest.raises(DataError, match="column 'odd' holds"):
        Schema.draft(pd.DataFrame({"odd": pd.Series(cells), "x": [1, 2]}))
