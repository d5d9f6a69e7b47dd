"""A column's cells read as its schema means them, whatever types a file or frame brought."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import time, timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import DataError, SchemaError
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Datetime,
    Discrete,
    Integer,
    Modelled,
    Numeric,
    text_of,
)
from fedsynth.schema.columns.notation import Notation
from fedsynth.schema.rounding import decimals_of, round_to_grid

if TYPE_CHECKING:
    import pandas as pd

MISSING, UNREADABLE = -1, -2
"""Codes of a discrete cell that holds no category."""

# Cells that tell whether a column of texts repeats itself.
_LOOKED_AT = 1_000

TRUE = {"true", "yes", "t", "y", "1"}
FALSE = {"false", "no", "f", "n", "0"}


Rule = Literal["missing", "undeclared", "unreadable", "below", "above", "fraction", "step"]
"""What a cell may break: missing where none may be; a category not listed; no number or date; out
of bounds; a fraction in an integer column; a number between two steps."""


@dataclass(frozen=True)
class Cells:
    """One column's n cells.

    `values`: float64 [n], the numbers as found (not yet clamped or rounded; datetimes in units
    since the column's `lower`), NaN where there is none; or int64 [n] codes into the column's
    categories, negative where there is none. `missing`, `unreadable`: bool [n], never both.
    """

    values: NDArray[np.float64] | NDArray[np.int64]
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]


def read_cells(series: pd.Series, column: Modelled, missing_values: Iterable[str]) -> Cells:
    """Read every cell; None, NaN, NaT, NA, empty text and `missing_values` are missing.

    What the column declares as a value of its own (a category, a number within bounds) is a value,
    even where `missing_values` lists it.

    Raises:
        DataError: if a cell of a categorical or datetime column is a list or the like.
    """
    series = without_storage(series)
    markers = {marker.strip() for marker in missing_values} | {""}
    if isinstance(column, Categorical | Boolean):
        return _read_discrete(series, column, markers)
    return _read_numeric(series, column, markers)


def read_keys(
    series: pd.Series, missing_values: Iterable[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Of an identifier's cells [n] the code of each one's key, -1 in a gap, and the keys' texts in
    the order of first appearance: 1, 1.0 and " 1" are one key.

    Raises:
        DataError: a cell is a list or the like.
    """
    positions, uniques = _factorize(without_storage(series))
    gaps = {marker.strip() for marker in missing_values} | {"", "nan", "NaN", "NaT"}
    known: dict[str, int] = {}
    codes = [
        -1 if text in gaps else known.setdefault(text, len(known)) for text in map(text_of, uniques)
    ]
    return np.array([*codes, -1], dtype=np.int64)[positions], list(known)


def texts_of(cells: pd.Series) -> pd.Series:
    """`text_of` each cell, found once for all that are equal; a missing one stays."""
    import pandas as pd

    if cells.dtype == object and pd.api.types.infer_dtype(cells, skipna=True) != "string":
        # True and 1 are equal, and their texts are not.
        return cells.map(text_of, na_action="ignore").astype(object)
    places, distinct = pd.factorize(cells)
    found = np.array([*map(text_of, distinct), np.nan], object)
    return pd.Series(found[places], cells.index, name=cells.name)


def without_storage(series: pd.Series) -> pd.Series:
    """The cells without what is special in how Arrow or a sparse array stores them."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        dense: pd.Series = series.astype(dtype.subtype)
        return dense
    return series.astype(_stored_plainly(dtype)) if isinstance(dtype, pd.ArrowDtype) else series


def _stored_plainly(dtype: pd.ArrowDtype) -> Any:
    """pandas' own dtype of the same cells."""
    from pandas.api.types import pandas_dtype

    stored = dtype.pyarrow_dtype
    if str(stored).startswith("timestamp"):
        zone = "" if stored.tz is None else f", {stored.tz}"
        return pandas_dtype(f"datetime64[{stored.unit}{zone}]")
    if str(stored).startswith("duration"):
        return pandas_dtype(f"timedelta64[{stored.unit}]")
    plain = {"i": "Int64", "u": "UInt64", "f": "Float64", "b": "boolean"}
    return pandas_dtype(plain.get(dtype.kind, "object"))


def violations(cells: Cells, column: Modelled) -> dict[Rule, NDArray[np.bool_]]:
    """Masks [n] of the cells that break each of the column's rules; a cell breaks one at most."""
    broken: dict[Rule, NDArray[np.bool_]] = {}
    if isinstance(column, Categorical | Boolean):
        broken["undeclared"] = cells.unreadable
    else:
        broken["unreadable"] = cells.unreadable
        # Comparisons with NaN are false, so missing and unreadable cells stay out.
        broken["below"] = cells.values < column.low
        broken["above"] = cells.values > column.high
        inside = ~(broken["below"] | broken["above"] | np.isnan(cells.values))
        whole = np.ones(len(inside), bool)
        if isinstance(column, Integer):
            whole = cells.values == np.rint(cells.values)
            broken["fraction"] = inside & ~whole
        if column.step is not None:
            decimals = decimals_of(column)
            rounded = np.asarray(np.round(cells.values, decimals), np.float64)
            between = rounded != round_to_grid(rounded, column)
            broken["step"] = inside & whole & between
    if not column.missing:
        broken["missing"] = cells.missing
    return broken


def missing_text(column: Modelled, missing_values: Sequence[str]) -> str:
    """How a missing cell of this column is written: the first marker that reads back as missing.

    Raises:
        SchemaError: if every marker is a category.
    """
    import pandas as pd

    markers = (*missing_values, "")
    cells = read_cells(pd.Series(markers, dtype=object), column, missing_values)
    for marker, missing in zip(markers, cells.missing, strict=True):
        if missing:
            return marker
    raise SchemaError(
        f"column {column.name!r}: every text for missing values is also one of its categories; "
        f"add another to the schema's `missing_values`"
    )


def _read_discrete(series: pd.Series, column: Discrete, markers: set[str]) -> Cells:
    positions, uniques = _factorize(series)
    read = _boolean_code if isinstance(column, Boolean) else _category_reader(column)
    known = [_recognize_missing(read(cell), cell, markers) for cell in uniques]
    codes = np.append(np.array(known, dtype=np.int64), MISSING)[positions]
    return Cells(
        values=np.maximum(codes, MISSING), missing=codes == MISSING, unreadable=codes == UNREADABLE
    )


def _factorize(series: pd.Series) -> tuple[NDArray[np.intp], list[object]]:
    """Position of each cell among the distinct ones; -1 (the last) for None, NaN and the like."""
    import pandas as pd

    try:
        positions, uniques = pd.factorize(series)
    except TypeError:
        raise DataError(
            f"column {series.name!r} holds lists or other compound cells; give it single values"
        ) from None
    return positions, list(uniques)


def _recognize_missing(code: int, cell: object, markers: set[str]) -> int:
    if code == UNREADABLE and text_of(cell) in markers:
        return MISSING
    return code


def _boolean_code(cell: object) -> int:
    text = text_of(cell).casefold()
    return 1 if text in TRUE else 0 if text in FALSE else UNREADABLE


def _category_reader(column: Categorical) -> Callable[[object], int]:
    """A function from a cell to the code of the category it spells, else UNREADABLE.

    A text must spell a declared text exactly, up to spaces around it. A number, or a text where the
    category is a number, is compared by value, so that 0, 0.0 and "0.0" are one.
    """
    texts = {text_of(value): code for code, value in enumerate(column.categories)}
    for truth in (True, False):
        if any(truth is known for known in column.categories):
            texts.setdefault(str(truth).lower(), texts[str(truth)])
            texts.setdefault(str(truth).upper(), texts[str(truth)])
    numbers: dict[float, int] = {}
    for code, value in enumerate(column.categories):
        number = _to_number(value)
        if not math.isnan(number):
            # Texts like "7" and "007" are two categories but one number: then neither is meant.
            numbers[number] = code if number not in numbers else UNREADABLE

    def read(cell: object) -> int:
        text = text_of(cell)
        if text in texts:
            return texts[text]
        code = numbers.get(_to_number(cell), UNREADABLE)
        spelled = code != UNREADABLE and isinstance(column.categories[code], str)
        return UNREADABLE if spelled and isinstance(cell, str) else code

    return read


def _to_number(value: object) -> float:
    if isinstance(value, bool | np.bool_):
        return math.nan
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _read_numeric(series: pd.Series, column: Numeric, markers: set[str]) -> Cells:
    import pandas as pd

    absent = series.isna().to_numpy(dtype=bool)
    values = _to_numbers(series, column)
    missing = absent.copy()
    uncertain = np.flatnonzero(np.isnan(values) & ~absent)
    if uncertain.size:
        texts = series.iloc[uncertain].map(text_of)
        missing[uncertain] = texts.isin(markers | {"nan", "NaN", "NaT"}).to_numpy(dtype=bool)
    # Parsing takes a while, and no text at all is no number.
    if told := sorted(markers - {""}):
        for marker in _to_numbers(pd.Series(told, dtype=object), column):
            if not column.low <= marker <= column.high:
                missing |= values == marker
    values = np.where(missing, np.nan, values)
    return Cells(values=values, missing=missing, unreadable=np.isnan(values) & ~missing)


def _to_numbers(series: pd.Series, column: Numeric) -> NDArray[np.float64]:
    """The cells as float64, NaN where they are none."""
    import pandas as pd

    if isinstance(column, Datetime):
        from fedsynth.schema.moments import read_units

        if pd.api.types.is_datetime64_any_dtype(series.dtype):
            return read_units(series, column)
        positions, uniques = _factorize(series)
        return np.append(read_units(pd.Series(uniques, dtype=object), column), np.nan)[positions]
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return np.full(len(series), np.nan)
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        seconds = series.dt.total_seconds().to_numpy(dtype=np.float64)
        return np.asarray(seconds / (column.seconds or np.nan), dtype=np.float64)
    if column.notation is not None:
        positions, uniques = _factorize(series)
        read = [read_number(cell, column.notation) for cell in uniques]
        return np.array([*read, np.nan], dtype=np.float64)[positions]
    if _repeats(series):
        positions, uniques = _factorize(series)
        return _to_numbers(pd.Series(uniques, dtype=object), column)[positions]
    numbers = pd.to_numeric(series.astype(object), errors="coerce")
    if pd.api.types.is_complex_dtype(numbers.dtype):
        # One complex cell makes pandas fill the others with arbitrary memory.
        return np.array([_to_number(cell) for cell in series], dtype=np.float64)
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _repeats(series: pd.Series) -> bool:
    """Whether these are texts most of which occur again, so that each is better read once."""
    import pandas as pd

    if len(series) < _LOOKED_AT or pd.api.types.infer_dtype(series, skipna=False) != "string":
        return False
    return bool(2 * series.iloc[:_LOOKED_AT].nunique() <= _LOOKED_AT)


def read_number(cell: object, notation: Notation) -> float:
    """One cell of a column with a notation as a number, NaN if it is none."""
    if isinstance(cell, str):
        return notation.read(cell)
    if isinstance(cell, timedelta | time):
        return seconds_of(cell) / (notation.seconds or math.nan)
    return 1.0 if cell is True else 0.0 if cell is False else _to_number(cell)


def seconds_of(cell: timedelta | time) -> float:
    """The length of a duration, or of a day until a time, in seconds."""
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    whole = cell.hour * 3_600 + cell.minute * 60 + cell.second
    return float(f"{whole}.{cell.microsecond:06d}")
