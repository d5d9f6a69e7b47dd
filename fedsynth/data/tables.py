"""Tables in files of several kinds, read strictly and written so that they read back the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed, conform, demand_columns, restore
from fedsynth.data.csv_files import read_csv
from fedsynth.data.decimals import read_decimals
from fedsynth.data.dialect import Dialect, describe_guesses, quote
from fedsynth.data.excel import read_excel, spell_safely
from fedsynth.data.images import Images, read_images, write_images
from fedsynth.data.sql import read_query
from fedsynth.data.translating import (
    names_there,
    place_columns,
    translate_cells,
    written_there,
)
from fedsynth.data.translation import Translation
from fedsynth.demands import demand_flag, demand_kind, demand_path
from fedsynth.errors import Caution, ConfigError, DataError, warn_of
from fedsynth.files import demand_plain, memory, too_large, writing
from fedsynth.schema import Schema
from fedsynth.schema.cells import missing_text, read_cells, violations
from fedsynth.schema.columns import Boolean, Categorical, Continuous, Datetime, Integer, Modelled
from fedsynth.schema.columns.declaration import FLOATS, INTEGERS
from fedsynth.schema.frames import with_columns
from fedsynth.schema.rounding import round_to_grid
from fedsynth.schema.spelling import cast_numbers, spell, write_texts

__all__ = [
    "Conformed",
    "Images",
    "conform",
    "read_images",
    "read_sql",
    "read_table",
    "restore",
    "write_images",
    "write_table",
]

_COLUMNAR = (".parquet", ".feather")
_TYPED = (*_COLUMNAR, ".xlsx")
"""Kinds of files that know of numbers, dates and truth values."""

_READ = (".csv", ".csv.gz", ".tsv", ".tsv.gz", *_TYPED)
_WRITTEN = (".csv", ".csv.gz", ".parquet")
_PLAIN = Translation()
_LEADING_ZERO = re.compile(r"\s*[-+]?0\d")


def read_table(
    path: str | Path,
    schema: Schema | None = None,
    *,
    empty: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    drop: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    formats: Mapping[str, str] | None = None,
    recode: Mapping[str, Mapping[Any, Any]] | None = None,
    caution: Caution = warn_of,
) -> pd.DataFrame:
    """Read a .csv or .tsv (also with .gz), .parquet, .feather or .xlsx file.

    With a schema, each declared column gets its dtype, with missing cells by the schema; a column
    with cells that cannot be read stays as it is, for `check` to name them. Values are not clamped;
    datetimes are cut to their resolution. Without one, CSV columns become numbers, true/false or
    text by what stands in them, and only empty cells are missing.

    Args:
        empty: whether a table may have no rows; it has its columns all the same.
        separator, decimal, encoding: how a CSV file is written: ";" or "tab", "," or ".", "cp1252".
            What is not said is found out, and `caution` called unless it is as usual (commas or, in
            .tsv, tabs between cells, decimal points, UTF-8 or what a byte order mark declares).
        sheet: of an .xlsx file, by name; else the first.
        drop: columns of the file that are not read.
        rename, formats, recode: what this table has in other words than the schema: names of
            columns ({"SEX": "sex"}), notations of dates and numbers ({"born": "%d.%m.%Y"}), values
            ({"sex": {"female": "F"}}), see :class:`~fedsynth.data.translation.Translation`. The
            last two need the schema.
        caution: called with what was guessed, in a sentence; warns by default.

    Raises:
        DataError: naming the file, and the row or column at fault.
        ConfigError: options that no such file has, or translations that the schema does not know.
    """
    if isinstance(path, str) and "://" in path:
        # Not quoted: it may hold a password.
        raise ConfigError("an address is no path: fs.read_sql(url, query) reads from a database")
    path = demand_path("path", path)
    _demand_options(schema, empty)
    dialect = Dialect(separator=separator, decimal=decimal, encoding=encoding, sheet=sheet)
    translation = Translation(drop=drop, rename=rename, formats=formats, recode=recode)
    frame, guessed = read_guessing(path, dialect, schema, translation, empty=empty, caution=caution)
    if guessed:
        keys = ", ".join(f"{key}: {quote(text)}" for key, text in guessed.items())
        caution(f"{path}: {describe_guesses(guessed)}; say `{keys}` to settle it")
    return frame


def read_guessing(
    path: Path,
    dialect: Dialect,
    schema: Schema | None = None,
    translation: Translation = _PLAIN,
    *,
    empty: bool = False,
    caution: Caution,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """As `read_table`, and what was guessed, by the keys of `Dialect`, to be said or written."""
    kind = _format(path, _READ)
    _demand_meant(path, dialect)
    _demand_schema(schema, translation)
    if not path.exists():
        raise DataError(f"{path}: no such file; check the path")
    demand_plain(path, DataError)
    guessed: dict[str, str] = {}
    if kind == ".xlsx":
        frame, guessed, told = read_excel(path, dialect.sheet)
        for sentence in told:
            caution(f"{path}: {sentence}")
    elif kind in _COLUMNAR:
        frame = _read_columnar(path, kind)
    else:
        frame, guessed = _read_texts(path, dialect, schema, translation)
    if not (empty or len(frame)):
        raise DataError(f"{path}: has no rows")
    if kind in _TYPED:
        frame = _rename(frame, translation, str(path))
    if schema is not None:
        return _apply(schema, frame, translation), guessed
    return frame if kind in _TYPED else frame.apply(_infer_dtype), guessed


def read_sql(
    url: str,
    query: str,
    schema: Schema | None = None,
    *,
    empty: bool = False,
    drop: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    formats: Mapping[str, str] | None = None,
    recode: Mapping[str, Mapping[Any, Any]] | None = None,
) -> pd.DataFrame:
    """Read the rows that a query to a database gives (`pip install 'fedsynth[sql]'`).

    Only a SELECT is asked and nothing is committed, but what a query calls may do more in some
    databases: give an account that may only read. No message tells the address, or what the
    database's driver says.

    Args:
        url: SQLAlchemy's, such as "sqlite:///clinic.db".
        query: a SELECT, as it is: nothing is filled in.
        schema, empty, drop, rename, formats, recode: as in `read_table`.

    Raises:
        DataError: no connection, a query that fails or gives no table.
        ConfigError: no address of a database, or translations that the schema does not know.
    """
    _demand_options(schema, empty)
    translation = Translation(drop=drop, rename=rename, formats=formats, recode=recode)
    _demand_schema(schema, translation)
    frame = _rename(read_query(url, query), translation, "the query")
    if not (empty or len(frame)):
        raise DataError("the query gives no rows")
    return frame if schema is None else _apply(schema, frame, translation)


def _demand_options(schema: object, empty: object) -> None:
    demand_flag("empty", empty)
    if schema is not None:
        demand_kind("schema", schema, Schema, "a table's Schema")


def _rename(frame: pd.DataFrame, translation: Translation, where: str) -> pd.DataFrame:
    places, names = place_columns(frame.columns, translation, where)
    return frame.iloc[:, places].set_axis(names, axis=1)


def _demand_schema(schema: Schema | None, translation: Translation) -> None:
    """Raises ConfigError for cells to be translated into nobody knows what."""
    if schema is None and (translation.formats or translation.recode):
        raise ConfigError("`formats` and `recode` need the schema that cells are translated to")


def _read_texts(
    path: Path, dialect: Dialect, schema: Schema | None, translation: Translation
) -> tuple[pd.DataFrame, dict[str, str]]:
    """A CSV file's cells as texts, its columns renamed, and what was guessed of it."""
    names = () if schema is None else names_there(translation, schema)
    table, separator, guessed = read_csv(path, dialect, names)
    decimal = dialect.decimal or ("." if separator == "," else None)
    places, renamed = place_columns(table.column_names, translation, str(path))
    table = table.select(places).rename_columns(renamed)
    there = {} if schema is None else written_there(translation, schema)
    table, found = read_decimals(table, decimal, there, str(path))
    if found != (decimal or "."):
        guessed = {"separator": separator, "decimal": found, **guessed}
    return table.to_pandas(), guessed


