from __future__ import annotations

import datetime
import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.data.conforming import conform, restore
from fedsynth.data.tables import read_table
from fedsynth.errors import DataError, SchemaError
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Schema,
    date_formats,
    reading,
)
from fedsynth.schema.checking import check


def draft(cells, target=None, name="a", **options):
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, **options)
    return fs.draft(pd.DataFrame({name: series}).assign(other=True), target).schema.columns[0]


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


# Long enough for a cell or two to be odd among numbers and dates.
_dirty = st.tuples(
    st.sampled_from([[f"{i}.5" for i in range(300)], [f"2020-01-{i % 28 + 1}" for i in range(300)]])
    | st.just([f"{i % 12 + 1}/{i % 28 + 1}/2020 01:30 PM" for i in range(300)])
    | st.just([f"${i * 97:,}.50" for i in range(300)])
    | st.just([f"{i},{i % 9} %" for i in range(300)])
    | st.just([f"{i % 24}:{i % 60:02d}" for i in range(300)]),
    st.lists(
        st.sampled_from(["n.a.", "NA", "<5", "x", "2020-02-30", "9999-12-31", "inf", "-", "7"])
        | st.sampled_from(["$5", "€5", "5 %", "1.5", "90.5", "1:30", "($3)"])
        | st.text(max_size=3),
        max_size=5,
    ),
).map(lambda parts: parts[0] + parts[1])


