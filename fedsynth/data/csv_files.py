"""CSV files read strictly, every cell as text: what is not said of one is found out, and told.

Found out is little, and only what the file leaves no doubt of: the character between cells by its
header, UTF-8 or else Windows-1252 by its bytes. Where two readings would do, neither is taken.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv as arrow_csv

from fedsynth.data.dialect import Dialect, spell
from fedsynth.errors import DataError
from fedsynth.files import Limited, memory, open_plain, too_large

_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 1 << 16
"""Characters that are looked at to tell what stands between cells."""

_FALLBACK = "cp1252"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16, whose mark it begins with.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_csv(
    path: Path, dialect: Dialect, names: Collection[str] = ()
) -> tuple[pa.Table, str, dict[str, str]]:
    """Read a file into a table of texts.

    Args:
        path: .csv or .tsv, perhaps with .gz behind.
        dialect: what is known of it.
        names: of columns that it should have, which tell separators apart.

    Returns:
        The table, the separator, and what was guessed, by the dialect's keys.

    Raises:
        DataError: naming the file, and the row at fault; one of another length than the header is.
    """
    mark = _read_mark(path)
    _demand_agreed(path, dialect.encoding, mark)
    encoding = dialect.encoding or mark or "utf-8"
    guessed: dict[str, str] = {}
    try:
        table, separator = _read(path, dialect, encoding, names)
    except UnicodeDecodeError:
        if dialect.encoding or mark:
            raise _describe_byte(path, encoding) from None
        _demand_ascii_else(path)
        guessed = {"encoding": _FALLBACK}
        try:
            table, separator = _read(path, dialect, _FALLBACK, names)
        except UnicodeDecodeError:
            raise _describe_byte(path, _FALLBACK) from None
    if dialect.separator is None and separator != _usual(path):
        guessed = {"separator": separator, **guessed}
    return table, separator, guessed


def _read(
    path: Path, dialect: Dialect, encoding: str, names: Collection[str]
) -> tuple[pa.Table, str]:
    """The table and its separator. Raises UnicodeDecodeError where the encoding does not fit."""
    faults: list[arrow_csv.InvalidRow] = []
    separator = dialect.separator or _usual(path)

    def refuse(row: arrow_csv.InvalidRow) -> str:
        faults.append(row)
        return "error"

    try:
        sample = _read_sample(path, encoding)
        if dialect.separator is None:
            separator = _find_separator(path, sample, names)
        header = _read_header(path, sample, separator)
        with _open(path) as file:
            table = arrow_csv.read_csv(
                pa.PythonFile(file, mode="r"),
                read_options=arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=1 << 24,
                    # Which is read as it is.
                    encoding="utf8" if _canonical(encoding) == "utf-8" else encoding,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse
                ),
                convert_options=arrow_csv.ConvertOptions(
                    strings_can_be_null=False, column_types=dict.fromkeys(header, pa.string())
                ),
            )
    except UnicodeDecodeError:
        raise
    except (EOFError, zlib.error, OSError):
        raise DataError(f"{path}: cannot be read to its end; is it damaged or cut short?") from None
    except (UnicodeError, pa.ArrowInvalid, csv.Error) as error:
        if "UTF8" in str(error):
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "invalid") from None
        raise _describe_fault(path, faults, separator, told=dialect.separator is not None) from None
    if table.column_names != header:
        # Else its columns would not all be texts.
        raise DataError(
            f"{path}: its header can be read in two ways; let quotes stand around whole names"
        )
    return table, separator


def _read_sample(path: Path, encoding: str) -> str:
    with io.TextIOWrapper(_open(path), encoding, newline="") as file:
        text = file.read(_SAMPLE)
        if "\n" not in text:
            # The header is read off it, however long it is.
            text += file.readline()
    if "\0" in text[:1000]:
        raise DataError(
            f"{path}: is no text in {encoding}: it holds zeros, as UTF-16 does; say "
            "`encoding: utf-16-le` if that is what it is, or save it as UTF-8"
        )
    return text.removeprefix("\ufeff")


def _find_separator(path: Path, sample: str, names: Collection[str]) -> str:
    """The character between cells; whether it is the usual one for such a file is not asked.

    Raises:
        DataError: several would do.
    """
    headers: dict[str, list[str]] = {one: next(_records(sample, one), []) for one in _SEPARATORS}
    split = [one for one in _SEPARATORS if len(headers[one]) > 1]
    known = [one for one in split if names and set(names) <= set(headers[one])]
    if len(known or split) < 2:
        return (known or split or [_usual(path)])[0]
    even = [one for one in known or split if _is_even(sample, one)]
    if len(even) == 1:
        return even[0]
    if not even and _usual(path) in split:
        # Then the row that is of another length is told.
        return _usual(path)
    found = " or ".join(spell(one) for one in even or split)
    raise DataError(
        f'{path}: {found} may stand between its cells; say which, as in `separator: ";"`'
    )


def _is_even(sample: str, separator: str) -> bool:
    """Whether all rows are as long as the header."""
    rows = [len(row) for row in _records(sample, separator) if row]
    if len(sample) >= _SAMPLE - 1:
        # The last may be cut off.
        rows = rows[:-1]
    return len(set(rows)) == 1


def _records(sample: str, separator: str) -> Any:
    return csv.reader(io.StringIO(sample, newline=""), delimiter=separator)


def _read_header(path: Path, sample: str, separator: str) -> list[str]:
    names: list[str] = next(_records(sample, separator), [])
    if not names:
        raise DataError(f"{path}: is empty; a header row of column names is needed")
    if names == ["sep=", ""] or re.match(r"sep=.\s", sample):
        raise DataError(
            f"{path}: its first line (`sep=`) is Excel's and no header: remove it, and say "
            "`separator` if need be"
        )
    seen = set[str]()
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise DataError(
                f"{path}: column {place} has no name; name it, or drop it if it is a row number"
            )
        if name in seen:
            raise DataError(f"{path}: the header names column {name!r} twice; rename one")
        seen.add(name)
    return names


def _usual(path: Path) -> str:
    return "\t" if re.search(r"\.tsv(\.gz)?$", path.name, re.IGNORECASE) else ","


def _open(path: Path) -> IO[bytes]:
    file = open_plain(path, DataError)
    if path.suffix.lower() != ".gz":
        return file
    # Cells take several times the space of their text.
    most = memory() // 8
    packed = cast(IO[bytes], gzip.GzipFile(fileobj=file))
    return io.BufferedReader(Limited(packed, most, too_large(path, DataError, most)))


def _canonical(encoding: str) -> str:
    name = codecs.lookup(encoding).name
    return "utf-8" if name == "utf-8-sig" else name


def _read_mark(path: Path) -> str | None:
    """The encoding that the file's first bytes declare; None without such a mark."""
    try:
        with _open(path) as file:
            first = file.read(4)
    except (EOFError, zlib.error, OSError):
        raise DataError(f"{path}: cannot be read to its end; is it damaged or cut short?") from None
    return next((encoding for mark, encoding in _MARKS if first.startswith(mark)), None)