def keys_of(path: str | Path) -> tuple[str, ...]:
    """What a file of this kind leaves open, by the keys of `Dialect`."""
    kind = _format(Path(path), _READ)
    if kind in _TYPED:
        return ("sheet",) if kind == ".xlsx" else ()
    return ("separator", "decimal", "encoding")


def _demand_meant(path: Path, dialect: Dialect) -> None:
    """Raises ConfigError for what is said of a file that has no such thing."""
    for key in dialect.said:
        if key not in keys_of(path):
            named = "Excel workbooks" if key == "sheet" else "CSV files"
            raise ConfigError(f"{path}: `{key}` is of {named}: leave it away")


def _apply(schema: Schema, frame: pd.DataFrame, translation: Translation) -> pd.DataFrame:
    """The frame translated, with each declared column in its dtype."""
    frame = translate_cells(frame, translation, schema)
    typed = {
        column.name: _read_column(frame[column.name], column, schema)
        for column in schema.observed
        if column.name in frame
    }
    return with_columns(frame, typed)


def write_table(
    frame: pd.DataFrame, path: str | Path, schema: Schema, *, excel_safe: bool = False
) -> None:
    """Write a frame of the schema's columns to a .csv, .csv.gz or .parquet file.

    In CSV a missing cell is written as the first of the schema's `missing_values` (the first that
    is no value of the column), numbers with at most their declared decimals, datetimes at their
    resolution. The same frame gives the same bytes.

    Args:
        excel_safe: puts an apostrophe before texts that a spreadsheet would take for a formula and
            compute (:func:`~fedsynth.data.excel.spell_safely`); they are other texts then, which
            the schema does not know. Parquet needs none.

    Raises:
        DataError: if the columns are not the schema's.
        MachineError: if the file cannot be written.
    """
    path = demand_path("path", path)
    demand_kind("schema", schema, Schema, "a table's Schema")
    demand_flag("excel_safe", excel_safe)
    kind = _format(path, _WRITTEN)
    frame = demand_columns(frame, schema, f"table for {path}", whole=True)
    names = [column.name for column in schema.columns if column.name in frame]
    plain = frame[names]
    with writing(path):
        if kind == ".parquet":
            mixed = {
                column.name: _format_column(plain[column.name], column, schema, None)
                for column in schema.observed
                if pd.api.types.infer_dtype(plain[column.name]).startswith("mixed")
            }
            with_columns(plain, mixed).to_parquet(path, index=False)
            return
        # A time stamp in the gzip header would change the bytes from run to run.
        packing = {"method": "gzip", "mtime": 0} if kind == ".csv.gz" else None
        written = _as_texts(plain, schema, excel_safe=excel_safe)
        written.to_csv(path, index=False, lineterminator="\n", compression=packing)


