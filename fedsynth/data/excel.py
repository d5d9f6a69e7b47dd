"""Excel workbooks: a sheet's values, with one row of names above them."""

from __future__ import annotations

import re
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from fedsynth.agreed import suggestion
from fedsynth.data.values import type_column
from fedsynth.errors import DataError
from fedsynth.files import demand_unpacked

_MOST_CELLS = 50_000_000
# Full-width signs as well, which some languages' programs take for the others.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_SIGNED = re.compile(r"[-+]\d[\d.,' \u00a0\u202f]*(?:[eE][-+]?\d+)?")


def read_excel(path: Path, sheet: str | None) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read the table of one sheet, which begins in its first row, which sheet was guessed among
    several, and what else there is to tell of it.

    Formulas give the values that were computed last. Empty rows and columns behind the table are
    none of it; empty rows within are passed over, as in CSV.

    Args:
        sheet: its name; the first one if None.

    Raises:
        DataError: naming the file, and what is wrong with it; openpyxl is not installed.
    """
    page, guessed = _open_sheet(path, sheet, values=True)
    told = []
    where = f"{path}: sheet {page.title!r}"
    if merged := sorted(map(str, page.merged_cells.ranges)):
        raise DataError(f"{where} has merged cells ({merged[0]}): unmerge them, and fill in each")
    if page.max_row * page.max_column > _MOST_CELLS:
        # A single cell far out makes a sheet that large.
        raise DataError(
            f"{where} has cells out to row {page.max_row:,} and column {page.max_column:,}, too "
            "many to read: delete what is far out, or save it as CSV"
        )
    rows = [list(row) for row in page.iter_rows(values_only=True)]
    while rows and _is_empty(rows[-1]):
        rows.pop()
    if not rows:
        raise DataError(f"{where} is empty; a first row of column names is needed")
    width = max(_length(row) for row in rows)
    names = _read_names(rows[0][:width], where)
    body = [row[:width] for row in rows[1:]]
    _demand_computed(path, page, body)
    kept = [row for row in body if not _is_empty(row)]
    if len(kept) < len(body):
        told.append(f"{len(body) - len(kept)} rows without a single cell were passed over")
    columns = {name: type_column([row[k] for row in kept]) for k, name in enumerate(names)}
    return pd.DataFrame(columns, columns=pd.Index(names, dtype=object)), guessed, told


def spell_safely(frame: pd.DataFrame) -> pd.DataFrame:
    """With an apostrophe before every text and name that spreadsheet programs would compute.

    They take what begins with = + - @ or a control character for a formula, which may call others
    and send them cells. Numbers with a sign stay numbers.
    """
    safe = frame.rename(columns=_spell_safely)
    for name, cells in safe.items():
        if cells.dtype == object or pd.api.types.is_string_dtype(cells):
            safe[name] = cells.map(_spell_safely)
    return safe


def _spell_safely(cell: Any) -> Any:
    if not isinstance(cell, str) or _FORMULA.match(cell) is None or _SIGNED.fullmatch(cell):
        return cell
    return f"'{cell}"


def _open_sheet(path: Path, sheet: str | None, *, values: bool) -> tuple[Any, dict[str, str]]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            f"{path}: Excel files are read by openpyxl, which is not installed: pip install "
            "'fedsynth[excel]', or save the sheet as CSV"
        ) from None
    demand_unpacked(path, DataError)
    try:
        book = load_workbook(path, data_only=values)
    except (zipfile.BadZipFile, OSError, ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path}: is no Excel workbook (.xlsx), is damaged or locked by a password"
        ) from None
    except Exception as error:
        # Its XML reader's errors are of no class that openpyxl promises.
        raise DataError(
            f"{path}: cannot be read ({type(error).__name__}); is it damaged?"
        ) from None
    pages = {page.title: page for page in book.worksheets}
    if not pages:
        raise DataError(f"{path}: has no sheet with cells")
    if sheet is not None and sheet not in pages:
        raise DataError(f"{path}: has no sheet {sheet!r}{suggestion(sheet, pages)}")
    first = next(iter(pages))
    guessed = {"sheet": first} if sheet is None and len(pages) > 1 else {}
    return pages[sheet or first], guessed


def _is_empty(row: list[Any]) -> bool:
    return all(_is_gap(cell) for cell in row)


def _is_gap(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _length(row: list[Any]) -> int:
    return max((k for k, cell in enumerate(row, start=1) if not _is_gap(cell)), default=0)


def _read_names(cells: list[Any], where: str) -> list[str]:
    names: list[str] = []
    seen = set[str]()
    for place, cell in enumerate(cells, start=1):
        if _is_gap(cell):
            raise DataError(
                f"{where}: column {place} has no name in row 1; name it, or move the table's header"
                " into the first row"
            )
        name = cell.isoformat() if isinstance(cell, date) else str(cell)
        if name in seen:
            raise DataError(f"{where}: the header names column {name!r} twice; rename one")
        seen.add(name)
        names.append(name)
    return names


def _demand_computed(path: Path, values: Any, body: list[list[Any]]) -> None:
    """Raises DataError where a formula's value is not in the file, since nothing computed it."""
    gaps = [(k, j) for k, row in enumerate(body) for j, cell in enumerate(row) if cell is None]
    if not gaps:
        return
    page, _ = _open_sheet(path, values.title, values=False)
    for k, j in gaps:
        cell = page.cell(k + 2, j + 1)
        # A value that is a text without letters has a type of its own.
        if cell.data_type == "f" and values.cell(k + 2, j + 1).data_type == "n":
            raise DataError(
                f"{path}: sheet {values.title!r}: {cell.coordinate} is a formula without a value: "
                "open the file in a spreadsheet program and save it"
            )