def _demand_agreed(path: Path, encoding: str | None, mark: str | None) -> None:
    if encoding is not None and mark is not None and not _canonical(encoding).startswith(mark):
        raise DataError(
            f"{path}: begins with the mark of {mark}, so it is not {encoding}: leave `encoding` "
            "away"
        )


def _demand_ascii_else(path: Path) -> None:
    """Raises DataError where a file that is no UTF-8 seems to be meant as such."""
    with _open(path) as file:
        body = file.read()
    # Of another encoding's letters hardly any two look like one of UTF-8's.
    if any(ord(letter) > 127 for letter in body.decode("utf-8", errors="ignore")):
        raise _describe_byte(path, "utf-8")


def _describe_byte(path: Path, encoding: str) -> DataError:
    """Where the file is not in this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with _open(path) as file:
        while True:
            block = file.read(1 << 20)
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(encoding, errors="ignore")
                wrong = error.object[error.start : error.start + 1].hex()
                return DataError(
                    f"{path}: line {line + before.count(chr(10))} holds the byte 0x{wrong}, which "
                    f"is no {encoding}; say which `encoding` the file is in (common are utf-8, "
                    "cp1252 and latin-1), or save it as UTF-8"
                )
            if not block:
                return DataError(f"{path}: is not in {encoding}; save it as UTF-8")


def _describe_fault(
    path: Path, faults: list[arrow_csv.InvalidRow], separator: str, *, told: bool
) -> DataError:
    if faults:
        row = faults[0]
        hint = "" if told or separator == "," else f" (read with {spell(separator)} between cells)"
        return DataError(
            f"{path}: row {row.number} has {row.actual_columns} cells, the header "
            f"{row.expected_columns}{hint}; quote cells that hold "
            f"{'commas' if separator == ',' else spell(separator)}, and check for a cut-off file"
        )
    return DataError(f"{path}: is no table with {spell(separator)} between its cells")