def table_text(frame: pd.DataFrame, schema: Schema, *, excel_safe: bool = False) -> str:
    """What :func:`write_table` writes to a .csv file."""
    frame = demand_columns(frame, schema, "table")
    plain = frame[[column.name for column in schema.columns if column.name in frame]]
    written = _as_texts(plain, schema, excel_safe=excel_safe)
    return str(written.to_csv(index=False, lineterminator="\n"))


def _as_texts(plain: pd.DataFrame, schema: Schema, *, excel_safe: bool) -> pd.DataFrame:
    """Cells as they stand in a .csv file."""
    texts = {
        column.name: _format_column(
            plain[column.name], column, schema, missing_text(column, schema.missing_values)
        )
        for column in schema.observed
    }
    written = with_columns(plain, texts)
    return spell_safely(written) if excel_safe else written


def _format(path: Path, known: Sequence[str]) -> str:
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return suffix
    raise DataError(f"{path}: unknown kind of file; known are {', '.join(known)}")


def _read_columnar(path: Path, kind: str) -> pd.DataFrame:
    try:
        frame = _read_parquet(path) if kind == ".parquet" else pd.read_feather(path)
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, NotImplementedError):
        named = "Parquet" if kind == ".parquet" else "Feather"
        raise DataError(f"{path}: is no {named} file, or is damaged") from None
    return frame.reset_index(drop=True)