def draft_naming_all(tables):
    """A draft whose findings name every odd cell, and not the first five of many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_SHOWN", 10**6)
        return fs.draft(tables)


def named(findings):
    return {cell for one in findings if one.kind == "unreadable" for cell in one.cells}


@given(_cells | _dirty)
@settings(max_examples=10, deadline=None)
def test_a_drafted_schema_allows_every_row_but_for_the_cells_named(cells):
    frame = pd.DataFrame({"a": pd.Series(cells)}).assign(b=True)
    found = draft_naming_all(frame)
    schema = found.schema
    outside = check(frame, schema)
    assert {str(one.value).strip() for one in outside} <= named(found.findings)
    result = conform(frame, schema)
    assert sum(result.outside.values()) == sum(one.count for one in outside)
    assert not outside or schema.column("a").missing
    restored = restore(result.columns, schema, np.random.default_rng(0))
    assert len(restored) == len(frame)


@pytest.mark.parametrize(
    ("lowest", "highest", "bounds"),
    [
        (5, 87, (0, 100)),
        (18, 89, (10, 90)),
        (1_234, 98_765, (0, 100_000)),
        (-7, 23, (-10, 25)),
        (40, 53, (40, 54)),
        (2**53 - 99, 2**53 - 1, (2**53 - 112, 2**53)),
    ],
)
def test_bounds_of_integers_are_rounded_outwards(lowest, highest, bounds):
    # Some ten more numbers, or few would be labels.
    column = draft([lowest, highest, *range(lowest, lowest + 12), lowest])
    assert (column.lower, column.upper) == bounds


def test_integers_with_gaps_may_be_missing():
    gaps = draft([5.0, 87.0, None, *range(20, 40)])
    assert gaps == Integer(name="a", lower=0, upper=100, missing=True, dtype="float64")


@given(st.lists(st.integers(-(2**53), 2**53) | st.integers(-99, 99), min_size=2, max_size=9))
@settings(max_examples=20, deadline=None)
def test_rounded_bounds_hold_all_and_widen_the_range_by_half_at_most(numbers):
    column = draft(pd.Series([*numbers, numbers[0]], dtype="int64"))
    lowest, highest = min(numbers), max(numbers)
    assert column.lower <= lowest <= highest <= column.upper
    assert column.upper - column.lower <= 1.5 * (highest - lowest)


def test_rounded_bounds_stay_within_what_the_dtype_holds():
    column = draft([0, 255, *range(0, 200, 9)], dtype="uint8")
    assert (column.lower, column.upper, column.dtype) == (0, 255, "uint8")


@pytest.mark.parametrize(
    ("first", "last", "lower", "upper"),
    [
        ("1934-05-06", "2003-02-01", "1934-01-01", "2003-12-31"),
        ("2020-02-03", "2020-06-05", "2020-02-01", "2020-06-30"),
        ("2020-02-03 05:06", "2020-02-04 07:08", "2020-02-03 00:00", "2020-02-04 23:59"),
        ("1678-03-01", "2261-03-01", "1678-01-01", "2261-12-31"),
    ],
)
def test_bounds_of_dates_are_whole_years_months_or_days(first, last, lower, upper):
    column = draft([first, last])
    assert (pd.Timestamp(column.lower), pd.Timestamp(column.upper)) == (
        pd.Timestamp(lower),
        pd.Timestamp(upper),
    )


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
        ([-0.001, 7.0], 3, -1.0, 7.0),
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
    assert (column.lower, column.upper) == (0.4, 1.6)


def test_few_whole_numbers_are_categories_and_so_is_a_target():
    assert draft([0, 1] * 20) == Categorical(name="a", values=[0, 1])
    grades = list(range(30)) * 2
    assert draft(grades) == Integer(name="a", lower=0, upper=30)
    assert draft(grades, target="a") == Categorical(name="a", values=range(30))


def test_texts_are_categories_in_their_own_spelling():
    column = draft(["b ", "a", "b ", None] * 5)
    assert column == Categorical(name="a", values=["a", "b "], missing=True)


def test_texts_beyond_five_thousand_fall_into_other_and_their_share_is_told():
    cells = [f"word {i}" for i in range(7_000)] + [f"word {i}" for i in range(3_000)]
    found = fs.draft(pd.DataFrame({"word": cells}))
    (column,) = found.schema.columns
    assert len(column.values) == 5_000
    assert column.other == "other"
    assert {f"word {i}" for i in range(3_000)} <= set(column.values)
    # 2,000 values that occur once fall out of 10,000 rows.
    told = "word: 7,000 values, 5,000 kept: 20 % of the rows become 'other'"
    assert [str(one) for one in found.findings] == [told]


def test_what_means_missing_elsewhere_is_kept_where_values_are_cut():
    words = [f"w{i}" for i in range(6_000)] * 2 + ["NA"]
    frame = pd.DataFrame({"a": words, "b": ["1"] * 12_000 + ["NA"]})
    found = fs.draft(frame)
    assert "NA" in found.schema.missing_values
    cut = {one.value for one in check(frame, found.schema)}
    assert "NA" not in cut and None not in cut


_DAYS = pd.date_range("2015-01-01", periods=400, freq="31h")
_NUMBERS = [f"{i / 7:.5f}" for i in range(400)]


@pytest.mark.parametrize(
    ("cells", "kind", "odd"),
    [
        ([*_NUMBERS[1:], "n.a."], Continuous, ()),
        ([*_NUMBERS[1:], "<5"], Continuous, ("<5",)),
        ([*_NUMBERS[1:], "inf"], Continuous, ("inf",)),
        ([*map(str, range(900, 1299)), "<5"], Integer, ("<5",)),
        ([*_DAYS[1:].strftime("%Y-%m-%d %H:%M"), "2020-02-30 10:00"], Datetime, ("2020-02-30",)),
        ([*_DAYS[1:].strftime("%d.%m.%Y"), "soon"], Datetime, ("soon",)),
        ([*_DAYS[1:].date, datetime.date(3020, 1, 1)], Datetime, ("3020-01-01",)),
    ],
)
def test_one_bad_cell_does_not_decide_and_is_named(cells, kind, odd):
    found = fs.draft(pd.DataFrame({"a": cells, "b": True}))
    column = found.schema.column("a")
    assert isinstance(column, kind) and column.missing
    assert len(named(found.findings)) == len(odd)
    assert all(cell.startswith(odd) for cell in named(found.findings))
    told = [one.text for one in found.findings if one.kind == "unreadable"]
    assert all(text.startswith("1 of 400 cells is no ") for text in told)


def test_three_bad_cells_in_a_hundred_make_a_text():
    assert isinstance(draft([*_NUMBERS[:97], "a", "b", "c"] * 2), Categorical)
    assert isinstance(draft([*_NUMBERS[:98], "a", "b"] * 2), Continuous)


def test_words_among_few_numbers_or_codes_are_labels():
    cells = [str(i % 5) for i in range(399)]
    assert draft([*cells, "none of them"]).values == ("0", "1", "2", "3", "4", "none of them")
    codes = [str(i % 45) for i in range(799)]
    assert "LOHARU" in draft([*codes, "LOHARU"], name="location_id").values


def test_the_year_9999_means_missing_and_is_no_text_for_it():
    cells = ["9999-12-31" if i % 3 == 0 else str(day.date()) for i, day in enumerate(_DAYS)]
    gaps = [None if i % 2 else i for i in range(400)]
    found = fs.draft(pd.DataFrame({"a": cells, "b": gaps}))
    column = found.schema.column("a")
    assert isinstance(column, Datetime) and column.missing and column.upper.year == 2016
    assert found.schema.missing_values == ("", "9999-12-31")
    assert str(found.findings[0]).startswith("a: 134 of 400 cells say the year 9999")
    native = [datetime.date.fromisoformat(cell) for cell in cells]
    assert draft(native).upper == column.upper


def test_missing_is_spelled_in_all_its_ways_among_dates():
    cells = ["NA" if i % 5 == 0 else str(day.date()) for i, day in enumerate(_DAYS)]
    column = draft(cells)
    assert isinstance(column, Datetime) and column.missing


@pytest.mark.parametrize(
    ("cells", "expected", "words"),
    [
        (
            [f"${i * 97:,}.50" for i in range(1, 400)],
            Continuous(name="a", lower=0, upper=40_000, decimals=2, format="$1,234.50"),
            "read as amounts such as $1,234.50: the column is the number",
        ),
        (
            [f"{i * 97},50 EUR" for i in range(1, 400)],
            Continuous(name="a", lower=0, upper=40_000, decimals=2, format="1234,50 EUR"),
            "amounts such as 1234,50 EUR",
        ),
        (
            [f"({i:,})" if i % 5 == 0 else f"{i:,}" for i in range(-999_999, 2_000_000, 9_999)],
            Integer(name="a", lower=-2_000_000, upper=2_000_000, format="(1,234)"),
            "numbers such as (1,234)",
        ),
        (
            [f"{i * 0.25:g} %" for i in range(400)],
            Continuous(name="a", lower=0, upper=100, decimals=2, format="1234.5 %"),
            "percentages such as 1234.5 %: the column is the figure before the sign",
        ),
        (
            [f"{i},{i % 9}" for i in range(400)],
            Continuous(name="a", lower=0, upper=400, decimals=1, format="1234,50"),
            "numbers such as 1234,50",
        ),
        (
            [f"{i:02d}:{i % 60:02d}:59" for i in range(40)],
            # 0 s to 39:39:59, which is 142,799 s.
            Integer(name="a", lower=0, upper=160_000, format="hh:mm:ss"),
            "durations such as hh:mm:ss: the column is the number of seconds",
        ),
        (
            [f"{i} min" for i in range(400)],
            Integer(name="a", lower=0, upper=400, format="1234 min"),
            "durations such as 1234 min: the column is the number of minutes",
        ),
        (
            [f"PT{i}H{i + 1}M" for i in range(1, 59)],
            Integer(name="a", lower=0, upper=250_000, format="PT1H30M"),
            "the column is the number of seconds",
        ),
    ],
)
def test_numbers_in_a_notation_are_drafted_as_numbers(cells, expected, words):
    found = fs.draft(pd.DataFrame({"a": cells, "b": True}))
    assert found.schema.column("a") == expected.model_copy(update={"dtype": "object"})
    assert words in next(str(one) for one in found.findings if one.kind == "notation")
    assert not check(pd.DataFrame({"a": cells, "b": True}), found.schema)


def test_a_notation_that_may_mean_two_numbers_is_told():
    kinds = findings_of(["1,234", "12,500", "7,001", "999"] * 5)
    assert "read as 1,234, but every cell would fit 1234,5 too" in kinds["ambiguous"].text
    assert "would fit m:ss too" in findings_of(["1:30", "0:45"] * 5)["ambiguous"].text
    for sure in (["1,234,567", "1,234"] * 5, ["1:30:00", "0:45:00"] * 5, ["1,234.5", "9.5"] * 5):
        assert "ambiguous" not in findings_of(sure)


def test_amounts_in_several_currencies_are_not_merged():
    found = findings_of([f"{'$' if i % 2 else '€'}{i * 7}" for i in range(40)])
    assert "amounts in €, $" in found["notation"].text and "identifier" in found


def test_one_amount_in_another_currency_is_named_and_outside():
    frame = pd.DataFrame({"a": [*(f"${i * 7}" for i in range(99)), "€5"], "b": True})
    found = fs.draft(frame)
    assert named(found.findings) == {"€5"}
    assert found.schema.column("a").format == "$1234"


def test_plain_numbers_beside_a_notation_are_read_and_counted():
    found = findings_of(["$1,250.00", "$17.50", "3.25"] * 20)
    assert "20 of 60 cells are plain numbers" in found["notation"].text
    assert "20 of 60 cells come back" in found["spelling"].text


def test_decimals_of_plain_numbers_are_kept_beside_a_notation_without_any():
    cells = ["5 %", "1 %", "2.5"] * 9
    column = draft(cells)
    assert (column.format, column.decimals) == ("1234.5 %", 1)
    frame = pd.DataFrame({"a": [*(f"{i}:{i:02d}" for i in range(59)), "90.5"], "b": True})
    assert named(fs.draft(frame).findings) == {"90.5"}


def test_a_target_in_a_notation_stays_a_label():
    column = draft(["5 %", "10 %"] * 9, target="a")
    assert column == Categorical(name="a", values=["10 %", "5 %"])


def test_durations_and_times_of_day_are_numbers_in_their_longest_unit():
    days = draft(pd.to_timedelta([i * i for i in range(40)], unit="D"))
    assert (days.format, days.upper, days.dtype) == ("1234 d", 1_600, "timedelta64[ns]")
    fine = draft(pd.to_timedelta([i * i * 1_250 for i in range(40)], unit="ms"))
    assert (fine.format, fine.decimals) == ("h:mm:ss", 2)
    cells = [datetime.time(i % 24, i % 60) for i in range(60)]
    times = draft(cells)
    # The last minute of a day is 24 * 60 - 1.
    assert (times.format, times.lower, times.upper, times.dtype) == ("hh:mm", 0, 1_439, "time")
    assert "times of day" in findings_of(cells)["notation"].text


@pytest.mark.parametrize(
    "cells",
    [
        *(["10.0.1.7", "10.0.2.9"], ["A00.6", "B01.2"], ["007", "1"], ["3-4", "1-12"]),
        *(["555 123 456", "555 999 111"], ["0,1,2", "3,4,5"], ["room 12", "room 7"]),
    ],
)
def test_codes_are_no_numbers_in_a_notation(cells):
    found = fs.draft(pd.DataFrame({"a": cells * 5, "b": True}))
    assert [one.kind for one in found.findings if one.column == "a"] == []


def test_dates_that_fit_two_formats_are_told():
    found = fs.draft(pd.DataFrame({"a": ["01/02/2020", "03/04/2020"] * 5, "b": True}))
    assert found.schema.column("a").format == "%d/%m/%Y"
    assert "fit %m/%d/%Y too" in str(found.findings[0])
    assert not fs.draft(pd.DataFrame({"a": ["01/01/2020", "03/03/2020"]})).findings


def test_a_draft_in_python_warns_without_cells_and_counts():
    frame = pd.DataFrame({"a": [*_NUMBERS[1:], "<5"]})
    with pytest.warns(UserWarning, match=r"a \(unreadable\)") as caught:
        Schema.draft(frame)
    assert "<5" not in str(caught[0].message) and "400" not in str(caught[0].message)


def test_a_column_of_numbers_and_words_is_categorical():
    assert draft([1, 2, "NUH", 2] * 4) == Categorical(name="a", values=[1, 2, "NUH"])
    assert draft(["1", "2", "NUH", "2"] * 4) == Categorical(name="a", values=["1", "2", "NUH"])


def test_distinct_texts_and_counted_rows_are_identifiers():
    padded = Identifier(name="a", prefix="P", width=3)
    assert draft([f"P{i:03d}" for i in range(1, 30)]) == padded
    plain = Identifier(name="a", prefix="P", width=1)
    assert draft([f"P{i}" for i in range(1, 30)]) == plain
    names = draft([f"{chr(97 + i)}x" for i in range(20)])
    assert names == Identifier(name="a", prefix="a-")
    assert draft(range(100, 150)) == Identifier(name="a")
    scattered = [i * i for i in range(50)]
    assert draft(scattered, name="patient_id") == Identifier(name="patient_id")
    assert draft(scattered) == Integer(name="a", lower=0, upper=2_500)


def test_markers_of_missing_values_are_found():
    frame = pd.DataFrame(
        {
            "n": ["1", "?", "3", "NA "] * 5,
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


def test_texts_have_the_marks_of_their_format_as_often_as_it():
    """So no format that reads a text is passed over for its marks."""
    moments = pd.date_range("1999-12-30", periods=40, freq="29D3h59min")
    for pattern in date_formats._PATTERNS[1:]:
        texts = moments.strftime(pattern)
        assert {*map(date_formats._marks_of, texts)} == {date_formats._marks_of(pattern)}
        assert date_formats._parse(texts.to_series(), pattern).notna().all()


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
        (["01/31/2020 01:05 PM", "03/01/2020 12:00 AM"], "minute", "%m/%d/%Y %I:%M %p"),
        (["Jan 31 2020 13:05", "Mar 01 2020 00:00"], "minute", "%b %d %Y %H:%M"),
        (["31. January 2020", "1. March 2020"], "day", "%d. %B %Y"),
        (["01/31/20", "03/01/20"], "day", "%m/%d/%y"),
        (["01/31/69", "03/01/68"], "day", "%m/%d/%y"),
        ([datetime.date(2020, 1, 1), datetime.date(2020, 3, 1)], "day", None),
        (["2020-01-01", "2020-03-01", "2020-04-01"], "month", None),
        (["2020-01", "2020-03", "2021-04"], "month", None),
        (["01/02/2019", "01/03/2020", "01/04/2024"], "month", "%d/%m/%Y"),
        (["2016-01-01", "2020-01-01", "2021-01-01"], "year", None),
        (["2020-01-01", "2020-03-01", "2020-04-02"], "day", None),
    ],
)
def test_dates_get_their_resolution_and_format(cells, resolution, pattern):
    column = draft(pd.Series(cells))
    assert isinstance(column, Datetime)
    assert (column.resolution, column.format) == (resolution, pattern)
    schema = Schema(columns=[column])
    ends = restore({"a": np.array([column.low, column.high])}, schema, np.random.default_rng(0))
    assert check(ends, schema) == []
    assert conform(ends, schema).columns["a"].tolist() == [column.low, column.high]


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
def test_real_tables_are_drafted_without_a_value_outside(file, target, shared_data, tmp_path):
    with gzip.open(shared_data / f"{file}.csv.gz", "rt", encoding="utf-8") as lines:
        names, *rows = lines
    # Of the larger 800 rows.
    few = tmp_path / "few.csv"
    few.write_text("".join([names, *rows[:: max(len(rows) // 800, 1)]]), encoding="utf-8")
    table = read_table(few)
    schema = fs.draft(table, target).schema
    assert check(table, schema) == []
    assert schema.classes == table[target].nunique()


@pytest.mark.parametrize(
    "cells",
    [
        [[1], [2]],
        [{"a": 1}, {"a": 2}],
        [1j, 2j],
        pd.interval_range(0, 2),
        pd.period_range("2020-01", periods=2, freq="M"),
    ],
)
def test_cells_that_no_column_can_hold_are_named(cells):
    with pytest.raises(DataError, match="column 'odd' holds"):
        Schema.draft(pd.DataFrame({"odd": pd.Series(cells), "x": [1, 2]}))


def findings_of(cells, name="a"):
    found = fs.draft(pd.DataFrame({name: cells, "b": [True, False] * (len(cells) // 2)}))
    return {one.kind: one for one in found.findings if one.column == name}


@pytest.mark.parametrize(
    ("name", "cells", "word"),
    [
        ("contact", ["jo@example.org", "ann.b@uni.example.ac.uk"] * 5, "e-mail"),
        ("contact", ["+49 30 1234567", "0171/1234567"] * 5, "telephone"),
        ("contact", ["(555) 123-4567", "555-123-9999"] * 5, "telephone"),
        ("account", ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"] * 5, "IBAN"),
        ("Last Name", ["Smith", "Jones", "Meyer", "Wu"] * 5, "names of persons"),
        ("zip_code", ["02139", "10001", "94110", "60601"] * 5, "postcodes"),
        ("PLZ", [10115, 20095, 80331, 50667] * 5, "postcodes"),
        ("dob", ["1950-01-02", "1970-05-06", "1980-03-01", "1990-02-02"], "birth dates"),
        ("ssn", ["123-45-6789", "987-65-4321", "111-22-3333", "4"] * 5, "numbers of persons"),
    ],
)
def test_what_looks_personal_is_told(name, cells, word):
    assert word in findings_of(cells, name)["personal"].text


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("email", ["yes", "no"] * 5),
        ("day", ["01/01/2020", "03/03/2020"] * 5),
        ("filename_length", [3, 4, 5, 6] * 5),
        ("code", ["A00.6", "B01.2"] * 5),
        ("job", ["nurse", "cook", "pilot", "judge"] * 5),
        ("birth_weight", [3100, 2900, 3500, 4000] * 5),
    ],
)
def test_what_is_not_personal_is_not_told(name, cells):
    assert "personal" not in findings_of(cells, name)


def test_keys_and_nearly_keys_are_told_with_their_counts():
    names = [f"n{chr(97 + i % 26)}{i}q" for i in range(500)]
    assert "500 of 500 occur once" in findings_of(names)["identifier"].text
    nearly = findings_of([*names[:-2], names[0], names[0]])["identifier"]
    assert "497 of 500 occur once" in nearly.text and "declare them" in nearly.text
    scattered = [i * i for i in range(498)]
    assert "near-key" in findings_of([*scattered, 0, 0], "invoice_no")
    assert "near-key" not in findings_of([*scattered, 0, 0], "income")


@pytest.mark.parametrize(
    "cells",
    [
        [f"n{i}q" for i in range(96)] + ["n0q"] * 4,
        [f"n{i}q" for i in range(96)] + [None] * 4,
        [f"p{i}@example.org" for i in range(25)] * 4,
        [f"+49 30 12345{i}" for i in range(10, 35)] * 4,
        [f"came with cough number {i} on monday" for i in range(60)]
        + ["no words at all today"] * 40,
    ],
)
def test_texts_of_single_persons_are_not_listed_in_a_schema(cells):
    schema = fs.draft(pd.DataFrame({"a": cells, "b": [True, False] * 50})).schema
    assert isinstance(schema.column("a"), Identifier)
    # The target is what its owners want learned, whatever it looks like.
    assert isinstance(
        fs.draft(pd.DataFrame({"a": cells[:96], "b": True}), "a").schema.columns[0], Categorical
    )


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([*range(90, 180), *[-999] * 10], "-999"),
        ([*np.linspace(0, 5, 90), *[99.0] * 10], "99"),
        ([*range(20, 180), *[-9] * 10], None),
        ([*range(90, 180), *[-500] * 10], None),
        ([*range(99), -999], None),
    ],
)
def test_numbers_that_may_stand_for_missing_are_told(cells, told):
    found = findings_of(cells).get("sentinel")
    if told is None:
        assert found is None
        return
    # Figures of private rows are apart from the words, which warnings repeat.
    assert found.cells == (told,) and told not in found.text


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([500 * (k % 37) for k in range(200)], "500"),
        ([0.25 * (k % 37) for k in range(200)], "0.25"),
        ([500 * (k % 37) + (k == 7) for k in range(200)], None),
        ([500 * (k % 9) for k in range(20)], None),
    ],
)
def test_numbers_in_steps_are_told_and_the_step_is_left_to_declare(cells, told):
    drafted = fs.draft(pd.DataFrame({"a": cells, "b": [True, False] * (len(cells) // 2)}))
    steps = [one.cells for one in drafted.findings if one.kind == "step"]
    assert steps == ([] if told is None else [(told,)])
    assert getattr(drafted.schema.column("a"), "step", None) is None
    if told is not None:
        assert drafted.schema.edit("a", step=float(told)).column("a").step == float(told)


def test_owners_whose_texts_are_nearly_keys_are_judged_together():
    """Each owner's codes hardly repeat, all owners' do."""
    codes = [f"c{number}x" for number in range(60)]
    owners = {name: pd.DataFrame({"a": codes, "b": True}) for name in ("north", "south")}
    assert isinstance(fs.draft(owners).schema.column("a"), Identifier)
    nearly = {name: frame.assign(a=[*codes[1:], codes[1]]) for name, frame in owners.items()}
    assert isinstance(fs.draft(nearly).schema.column("a"), Categorical)


def test_rare_values_are_told_and_quoted():
    rare = findings_of(["x"] * 50 + ["y"] * 47 + ["z", "z", "king"])["rare"]
    assert rare.text.startswith("2 of 4 values occur once or twice") and set(rare.cells) == {
        "z",
        "king",
    }
    assert not findings_of(["x"] * 50 + ["y"] * 47 + ["z"] * 3)


def test_constant_columns_and_free_text_are_told():
    assert "constant" in findings_of([7] * 20)
    words = [f"came with cough number {i} on monday" for i in range(30)]
    assert "free-text" in findings_of(words + words[:4])
    assert "free-text" not in findings_of(["a b c d e f", "g h i j k l"] * 10)


def differences(**owners):
    """Of column a, from each owner's cells."""
    frames = {
        owner: pd.DataFrame({"b": [True] * 20} if cells is None else {"a": cells, "b": True})
        for owner, cells in owners.items()
    }
    found = fs.draft(frames)
    kinds = ("absent", "empty", "type", "values", "range")
    return found.schema, {one.kind: one for one in found.findings if one.kind in kinds}


