"""CSV files as people have them: read as they were written, or refused; a guess is said."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.csv_files import read_csv
from fedsynth.data.dialect import Dialect
from fedsynth.data.tables import read_table
from fedsynth.errors import ConfigError, DataError
from fedsynth.schema import Categorical, Continuous, Schema

SEPARATORS = [",", ";", "\t", "|"]
CELLS = st.text(alphabet='ab1 .-äé,;\t|"\n', max_size=6)
# A row of one empty cell is an empty line, and those are no rows.
TABLES = st.integers(2, 4).flatmap(
    lambda width: st.tuples(
        st.lists(
            st.text(alphabet="abcé,;| '", min_size=1, max_size=5).filter(str.strip),
            min_size=width,
            max_size=width,
            unique=True,
        ),
        st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=5),
    )
)


def written(header, rows, separator=",", encoding="utf-8", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\r\n")
    writer.writerows([header, *rows])
    return text.getvalue().encode(encoding)


def read(path, **options):
    """The frame, all cells as text, and what was said."""
    said = []
    # Every column is of its own texts, so none becomes numbers.
    frame = read_table(path, caution=said.append, **options)
    return frame, said


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("csv") / "north.csv"


@given(
    TABLES,
    st.sampled_from(SEPARATORS),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-32"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
@settings(deadline=None, max_examples=20)
def test_a_file_that_is_described_reads_back_as_it_was_written(
    file, table, separator, encoding, quoting
):
    header, rows = table
    file.write_bytes(written(header, rows, separator, encoding, quoting))
    schema = Schema(columns=[Categorical(name="none", values=["x"])])
    frame, said = read(file, schema=schema, separator=separator, decimal=".", encoding=encoding)
    assert list(frame) == header and frame.to_numpy().tolist() == rows and said == []


@given(
    TABLES,
    st.sampled_from(SEPARATORS),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
    st.booleans(),
)
@settings(deadline=None, max_examples=30)
def test_what_is_found_out_of_a_file_is_right_or_refused(file, table, separator, encoding, known):
    header, rows = table
    file.write_bytes(written(header, rows, separator, encoding))
    names = header if known else ["none"]
    schema = Schema(columns=[Categorical(name=name, values=["?"]) for name in names])
    try:
        frame, said = read(file, schema=schema)
    except DataError as error:
        assert "may stand between its cells" in str(error)
        return
    cells = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    if known:
        # What the schema takes for missing.
        rows = [["" if not cell.strip() else cell for cell in row] for row in rows]
    assert list(frame) == header and cells == rows
    body = file.read_bytes()
    assert ("between cells" in "".join(said)) == (separator != ",")
    assert ("Windows-1252" in "".join(said)) == (encoding == "cp1252" and not body.isascii())


def test_with_a_schema_its_names_tell_the_separator(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b,c\n1;2,3\n")
    with pytest.raises(DataError, match="',' or ';' may stand between"):
        read(path)
    schema = Schema(columns=[Continuous(name="b,c", lower=0, upper=9, decimals=1)])
    frame, said = read(path, schema=schema)
    assert frame["b,c"].tolist() == [2.3] and len(said) == 1


def test_what_is_guessed_is_said_in_the_words_that_settle_it(tmp_path):
    path = tmp_path / "north.csv"
    path.write_bytes("größe;ort\n1,5;Köln\n".encode("cp1252"))
    frame, said = read(path)
    assert frame.to_dict("list") == {"größe": [1.5], "ort": ["Köln"]}
    assert said == [
        f"{path}: read with ';' between cells, decimal commas and Windows-1252 letters; say "
        '`separator: ";", decimal: ",", encoding: cp1252` to settle it'
    ]
    again, said = read(path, separator=";", decimal=",", encoding="cp1252")
    assert again.equals(frame) and said == []
    with pytest.warns(UserWarning, match="Windows-1252"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b"a,b\n1,x\n"),
        ("t.csv", b"\xef\xbb\xbfa,b\n1,x\n"),
        ("t.csv", "a,b\n1,x\n".encode("utf-16")),
        ("t.tsv", b"a\tb\n1\tx\n"),
        ("t.TSV.gz", gzip.compress(b"a\tb\n1\tx\n", mtime=0)),
    ],
)
def test_nothing_is_said_of_what_is_as_usual(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    frame, said = read(tmp_path / name)
    assert frame.to_dict("list") == {"a": [1], "b": ["x"]} and said == []


def test_a_row_of_another_length_is_an_error_whatever_was_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;2\n3;4;5\n")
    with pytest.raises(DataError, match=r"row 3 has 3 cells, the header 2 \(read with ';'"):
        read(path)
    with pytest.raises(DataError, match=r"row 3 has 3 cells, the header 2; quote cells that hold"):
        read(path, separator=";")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"a,b\nx,1\ny\xff,2\n", {"encoding": "utf-8"}, "line 3 holds the byte 0xff"),
        (b"a,b\nx,1\ny\x81,2\n", {}, "line 3 holds the byte 0x81, which is no cp1252"),
        (b"a,b\nx,1\n\xffy,2\n", {"encoding": "ascii"}, "line 3 holds the byte 0xff"),
        ("a,b\nä,1\n".encode() + b"\xff,2\n", {}, "line 3 holds the byte 0xff, which is no utf-8"),
        ("a,b\nx,ö\n".encode("utf-16")[:-1], {}, "which is no utf-16"),
        (b"\xef\xbb\xbfa,b\nx,1\n", {"encoding": "latin-1"}, "begins with the mark of utf-8"),
        ("a,b\nx,1\n".encode("utf-16-le"), {}, "say `encoding: utf-16-le`"),
        (b"sep=;\na;b\n1;2\n", {}, "its first line (`sep=`) is Excel's"),
        (b"sep=,\na,b\n1,2\n", {"separator": ","}, "its first line (`sep=`) is Excel's"),
    ],
)
def test_bytes_that_are_no_letters_are_an_error_with_their_place(
    tmp_path, content, options, message
):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read(path, **options)
    assert str(error.value).startswith(str(path)) and message in str(error.value)


def test_a_letter_far_behind_the_sample_still_tells_the_encoding(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * 40_000 + b"\xe4,1\n")
    frame, said = read(path)
    assert frame["a"].iloc[-1] == "ä" and "Windows-1252" in said[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "ab"}, "`separator` must be one character"),
        ({"separator": "a"}, "`separator` must be one character"),
        ({"separator": "\n"}, "`separator` must be one character"),
        ({"decimal": ";"}, '`decimal` must be "," or "."'),
        ({"encoding": "utf8000"}, "`encoding` 'utf8000' is no encoding"),
        ({"encoding": "rot13"}, "`encoding` 'rot13' is no encoding"),
        ({"sheet": "x"}, "`sheet` is of Excel workbooks"),
    ],
)
def test_what_no_file_has_is_refused(tmp_path, options, message):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError) as error:
        read_table(tmp_path / "t.csv", **options)
    assert message in str(error.value)


def test_what_is_said_of_csv_is_refused_of_other_kinds(tmp_path):
    with pytest.raises(ConfigError, match="`separator` is of CSV files"):
        read_table(tmp_path / "t.parquet", separator=";")


def test_a_header_longer_than_any_sample_is_read_whole(tmp_path):
    names = [f"column number {k}" for k in range(6_000)]
    for separator in (",", ";"):
        body = "\n".join(separator.join(map(str, row)) for row in (names, range(6_000)))
        (tmp_path / "t.csv").write_text(body)
        table, found, guessed = read_csv(tmp_path / "t.csv", Dialect())
        assert table.column_names == names and found == separator
        assert guessed == ({"separator": ";"} if separator == ";" else {})


def test_a_file_is_closed_when_it_was_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a;b\n1;2\n")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read_table(tmp_path / "a.csv", separator=";")
        gc.collect()
    assert [one.message for one in said] == []


def test_tabs_have_a_name(tmp_path):
    (tmp_path / "t.csv").write_text("a\tb\n1,5\t2\n")
    for tab in ("tab", "\\t", "\t"):
        frame, said = read(tmp_path / "t.csv", separator=tab)
        assert frame["a"].tolist() == [1.5] and "separator" in said[0]
    frame, said = read(tmp_path / "t.csv")
    assert "read with tabs between cells and decimal commas" in said[0]
    assert "`separator: tab, decimal" in said[0]
