"""Tables in CSV and Parquet files, read strictly and written so that they read back the same."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv

from fedsynth.data.conforming import (
    Conformed,
    cast_dtype,
    conform,
    demand_columns,
    moments,
    restore,
    spell,
)
from fedsynth.data.images import Images, read_images, write_images
from fedsynth.errors import DataError
from fedsynth.schema import Schema
from fedsynth.schema.cells import missing_text, read_cells, violations
from fedsynth.schema.columns import Boolean, Categorical, Continuous, Datetime, Modelled

__all__ = [
    "Conformed",
    "Images",
    "conform",
    "read_images",
    "read_table",
    "restore",
    "write_images",
    "write_table",
]

_FORMATS = (".csv", ".csv.gz", ".parquet")
_LEADING_ZERO = re.compile(r"\s*[-+]?0\d")


def read_table(
    path: str | Path, schema: Schema | None = None, *, empty: bool = False
) -> pd.DataFrame:
    """Read a .csv, .csv.gz (comma, UTF-8, header row) or .parquet file.

    With a schema, each declared column gets its dtype, with missing cells by the schema; a column
    with cells that cannot be read stays as it is, for `check` to name them. Values are not clamped;
    datetimes are cut to their resolution. Without one, CSV columns become numbers, true/false or
    text by what stands in them, and only empty cells are missing.

    Args:
        empty: whether a table may have no rows; it has its columns all the same.

    Raises:
        DataError: naming the file, and the row or column at fault.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    frame = _read_parquet(path) if _format(path) == ".parquet" else _read_csv(path)
    if not (empty or len(frame)):
        raise DataError(f"{path}: has no rows")
    if schema is None:
        return frame if _format(path) == ".parquet" else frame.apply(_infer_dtype)
    typed = {
        column.name: _read_column(frame[column.name], column, schema)
        for column in schema.modelled
        if column.name in frame
    }
    return frame.assign(**typed)


def write_table(frame: pd.DataFrame, path: str | Path, schema: Schema) -> None:
    """Write a frame of the schema's columns to a .csv, .csv.gz or .parquet file.

    In CSV a missing cell is written as the first of the schema's `missing_values` (the first that
    is no value of the column), numbers with at most their declared decimals, datetimes at their
    resolution. The same frame gives the same bytes.

    Raises:
        DataError: if the columns are not the schema's, or the file cannot be written.
    """
    path = Path(path)
    kind = _format(path)
    frame = demand_columns(frame, schema, f"table for {path}")
    names = [column.name for column in schema.columns if column.name in frame]
    plain = frame[names]
    try:
        if kind == ".parquet":
            mixed = {
                column.name: _format_column(plain[column.name], column, schema, None)
                for column in schema.modelled
                if pd.api.types.infer_dtype(plain[column.name]).startswith("mixed")
            }
            plain.assign(**mixed).to_parquet(path, index=False)
            return
        texts = {
            column.name: _format_column(
                plain[column.name], column, schema, missing_text(column, schema.missing_values)
            )
            for column in schema.modelled
        }
        # A time stamp in the gzip header would change the bytes from run to run.
        packing = {"method": "gzip", "mtime": 0} if kind == ".csv.gz" else None
        plain.assign(**texts).to_csv(path, index=False, lineterminator="\n", compression=packing)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from None


def _format(path: Path) -> str:
    for suffix in _FORMATS:
        if path.name.lower().endswith(suffix):
            return suffix
    raise DataError(f"{path}: unknown kind of file; known are {', '.join(_FORMATS)}")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError):
        raise DataError(f"{path}: is no Parquet file, or is damaged") from None
    return frame.reset_index(drop=True)


def _read_csv(path: Path) -> pd.DataFrame:
    """Every cell as text; a row of another length than the header is an error, unlike in pandas."""
    faults: list[arrow_csv.InvalidRow] = []

    def refuse(row: arrow_csv.InvalidRow) -> str:
        faults.append(row)
        return "error"

    try:
        names = _read_header(path)
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=1 << 24),
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=arrow_csv.ConvertOptions(
                strings_can_be_null=False, column_types=dict.fromkeys(names, pa.string())
            ),
        )
    except (EOFError, zlib.error, OSError):
        raise DataError(f"{path}: cannot be read to its end; is it damaged or cut short?") from None
    except (UnicodeDecodeError, pa.ArrowInvalid, csv.Error) as error:
        raise _describe_fault(path, faults, error) from None
    return cast(pd.DataFrame, table.to_pandas())


def _read_header(path: Path) -> list[str]:
    with _open_text(path) as file:
        names = next(csv.reader(file), [])
    if not names:
        raise DataError(f"{path}: is empty; a header row of column names is needed")
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        raise DataError(f"{path}: has one column only; separate columns by commas")
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise DataError(
                f"{path}: column {place} has no name; name it, or drop it if it is a row number"
            )
        if name in names[: place - 1]:
            raise DataError(f"{path}: the header names column {name!r} twice; rename one")
    return names


def _open_text(path: Path) -> IO[str]:
    if _format(path) == ".csv.gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _describe_fault(path: Path, faults: list[arrow_csv.InvalidRow], error: Exception) -> DataError:
    if faults:
        row = faults[0]
        return DataError(
            f"{path}: row {row.number} has {row.actual_columns} cells, the header "
            f"{row.expected_columns}; quote cells that hold commas, and check for a cut-off file"
        )
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
        return DataError(f"{path}: is not UTF-8 text; save it as UTF-8")
    return DataError(f"{path}: is no comma-separated table")


def _infer_dtype(texts: pd.Series) -> pd.Series:
    """Text cells [n] as int64, float64, bool or object; a code such as 007 stays text."""
    known = texts[texts != ""]
    numbers = pd.to_numeric(known, errors="coerce")
    if len(known) and numbers.notna().all() and not known.str.match(_LEADING_ZERO).any():
        return numbers.reindex(texts.index)
    if len(known) == len(texts) and known.isin(["True", "False", "true", "false"]).all():
        return known.str.lower() == "true"
    return texts.where(texts != "", np.nan)


def _read_column(series: pd.Series, column: Modelled, schema: Schema) -> pd.Series:
    cells = read_cells(series, column, schema.missing_values)
    broken = any(mask.any() for mask in violations(cells, column).values())
    if not broken and isinstance(column, Categorical | Boolean | Datetime):
        return spell(cells.values, column).set_axis(series.index)
    if isinstance(column, Categorical | Boolean | Datetime) or cells.unreadable.any():
        return series.astype(object).where(~cells.missing, np.nan)
    numbers = pd.Series(cells.values, index=series.index, name=series.name)
    return numbers if broken else cast_dtype(numbers, column)


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
    elif isinstance(column, Datetime):
        texts = moments(cells.values.astype(np.float64), column).dt.strftime(column.pattern)
    elif isinstance(column, Continuous):
        texts = pd.Series(np.round(cells.values, column.decimals))
    else:
        texts = pd.Series(cells.values).astype("Int64")
    texts = texts.set_axis(series.index)
    if not cells.missing.any():
        return texts
    return texts.astype(object).where(~cells.missing, missing)