def test_owners_spelling_categories_otherwise_are_told():
    schema, found = differences(north=["M", "F"] * 10, west=["F", "M"] * 10, south=["m", "w"] * 10)
    assert set(schema.column("a").values) == {"M", "F", "m", "w"}
    assert set(found) == {"values"} and "100 % of the cells at south" in found["values"].text
    assert set(found["values"].cells) == {"m", "w"}


def test_owners_counting_in_another_unit_are_told():
    years = [18 + i % 72 for i in range(200)]
    _, found = differences(north=years, west=years[::-1], south=[12 * year for year in years])
    assert "at south lie outside" in found["range"].text
    # The median of 18, 19, .. 89, weighted by 200 = 2 * 72 + 56 rows, and twelve times it.
    middle = float(np.median(years))
    assert found["range"].cells == (f"{12 * middle:.4g}", f"{middle:.4g}")
    assert "by its median and theirs" in found["range"].text


def test_owners_writing_a_column_otherwise_are_told():
    days = pd.date_range("2020-01-13", periods=40)
    _, found = differences(north=days.strftime("%d.%m.%Y"), south=days.strftime("%Y-%m-%d"))
    told = "differs between owners: dates as %d.%m.%Y at north; dates as ISO 8601 at south"
    assert found["type"].text == told
    zoned = days.tz_localize("Europe/Berlin")
    _, found = differences(north=zoned, south=days)
    assert "dates as ISO 8601 in Europe/Berlin at north; dates as ISO" in found["type"].text
    amounts = [f"€{i}.{i:03d},50" for i in range(1, 41)]
    schema, found = differences(north=amounts, south=[i * 1_001.5 for i in range(1, 41)])
    assert "numbers as €1.234,50 at north; numbers at south" in found["type"].text
    assert schema.column("a").format == "€1.234,50"
    _, found = differences(north=range(40), south=["low", "high"] * 20)
    assert "numbers at north; texts at south" in found["type"].text
    numbers = [i * i for i in range(40)]
    _, found = differences(north=numbers, south=[str(number) for number in numbers])
    assert "numbers at north; numbers in texts at south" in found["type"].text


