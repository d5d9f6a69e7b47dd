from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.tables import conform, read_table, restore, write_table
from fedsynth.errors import DataError, MachineError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from tests.schemas import arrays, schemas

SCHEMA = Schema(columns=[Integer(name="a", lower=0, upper=9, missing=True)])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@given(schema=schemas(), rows=st.integers(0, 20), seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_a_written_table_reads_back_the_same(tmp_path_factory, suffix, schema, rows, seed):
    rng = np.random.default_rng(seed)
    frame = restore(arrays(schema, rows, rng), schema, rng)
    path = tmp_path_factory.mktemp("table") / f"rows{suffix}"
    write_table(frame, path, schema)
    copy = read_table(path, schema, empty=True)
    modelled = [column.name for column in schema.modelled]
    pd.testing.assert_frame_equal(copy[modelled], frame[modelled])
    assert list(copy.columns) == list(frame.columns)
    if not rows:
        with pytest.raises(DataError, match="no rows"):
            read_table(path, schema)
        return
    before, after = conform(frame, schema), conform(copy, schema)
    assert sum(after.outside.values()) == 0
    for name, values in before.columns.items():
        np.testing.assert_array_equal(after.columns[name], values)


def test_the_same_frame_gives_the_same_bytes(tmp_path):
    frame = pd.DataFrame({"a": [1, None]})
    copies = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_table(frame, tmp_path / name / "rows.csv.gz", SCHEMA)
        copies.append((tmp_path / name / "rows.csv.gz").read_bytes())
    assert copies[0] == copies[1]
    # Bytes 4 to 8 of a gzip file are its time stamp (RFC 1952).
    assert copies[0][4:8] == bytes(4)


def test_cells_are_written_as_the_schema_spells_them(tmp_path):
    schema = Schema(
        columns=[
            Integer(name="i", lower=0, upper=9, missing=True, dtype="float64"),
            Continuous(name="x", lower=0, upper=1, decimals=2),
            Categorical(name="c", values=["?", "a, b"], missing=True),
            Boolean(name="b"),
            Datetime(name="t", lower="2020-01-01", upper="2020-12-31", missing=True),
            Datetime(name="u", lower="2020-01-01", upper="2020-12-31", resolution="minute"),
        ],
        missing_values=["?", "n/a"],
    )
    frame = pd.DataFrame(
        {
            "i": [1.0, None],
            "x": [0.1 + 0.2, 1],
            "c": ["a, b", None],
            "b": [True, False],
            "t": pd.to_datetime(["2020-02-03", None]),
            "u": pd.to_datetime(["2020-02-03 04:05", "2020-02-03 00:00"]),
        }
    )
    write_table(frame, tmp_path / "t.csv", schema)
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "i,x,c,b,t,u",
        '1,0.3,"a, b",True,2020-02-03,2020-02-03 04:05',
        # "?" is a category of c, so its missing cell takes the next marker.
        "?,1.0,n/a,False,?,2020-02-03 00:00",
    ]


def test_values_outside_the_schema_are_written_as_they_are(tmp_path):
    schema = Schema(
        columns=[
            Integer(name="i", lower=0, upper=9),
            Datetime(name="t", lower="2020-01-01", upper="2020-12-31", missing=True),
            Categorical(name="c", values=["a"]),
        ]
    )
    frame = pd.DataFrame(
        {"i": [1.5, np.inf, 3], "t": ["9999-12-31", None, "soon"], "c": ["a", "b", None]}
    )
    write_table(frame, tmp_path / "t.csv", schema)
    lines = ["i,t,c", "1.5,9999-12-31,a", "inf,,b", "3.0,soon,"]
    assert (tmp_path / "t.csv").read_text().splitlines() == lines