def _read_parquet(path: Path) -> pd.DataFrame:
    told = parquet.read_metadata(path)
    if (size := 8 * told.num_rows * told.num_columns) > memory() // 2:
        # A million equal cells take a few bytes.
        raise too_large(path, DataError, size)
    try:
        return pd.read_parquet(path)
    except ValueError:
        # pandas writes names of Arrow's dtypes, dictionaries for one, that it does not read.
        frame: pd.DataFrame = parquet.read_table(path).to_pandas(ignore_metadata=True)
        return frame


def _infer_dtype(texts: pd.Series) -> pd.Series:
    """Text cells [n] as int64, float64, bool or object; a code such as 007 stays text."""
    known = texts[texts != ""]
    places, distinct = pd.factorize(known)
    cells = pd.Series(distinct)
    numbers = pd.to_numeric(cells, errors="coerce")
    if len(known) and numbers.notna().all() and not cells.str.match(_LEADING_ZERO).any():
        found = pd.Series(numbers.to_numpy()[places], known.index, name=texts.name)
        return found.reindex(texts.index)
    if len(known) == len(texts) and cells.isin(["True", "False", "true", "false"]).all():
        return known.str.lower() == "true"
    return texts.where(texts != "", np.nan)


def _read_column(series: pd.Series, column: Modelled, schema: Schema) -> pd.Series:
    cells = read_cells(series, column, schema.missing_values)
    broken = any(mask.any() for mask in violations(cells, column).values())
    number = column if isinstance(column, Integer | Continuous) else None
    numbers = cells.values.astype(np.float64)
    if not broken and (number is None or _is_on_grid(numbers, number)):
        return spell(cells.values, column).set_axis(series.index)
    plain = number is not None and number.pandas_dtype in (*INTEGERS, *FLOATS)
    if number is None or not plain or cells.unreadable.any():
        return series.astype(object).where(~cells.missing, np.nan)
    if broken:
        return pd.Series(numbers, index=series.index, name=series.name)
    return cast_numbers(numbers, number).set_axis(series.index)


def _is_on_grid(numbers: NDArray[np.float64], column: Integer | Continuous) -> bool:
    return np.array_equal(numbers, round_to_grid(numbers, column), equal_nan=True)


def _format_column(
    series: pd.Series, column: Modelled, schema: Schema, missing: str | None
) -> pd.Series:
    """One column's cells as they are written; as they are, if one is outside the schema."""
    cells = read_cells(series, column, schema.missing_values)
    broken = violations(cells, column)
    if any(mask.any() for rule, mask in broken.items() if rule != "missing"):
        texts = series.astype(object)
    elif isinstance(column, Categorical | Boolean):
        texts = pd.Series(np.array([*map(str, column.categories), ""], object)[cells.values])
    elif isinstance(column, Datetime) or column.format is not None:
        texts = write_texts(round_to_grid(cells.values.astype(np.float64), column), column)
    elif isinstance(column, Continuous):
        texts = pd.Series(np.round(cells.values, column.decimals))
    else:
        texts = pd.Series(cells.values).astype("Int64")
    texts = texts.set_axis(series.index)
    if not cells.missing.any():
        return texts
    return texts.astype(object).where(~cells.missing, missing)
