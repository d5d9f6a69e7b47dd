"""Numbers as people write them: read as they are meant, written as they came."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import SchemaError
from fedsynth.schema import Continuous, Integer
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns.notation import parse_notation
from fedsynth.schema.spelling import write_texts
from tests.schemas import NOTATIONS


@pytest.mark.parametrize("example", NOTATIONS)
@given(
    whole=st.lists(st.integers(-(2**53 - 1), 2**53 - 1) | st.integers(-5_000, 5_000), min_size=1),
    decimals=st.integers(0, 12),
)
@settings(max_examples=8, deadline=None)
def test_reading_undoes_writing_on_the_whole_grid(example, whole, decimals):
    decimals = 0 if parse_notation(example).whole else decimals
    numbers = np.array(whole) / 10.0**decimals
    column = Continuous(
        name="x",
        lower=float(numbers.min()),
        upper=float(numbers.max()),
        decimals=decimals,
        format=example,
    )
    texts = write_texts(numbers, column)
    assert all(isinstance(text, str) for text in texts)
    cells = read_cells(texts, column, ())
    np.testing.assert_array_equal(cells.values, numbers)
    # And once more: what is read is written alike.
    assert write_texts(cells.values, column).equals(texts)


@pytest.mark.parametrize(
    ("example", "value", "decimals", "text"),
    [
        ("$1,234.50", 1234567.5, 2, "$1,234,567.50"),
        ("$1,234.5", 1234567.5, 2, "$1,234,567.5"),
        ("$1,234.5", 3, 2, "$3"),
        ("1.234,50 €", -1234567.25, 2, "-1.234.567,25 €"),
        ("1\u00a0234,5 kr", 1234.5, 1, "1\u00a0234,5 kr"),
        ("CHF 1'234.50", 999, 2, "CHF 999.00"),
        ("($1,234.50)", -5, 2, "($5.00)"),
        ("1234 %", 12.5, 1, "12.5 %"),
        ("1234 min", 90, 0, "90 min"),
        ("h:mm:ss", 5_400, 0, "1:30:00"),
        ("hh:mm:ss", 5_400.25, 3, "01:30:00.25"),
        ("h:mm:ss", 360_000, 0, "100:00:00"),
        ("h:mm", 90, 0, "1:30"),
        ("m:ss", 90, 0, "1:30"),
        ("d days hh:mm:ss", 90_061, 0, "1 days 01:01:01"),
        ("PT1H30M", 5_400, 0, "PT1H30M"),
        ("PT1H30M", 90_000.5, 1, "PT25H0.5S"),
        ("P1DT1H30M", 90_000, 0, "P1DT1H"),
        ("P1DT1H30M", 0, 0, "PT0S"),
    ],
)
def test_each_notation_writes_what_it_shows(example, value, decimals, text):
    assert parse_notation(example).write(value, decimals) == text
    assert parse_notation(example).read(text) == value


@given(st.integers(-(10**11), 10**11), st.integers(0, 4))
def test_grouped_numbers_are_written_as_python_writes_them(whole, decimals):
    value = whole / 10**decimals
    assert parse_notation("1,234.50").write(value, decimals) == f"{value:,.{decimals}f}"


@given(st.integers(0, 86_399))
def test_clocks_and_iso_durations_are_those_of_python_and_pandas(seconds):
    assert parse_notation("h:mm:ss").write(seconds, 0) == str(timedelta(seconds=seconds))
    written = parse_notation("P1DT1H30M").write(seconds + 2 * 86_400, 0)
    assert pd.Timedelta(written).total_seconds() == seconds + 2 * 86_400
    theirs = pd.Timedelta(seconds=seconds).isoformat()
    assert parse_notation("PT1H30M").read(theirs) == seconds


@pytest.mark.parametrize(
    ("example", "text", "value"),
    [
        ("$1,234.5", "$ 1,234.50", 1234.5),
        ("$1,234.5", "-$5", -5),
        ("$1,234.5", "$-5", -5),
        ("$1,234.5", "\u22125", -5),
        ("$1,234.5", "($5)", -5),
        ("$1,234.5", "(5)", -5),
        ("$1,234.5", "$1234.5", 1234.5),
        # Without its sign a cell is a plain number where it can be one.
        ("$1,234.5", "1234.5", 1234.5),
        ("$1,234.5", "1,234", 1234),
        ("1.234,5 €", "1.234", 1.234),
        ("1.234,5 €", "1.234 €", 1234),
        ("1.234,5", "1.234", 1234),
        ("1.234,5", "1.5", 1.5),
        ("1 234,5", "1\u202f234,5", 1234.5),
        ("1234 %", "12%", 12),
        ("1234 min", "90", 90),
        ("h:mm", "90", 90),
        ("h:mm:ss", "-0:00:30.5", -30.5),
        ("h:mm:ss", "2 days, 0:00:01", 172_801),
        ("PT1H30M", "P1DT0.5S", 86_400.5),
    ],
)
def test_cells_are_read_as_they_are_meant(example, text, value):
    assert parse_notation(example).read(text) == value


@pytest.mark.parametrize(
    ("example", "text"),
    [
        *(("$1,234.5", text) for text in ("€5", "$1,23", "$5)", "$", "$1_000", "1,5", "US$5")),
        *(("1.234,5 €", text) for text in ("1,234.5 €", "$5", "5 €€")),
        *(("h:mm:ss", text) for text in ("1:60:00", "1:30", "1:2:3", "noon")),
        *(("h:mm", text) for text in ("1:30:00", "1:99")),
        *(("PT1H30M", text) for text in ("P1Y", "P", "PT", "PT1X", "1:30")),
        ("1234 %", "5 min"),
    ],
)
def test_odd_cells_are_unreadable(example, text):
    column = Integer(name="a", lower=0, upper=9, missing=True, format=example)
    cells = read_cells(pd.Series([text]), column, ("NA",))
    assert cells.unreadable.tolist() == [True]


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("", "1234.5 is written"),
        ("12%", "1234.5 is written"),
        ("$", "1234.5 is written"),
        ("($1,234", "1234.5 is written"),
        ("1,234,5", "alike"),
        ("-1,234", "without"),
        ("hh:mm:s", "h:mm:ss"),
        ("%d.%m.%Y", "1234.5 is written"),
        (1234.5, "a text that shows how 1234.5"),
    ],
)
def test_what_shows_no_number_is_refused_with_examples(example, words):
    with pytest.raises(SchemaError, match="'a'") as caught:
        Integer(name="a", lower=0, upper=9, format=example)
    assert words in str(caught.value)


def test_numbers_durations_and_times_are_read_beside_texts():
    cells = pd.Series(
        ["1:30:00", pd.Timedelta("90min"), pd.Timestamp("2020-01-01 01:30").time(), 5_400, None],
        dtype=object,
    )
    column = Integer(name="a", lower=0, upper=9_000, missing=True, format="h:mm:ss")
    read = read_cells(cells, column, ("",))
    np.testing.assert_array_equal(read.values, [5_400] * 4 + [np.nan])
    spans = pd.Series(pd.to_timedelta([90, None], unit="min"))
    minutes = Integer(name="a", lower=0, upper=9_000, missing=True, format="h:mm")
    np.testing.assert_array_equal(read_cells(spans, minutes, ()).values, [90, np.nan])
    # A number that is no duration is none.
    plain = Integer(name="a", lower=0, upper=9, missing=True)
    assert read_cells(spans, plain, ()).unreadable.tolist() == [True, False]