def test_with_a_schema_a_declared_na_stays_a_category(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("country,n\nNA,NA\nDE,2\nnull,3\n")
    schema = Schema(
        columns=[
            Categorical(name="country", values=["NA", "DE", "null"]),
            Integer(name="n", lower=0, upper=9, missing=True),
        ],
        missing_values=["NA"],
    )
    frame = read_table(path, schema)
    assert frame["country"].tolist() == ["NA", "DE", "null"]
    assert frame["n"].dtype == "Int64"
    assert frame["n"].isna().tolist() == [True, False, False]


def test_values_outside_the_schema_are_kept_for_the_check(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n95,x,1.5\n3,y,2\n,?,often\n")
    schema = Schema(
        columns=[
            Integer(name="a", lower=0, upper=90, missing=True),
            Categorical(name="b", values=["x"], missing=True),
            Continuous(name="c", lower=0, upper=9, decimals=1),
        ],
        missing_values=["?"],
    )
    frame = read_table(path, schema)
    np.testing.assert_equal(frame["a"].tolist(), [95, 3, np.nan])
    assert frame["b"].tolist()[:2] == ["x", "y"]
    assert frame["b"].isna().tolist() == [False, False, True]
    assert frame["c"].tolist() == ["1.5", "2", "often"]


def test_real_numbers_are_not_rounded_when_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n0.123456\n")
    schema = Schema(columns=[Continuous(name="x", lower=0, upper=1, decimals=1)])
    assert read_table(path, schema)["x"].tolist() == [0.123456]


def test_without_a_schema_types_come_from_the_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("i,x,zip,word,flag,gap\n1,.5,01234,NA,true,\n-2,1e3,99999,?,false,7\n")
    frame = read_table(path)
    assert frame.dtypes.astype(str).tolist() == [
        "int64",
        "float64",
        "object",
        "object",
        "bool",
        "float64",
    ]
    assert frame["zip"].tolist() == ["01234", "99999"]
    assert frame["word"].tolist() == ["NA", "?"]
    assert frame["flag"].tolist() == [True, False]
    assert frame["x"].tolist() == [0.5, 1000.0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"a\n", "no rows"),
        (b"a,b\n1,2\n3\n", "row 3 has 1 cells, the header 2"),
        (b"a,b\n1,2,3\n4,5,6\n", "row 2 has 3 cells, the header 2"),
        (b'a,b\n"1,2\n', "row 2"),
        (b"a,a\n1,2\n", "'a' twice"),
        (b",a\n0,1\n", "column 1 has no name"),
        (b"a\n\x81\n", "line 2 holds the byte 0x81"),
        (b"\x81\n1\n", "line 1 holds the byte 0x81"),
    ],
)
def test_a_malformed_file_is_an_error_that_names_file_and_row(tmp_path, content, words):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    for schema in (None, SCHEMA):
        with pytest.raises(DataError, match=r"bad\.csv") as error:
            read_table(path, schema)
        assert words in str(error.value)
        assert "3,4" not in str(error.value)


def test_a_byte_order_mark_and_windows_line_ends_are_understood(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfa\r\n1\r\n\r\n2\r\n")
    assert read_table(tmp_path / "t.csv", SCHEMA)["a"].tolist() == [1, 2]


def test_a_file_cut_short_is_refused(tmp_path):
    rows = "a\n" + "\n".join(map(str, np.random.default_rng(0).integers(0, 10**9, 5000)))
    packed = gzip.compress(rows.encode())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"cut\.csv\.gz.*cut short"):
        read_table(tmp_path / "cut.csv.gz")
    (tmp_path / "no.csv.gz").write_bytes(rows.encode())
    with pytest.raises(DataError, match=r"no\.csv\.gz"):
        read_table(tmp_path / "no.csv.gz")
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "cut.parquet")
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"cut\.parquet.*damaged"):
        read_table(tmp_path / "cut.parquet")


def test_feather_is_read_as_parquet_is(tmp_path):
    frame = pd.DataFrame({"a": [1, None], "b": ["x", "y"], "t": pd.to_datetime(["2020-01-01"] * 2)})
    frame.to_feather(tmp_path / "t.feather")
    frame.to_parquet(tmp_path / "t.parquet")
    for schema in (None, SCHEMA):
        pd.testing.assert_frame_equal(
            read_table(tmp_path / "t.feather", schema), read_table(tmp_path / "t.parquet", schema)
        )
    (tmp_path / "cut.feather").write_bytes((tmp_path / "t.feather").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cut\.feather: is no Feather file"):
        read_table(tmp_path / "cut.feather")


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_an_absent_file_is_named(tmp_path, name):
    with pytest.raises(DataError, match=rf"{name}.*check the path"):
        read_table(tmp_path / name)


def test_an_unknown_kind_of_file_is_refused(tmp_path):
    (tmp_path / "t.xls").write_text("")
    with pytest.raises(DataError, match=r"t\.xls: .*\.csv, \.csv\.gz, .*\.parquet"):
        read_table(tmp_path / "t.xls")
    with pytest.raises(DataError, match=r"t\.xlsx"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.xlsx", SCHEMA)


def test_a_table_that_is_not_the_schemas_is_not_written(tmp_path):
    with pytest.raises(DataError, match="'b'"):
        write_table(pd.DataFrame({"a": [1], "b": [1]}), tmp_path / "t.csv", SCHEMA)
    with pytest.raises(MachineError, match="cannot be written"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "no" / "t.csv", SCHEMA)


def test_adult_reads_as_pandas_reads_it(adult_table, shared_data):
    path, (frame, _) = shared_data / "adult" / "adult.csv.gz", adult_table
    pd.testing.assert_frame_equal(frame, pd.read_csv(path, na_values="?"))
    pd.testing.assert_frame_equal(read_table(path), pd.read_csv(path, keep_default_na=False))
