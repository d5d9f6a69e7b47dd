"""A sheet's values as they stand in it, or an error that says which cells are in the way."""

from __future__ import annotations

import re
import sys
import zipfile
from datetime import date, datetime

import pandas as pd
import pytest

from fedsynth.data.tables import read_table
from fedsynth.errors import DataError
from fedsynth.schema import Categorical, Continuous, Datetime, Integer, Schema

openpyxl = pytest.importorskip("openpyxl")


def save(path, *sheets, change=None):
    """A workbook of sheets, each a name and its rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets:
        page = book.create_sheet(name)
        for row in rows:
            page.append(row)
    if change is not None:
        change(book.worksheets[0])
    book.save(path)
    return path


def read(path, **options):
    said = []
    return read_table(path, caution=said.append, **options), said


ROWS = [
    ["age", "weight", "seen", "at", "word", "flag", 2024],
    [40, 70.5, date(2020, 1, 2), datetime(2020, 1, 2, 3, 4), "007", True, 1],
    [41, None, None, datetime(2262, 6, 1), None, False, 2],
    [None, 3, date(9999, 12, 31), None, 12, True, 3],
]


def test_values_keep_their_types(tmp_path):
    frame, said = read(save(tmp_path / "t.xlsx", ("A", ROWS)))
    assert said == []
    assert frame.dtypes.astype(str).to_dict() == {
        "age": "Int64",
        "weight": "float64",
        "seen": "datetime64[us]",
        "at": "datetime64[us]",
        "word": "object",
        "flag": "bool",
        "2024": "int64",
    }
    assert frame["age"].tolist()[:2] == [40, 41] and frame["age"].isna().tolist() == [0, 0, 1]
    assert frame["seen"].dt.year.tolist()[2] == 9999
    assert frame["word"].tolist() == ["007", None, 12]


def test_a_schema_reads_a_sheet_as_it_reads_csv(tmp_path):
    schema = Schema(
        columns=[
            Integer(name="age", lower=0, upper=99, missing=True),
            Continuous(name="weight", lower=0, upper=99, decimals=1, missing=True),
            Datetime(name="seen", lower="2020-01-01", upper="2020-12-31", missing=True),
            Categorical(name="word", values=["007", "12"], missing=True),
        ]
    )
    rows = [row[:3] + row[4:5] for row in ROWS[:3]]
    (tmp_path / "t.csv").write_text("age,weight,seen,word\n40,70.5,2020-01-02,007\n41,,,\n")
    frame, _ = read(save(tmp_path / "t.xlsx", ("A", rows)), schema=schema)
    pd.testing.assert_frame_equal(frame, read_table(tmp_path / "t.csv", schema))


def test_agrees_with_pandas(tmp_path):
    path = save(tmp_path / "t.xlsx", ("A", [row[:2] for row in ROWS]))
    frame, _ = read(path)
    pd.testing.assert_frame_equal(frame.astype(float), pd.read_excel(path).astype(float))


def test_the_first_sheet_is_read_and_that_is_said(tmp_path):
    path = save(tmp_path / "t.xlsx", ("A", [["a"], [1]]), ("B", [["b"], [2]]))
    frame, said = read(path)
    assert list(frame) == ["a"] and "first sheet 'A' of several; say `sheet: A`" in said[0]
    assert read(path, sheet="A")[1] == [] and list(read(path, sheet="B")[0]) == ["b"]
    with pytest.raises(DataError, match="no sheet 'C'; known are A, B"):
        read(path, sheet="C")


def test_empty_rows_and_columns_behind_the_table_are_none_of_it(tmp_path):
    def format_cells(page):
        page["F9"].font = openpyxl.styles.Font(bold=True)
        page["E1"] = " "

    rows = [["a", "b"], [1, 2], [None, None], [3, None]]
    frame, said = read(save(tmp_path / "t.xlsx", ("A", rows), change=format_cells))
    assert list(frame) == ["a", "b"] and frame["a"].tolist() == [1, 3]
    assert said == [f"{tmp_path / 't.xlsx'}: 1 rows without a single cell were passed over"]


def test_a_formula_gives_its_value_and_is_no_gap_without_one(tmp_path):
    path = save(tmp_path / "t.xlsx", ("A", [["a", "b"], [1, None], ["=A2+1", 5]]))
    with pytest.raises(DataError, match="sheet 'A': A3 is a formula without a value"):
        read(path)
    # As a spreadsheet program saves it.
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    for kind, value, found in ((b"", b"2", [1, 2]), (b' t="str"', b"", [1, None])):
        body = parts[sheet].replace(b'<c r="A3"', b'<c r="A3"' + kind)
        body = re.sub(rb"<v ?/>|<v></v>", b"<v>" + value + b"</v>", body)
        with zipfile.ZipFile(path, "w") as new:
            for name, part in {**parts, sheet: body}.items():
                new.writestr(name, part)
        assert [None if pd.isna(one) else one for one in read(path)[0]["a"]] == found


@pytest.mark.parametrize(
    ("rows", "change", "message"),
    [
        ([], None, "is empty"),
        ([["a", None], [1, 2]], None, "column 2 has no name in row 1"),
        ([[None], ["a"], [1]], None, "column 1 has no name in row 1"),
        ([["a", "a"], [1, 2]], None, "'a' twice"),
        ([["a"]], None, "has no rows"),
        ([["a"], [1], [2]], lambda page: page.merge_cells("A2:A3"), r"merged cells \(A2:A3\)"),
    ],
)
def test_what_is_no_table_is_an_error_with_its_place(tmp_path, rows, change, message):
    with pytest.raises(DataError, match=rf"t\.xlsx.*{message}"):
        read(save(tmp_path / "t.xlsx", ("A", rows), change=change))


def test_what_is_no_workbook_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK no zip")
    with pytest.raises(DataError, match="is no Excel workbook"):
        read(tmp_path / "t.xlsx")


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = save(tmp_path / "t.xlsx", ("A", [["a"], [1]]))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"pip install 'fedsynth\[excel\]'"):
        read(path)