def test_a_column_that_another_owner_spells_otherwise_is_named():
    rows = ["x", "y"] * 20
    tables = {"north": pd.DataFrame({"a b": rows}), "south": pd.DataFrame({"A_B": rows})}
    told = [str(one) for one in fs.draft(tables).differences]
    assert [one.rpartition("rename what may be it: ")[2] for one in told] == [
        "'A_B' at south",
        "'a b' at north",
    ]


def test_columns_that_an_owner_lacks_are_told():
    schema, found = differences(north=["x", "y"] * 10, south=None, west=[None] * 20)
    assert "absent at south" in found["absent"].text and "at west" in found["empty"].text
    assert schema.column("a") == Categorical(name="a", values=["x", "y"], missing=True)


def test_owners_alike_differ_in_nothing():
    rng = np.random.default_rng(0)
    for cells in (rng.normal(0, 1, (3, 50)), rng.integers(0, 99, (3, 50)), rng.choice(5, (3, 50))):
        assert differences(north=cells[0], south=cells[1], west=cells[2])[1] == {}


def test_keys_that_each_owner_counts_from_one_stay_identifiers():
    schema, _ = differences(north=range(1, 41), south=range(1, 61))
    assert schema.column("a") == Identifier(name="a")
    schema, _ = differences(north=[f"N{i}" for i in range(20)], south=[f"S{i}" for i in range(20)])
    assert isinstance(schema.column("a"), Identifier)


@given(st.lists(_cells | _dirty, min_size=2, max_size=3))
@settings(max_examples=6, deadline=None)
def test_a_draft_of_several_owners_allows_all_their_rows_but_for_the_cells_named(owners):
    frames = {
        f"owner {place}": pd.DataFrame({"a": pd.Series(cells)}).assign(b=True)
        for place, cells in enumerate(owners)
    }
    found = draft_naming_all(frames)
    for frame in frames.values():
        outside = {str(one.value).strip() for one in check(frame, found.schema)}
        assert outside <= named(found.findings)


def test_no_owner_at_all_is_refused():
    with pytest.raises(DataError, match="no table"):
        fs.draft({})
    with pytest.raises(DataError, match="south: has no rows"):
        fs.draft({"north": pd.DataFrame({"a": [1]}), "south": pd.DataFrame({"a": []})})


@pytest.mark.parametrize("digits", [20, 41])
def test_keys_of_many_digits_are_drafted(digits):
    keys = [f"DE{10 ** (digits - 1) + number}" for number in range(30)]
    schema = fs.draft(pd.DataFrame({"a": keys, "b": [True, False] * 15})).schema
    assert schema.column("a") == Identifier(
        name="a", prefix="DE", width=digits if digits <= 40 else None
    )
