"""Types come back as they went in, or the draft says what is lost."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.data.conforming import conform, restore
from fedsynth.data.tables import read_table, write_table
from fedsynth.schema import Categorical, Identifier, Integer, Schema
from fedsynth.schema.checking import check

ROWS = 48
_NUMBERS = np.arange(ROWS) ** 2 % 47
_MOMENTS = pd.date_range("2020-10-24", periods=ROWS, freq="61min")
"""From before the clocks of Europe are put back, on 25 October 2020 at 1 h UTC, until after."""


def gaps(cells, dtype):
    series = pd.Series(
        cells.tolist() if isinstance(cells, np.ndarray) else list(cells), dtype=object
    )
    series[5] = np.nan if dtype is object else None
    return series.astype(dtype)


def zoned(zone, unit="ns"):
    return pd.Series(_MOMENTS.tz_localize("UTC").tz_convert(zone)).dt.as_unit(unit)


_WORDS = ["lo", "hi", "mid"] * (ROWS // 3)
_DECIMALS = [Decimal(int(number)).scaleb(-2) for number in _NUMBERS]
_SPANS = pd.Series(pd.to_timedelta(_NUMBERS * 61, unit="s"))
_TIMES = [datetime.time(int(number) % 24, int(number), 7) for number in _NUMBERS]
_ISO = [str(moment.isoformat()) for moment in _MOMENTS]

KEPT = {
    "bool": pd.Series(_NUMBERS % 2 == 0),
    "bool missing": gaps(_NUMBERS % 2 == 0, object),
    "boolean": gaps(_NUMBERS % 2 == 0, "boolean"),
    "bool[pyarrow]": gaps(_NUMBERS % 2 == 0, "bool[pyarrow]"),
    **{name: pd.Series(_NUMBERS, dtype=name) for name in ("int8", "uint8", "int64", "uint32")},
    "int missing": gaps(_NUMBERS, "float64"),
    **{name: gaps(_NUMBERS, name) for name in ("Int64", "UInt8", "int64[pyarrow]", "Float32")},
    "float64": pd.Series(_NUMBERS / 8),
    "float32": pd.Series(_NUMBERS / 10, dtype="float32"),
    **{name: gaps(_NUMBERS / 8, name) for name in ("Float64", "double[pyarrow]")},
    "decimal": gaps(_DECIMALS, object),
    "decimal128": gaps(_DECIMALS, pd.ArrowDtype(pa.decimal128(9, 2))),
    "object": gaps(_WORDS, object),
    "string": gaps(_WORDS, "string"),
    "string[pyarrow]": gaps(_WORDS, "string[pyarrow]"),
    "arrow string": gaps(_WORDS, pd.ArrowDtype(pa.string())),
    "large string": gaps(_WORDS, "large_string[pyarrow]"),
    "dictionary": gaps(_WORDS, pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "category": gaps(_WORDS, pd.CategoricalDtype(["lo", "hi", "never", "mid"])),
    "ordered": gaps(_WORDS, pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True)),
    "category of numbers": pd.Series([3, 1, 2] * (ROWS // 3)).astype("category"),
    "datetime64[s]": pd.Series(_MOMENTS).dt.as_unit("s"),
    "datetime64[ns]": gaps(_MOMENTS, "datetime64[ns]"),
    "zone": zoned("Europe/Berlin"),
    "zone[us]": zoned("America/New_York", "us"),
    "UTC": zoned("UTC"),
    "offset": zoned(datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
    "days of a zone": pd.Series(pd.date_range("2020-10-01", periods=ROWS, tz="Europe/Berlin")),
    "timestamp": gaps(_MOMENTS, "timestamp[us][pyarrow]"),
    "timestamp zone": zoned("Europe/Berlin").astype("timestamp[us, tz=Europe/Berlin][pyarrow]"),
    "iso": pd.Series(_ISO, dtype=object),
    "iso Z": pd.Series([text + "Z" for text in _ISO], dtype="string"),
    "iso offset": pd.Series([text + "-03:30" for text in _ISO], dtype=object),
    "date": gaps(_MOMENTS.date, object),
    "date32": gaps(_MOMENTS.date, "date32[day][pyarrow]"),
    "time": gaps(_TIMES, object),
    "time64": gaps(_TIMES, "time64[us][pyarrow]"),
    "timedelta64[ns]": _SPANS,
    "timedelta64[ms]": _SPANS.dt.as_unit("ms") / 100,
    "duration": gaps(_SPANS, "duration[us][pyarrow]"),
    "amount": gaps([f"${number:,.2f}" for number in _NUMBERS * 99.5], object),
    "betrag": pd.Series(
        [f"{n // 9}.{n % 9}00,50 \u20ac" for n in range(9, 9 + ROWS)], dtype="string"
    ),
    "share": pd.Series([f"{number / 4:g} %" for number in _NUMBERS], dtype=object),
    "clock": pd.Series([f"{number}:{number % 60:02d}:09" for number in _NUMBERS], dtype=object),
}
FRAME = pd.DataFrame(KEPT)


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found, expected)
    for name in expected:
        if isinstance(expected[name].dtype, pd.CategoricalDtype):
            # pandas' own comparison ignores the order of unordered categories.
            assert list(found[name].cat.categories) == list(expected[name].cat.categories)
            assert found[name].cat.ordered == expected[name].cat.ordered
        kinds = [{type(cell) for cell in one[name].dropna()} for one in (found, expected)]
        assert kinds[0] == kinds[1]


@cache
def draft_of_all():
    return fs.draft(FRAME)


def drafted():
    return draft_of_all().schema


def test_every_dtype_comes_back_with_every_cell_and_nothing_is_said_to_be_lost():
    draft = draft_of_all()
    losses = {"dtype", "spelling", "rounded", "offsets", "unreadable", "cut"}
    assert [str(one) for one in draft.findings if one.kind in losses] == []
    assert check(FRAME, draft.schema) == []
    conformed = conform(FRAME, draft.schema)
    assert sum(conformed.outside.values()) == 0
    assert_same(restore(conformed.columns, draft.schema, np.random.default_rng(0)), FRAME)
    assert Schema.from_dict(draft.schema.to_dict()) == draft.schema


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_every_dtype_comes_back_from_a_file(suffix, tmp_path):
    path = tmp_path / f"rows{suffix}"
    write_table(FRAME, path, drafted())
    assert_same(read_table(path, drafted()), FRAME)
    # As others write it.
    plain = FRAME.drop(columns="time64") if suffix == ".csv" else FRAME
    plain.to_csv(path, index=False) if suffix == ".csv" else plain.to_parquet(path)
    again = read_table(path, drafted())
    assert_same(again[["zone", "amount", "clock"]], FRAME[["zone", "amount", "clock"]])


@given(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS))
@settings(max_examples=5, deadline=None)
def test_any_rows_inside_the_schema_come_back(rows):
    schema = drafted()
    part = FRAME.iloc[rows].reset_index(drop=True)
    assert_same(restore(conform(part, schema).columns, schema, np.random.default_rng(0)), part)


def _cells(kind):
    words = ["x", "y"] * (ROWS // 2)
    return {
        "texts of numbers": pd.Series(_NUMBERS.astype(str), dtype=object),
        "float16": pd.Series(_NUMBERS / 8, dtype="float16"),
        "sparse": pd.Series(pd.arrays.SparseArray(_NUMBERS)),
        "objects": pd.Series(list(_NUMBERS), dtype=object),
        "datetime objects": pd.Series(list(_MOMENTS.to_pydatetime()), dtype=object),
        "category of dates": pd.Series(list(_MOMENTS[:4]) * (ROWS // 4)).astype("category"),
        "old zone": zoned("Europe/Berlin") - pd.Timedelta(days=365 * 150),
        "bytes": pd.Series([word.encode() for word in words], dtype=object),
        "key": pd.Series([f"K{i}" for i in range(ROWS)]).astype("category"),
        "small key": pd.Series(range(ROWS), dtype="uint8"),
        "milliseconds": pd.Series(_MOMENTS + pd.Timedelta("5ms")),
        "full precision": pd.Series(np.sqrt(_NUMBERS + 2)),
        "offsets": pd.Series([t + ("+01:00" if i % 2 else "+02:00") for i, t in enumerate(_ISO)]),
        "iso of two kinds": pd.Series([t if i % 2 else t[:-3] for i, t in enumerate(_ISO)]),
        "odd durations": pd.Series([f"PT{i}H{i % 2}M" for i in range(1, ROWS + 1)]),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "finding", "words"),
    [
        ("texts of numbers", "dtype", "its texts are plain numbers, and come back as such (int64)"),
        ("float16", "dtype", "is float16, and comes back as float64"),
        ("sparse", "dtype", "is Sparse[int64, 0], and comes back as int64"),
        ("objects", "dtype", "is object, and comes back as int64"),
        ("datetime objects", "dtype", "is object, and comes back as datetime64[ns]"),
        ("category of dates", "dtype", "(datetime64[ns]), and comes back as a category of 4"),
        ("old zone", "dtype", "is datetime64[ns, Europe/Berlin], and comes back as datetime64[ns]"),
        ("bytes", "dtype", "its values of type bytes come back as texts"),
        ("key", "dtype", "comes back as object"),
        ("small key", "dtype", "is uint8, and comes back as int64"),
        ("milliseconds", "rounded", "times are cut to whole seconds"),
        ("full precision", "rounded", "numbers are rounded to 7 decimals"),
        ("offsets", "offsets", "(+02:00, +01:00): its times become UTC"),
        ("iso of two kinds", "spelling", "48 of 48 cells come back in the column's common"),
        ("odd durations", "spelling", "24 of 48 cells come back in the column's common"),
    ],
)
def test_what_is_lost_is_said(kind, finding, words):
    series = _cells(kind)
    found = fs.draft(pd.DataFrame({"a": series, "b": [True, False] * (ROWS // 2)}))
    text = next(one.text for one in found.findings if (one.column, one.kind) == ("a", finding))
    assert words in text
    # Cells are for the owner's eyes, and texts end in logs.
    assert not any(str(cell) in text for cell in series.head(3) if len(str(cell)) > 3)
    frame = pd.DataFrame({"a": series, "b": True})
    assert check(frame, found.schema) == []


def test_keys_keep_their_prefix_and_their_digits():
    frame = pd.DataFrame({"id": [f"P{i:04d}" for i in range(1, ROWS + 1)], "b": [True, False] * 24})
    schema = fs.draft(frame).schema
    assert schema.column("id") == Identifier(name="id", prefix="P", width=4)
    made = restore({"b": np.zeros(12_000, int)}, schema, np.random.default_rng(0))["id"]
    assert made.is_unique and sorted(made)[0] == "P0001"
    # Four digits at least: the ten-thousandth has five.
    assert {len(text) for text in made} == {5, 6}
    plain = frame.assign(id=[f"P{i}" for i in range(1, ROWS + 1)])
    made = restore({"b": np.zeros(12, int)}, fs.draft(plain).schema, np.random.default_rng(0))["id"]
    assert set(made) == {f"P{i}" for i in range(1, 13)}


def test_a_day_of_a_zone_is_a_day_of_its_calendar_and_an_hour_one_that_passed():
    # On 29 March 2020 the day has 23 hours in Berlin, on 25 October 25.
    days = pd.Series(pd.date_range("2020-03-27", "2020-10-27", tz="Europe/Berlin"))
    frame = pd.DataFrame({"t": days, "b": True})
    schema = fs.draft(frame).schema
    assert conform(frame, schema).columns["t"].tolist() == [*range(26, 26 + len(days))]
    hours = pd.Series(pd.date_range("2020-10-24", periods=75, freq="h", tz="Europe/Berlin"))
    frame = pd.DataFrame({"t": hours, "b": True})
    schema = fs.draft(frame).schema
    column = schema.column("t")
    assert (column.resolution, column.zone) == ("hour", "Europe/Berlin")
    counted = conform(frame, schema).columns["t"]
    assert (np.diff(counted) == 1).all()
    # Cells that name no zone are on the column's clock, and of its two hours from 02:00 the first.
    naive = frame.assign(t=hours.dt.tz_localize(None))
    assert (conform(naive, schema).columns["t"] != counted).sum() == 1


def test_a_number_in_a_notation_comes_back_as_a_number_where_the_owner_had_numbers():
    amount = Integer(name="a", lower=0, upper=9_999, format="$1,234")
    schema = Schema(columns=[amount, Categorical(name="c", values=["x"])])
    frame = pd.DataFrame({"a": [1_234, 5], "c": "x"})
    arrays = conform(frame, schema).columns
    assert_same(restore(arrays, schema, np.random.default_rng(0)), frame)
    written = schema.edit("a", dtype="object")
    texts = restore(arrays, written, np.random.default_rng(0))
    assert texts["a"].tolist() == ["$1,234", "$5"]
    np.testing.assert_array_equal(conform(texts, schema).columns["a"], arrays["a"])


def test_a_file_with_decimal_commas_is_drafted_and_read_by_one_notation(tmp_path):
    rows = [f"{i}.{i:03d},50 \u20ac;{i}.{i:03d},25;{i % 9},5 %" for i in range(1, 40)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a;b;c", *rows]))
    schema = fs.draft(read_table(path, caution=[].append)).schema
    formats = [getattr(column, "format", None) for column in schema.columns]
    assert formats == ["1.234,50 \u20ac", None, "1234,50 %"]
    frame = read_table(path, schema, caution=[].append)
    assert check(frame, schema) == []
    numbers = conform(frame, schema).columns
    for name, first in (("a", 1001.5), ("b", 1001.25), ("c", 1.5)):
        assert numbers[name][0] == first
