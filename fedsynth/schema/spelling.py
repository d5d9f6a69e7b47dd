"""A column's conformed values in its dtype and spelling: as they were declared, so as they came."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api.types import pandas_dtype

from fedsynth.errors import DataError
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Datetime,
    Discrete,
    Identifier,
    Modelled,
    Numeric,
    Value,
)
from fedsynth.schema.columns.declaration import DATES, DURATIONS, TEXTS, TIMES
from fedsynth.schema.moments import moments, zoned_moments
from fedsynth.schema.rounding import decimals_of, round_to_grid

_OFFSET = re.compile(r"([+-]\d\d)(\d\d)$")
_NUMBERED = re.compile(r"(date|time|timestamp|duration|u?int|float|double|bool).*\[pyarrow\]")


def spell(values: NDArray[np.generic], column: Modelled) -> pd.Series:
    """One column's array [n] as a Series in the column's dtype and spelling.

    Raises:
        DataError: if a code or number is not allowed.
    """
    if isinstance(column, Categorical | Boolean):
        return _spell_codes(values.astype(np.int64), column)
    if not column.missing and np.isnan(values.astype(np.float64)).any():
        raise DataError(f"column {column.name!r}: has missing values, which it does not declare")
    return cast_numbers(round_to_grid(values.astype(np.float64), column), column)


def cast_numbers(values: NDArray[np.float64], column: Numeric) -> pd.Series:
    """Conformed values [n] in the column's dtype, with that dtype's own missing value."""
    if column.dtype in TEXTS:
        return _cast(write_texts(values, column), column)
    if isinstance(column, Datetime):
        return _cast_moments(values, column)
    series = pd.Series(values, name=column.name)
    if column.dtype in (*DURATIONS, *TIMES):
        return _cast_durations(series, column)
    if column.dtype is not None and column.dtype.startswith("decimal"):
        places = decimals_of(column)
        series = _map(series, lambda value: Decimal(f"{value:.{places}f}"))
    return _cast(series, column)


def write_texts(values: NDArray[np.float64], column: Numeric) -> pd.Series:
    """Conformed values [n] as texts in the column's notation; NaN where one is missing."""
    series = pd.Series(values, name=column.name)
    if isinstance(column, Datetime):
        return _write_moments(values, column)
    decimals = decimals_of(column)
    if column.notation is not None:
        notation = column.notation
        return _map(series, lambda value: notation.write(value, decimals))
    if decimals:
        return _map(series, lambda value: repr(float(value)))
    return _map(series, lambda value: str(int(value)))


def _map(series: pd.Series, function: Callable[[float], object]) -> pd.Series:
    """Objects made of the numbers, each distinct one once; NaN stays."""
    positions, distinct = pd.factorize(series)
    made = np.empty(len(distinct) + 1, dtype=object)
    made[:-1] = [function(value) for value in distinct]
    made[-1] = np.nan
    return pd.Series(made[positions], dtype=object, name=series.name)


def _write_moments(units: NDArray[np.float64], column: Datetime) -> pd.Series:
    pattern = column.pattern
    placed = zoned_moments(units, column) if "%z" in pattern else moments(units, column)
    texts: pd.Series = placed.dt.strftime(pattern).astype(object)
    # ISO 8601 writes +02:00 where strftime writes +0200.
    return texts.str.replace(_OFFSET, r"\1:\2", regex=True) if pattern.endswith("%z") else texts


def _cast_moments(units: NDArray[np.float64], column: Datetime) -> pd.Series:
    if column.dtype in DATES:
        days = moments(units, column).dt.date
        return _cast(days.astype(object).mask(np.isnan(units), np.nan), column)
    if column.zone is None:
        return _cast(moments(units, column), column)
    return _cast(zoned_moments(units, column), column)


def _cast_durations(series: pd.Series, column: Numeric) -> pd.Series:
    assert not isinstance(column, Datetime) and column.seconds is not None
    # Whole nanoseconds of decimal numbers, so that 0.1 s is a tenth.
    unit = Decimal(str(column.seconds)) * 1_000_000_000
    spans = _map(series, lambda value: int(Decimal(repr(float(value))) * unit))
    whole = spans.where(spans.notna(), None).astype("Int64")
    durations = pd.Series(pd.to_timedelta(whole.array), name=series.name)
    if column.dtype not in TIMES:
        return _cast(durations, column)
    start = pd.Timestamp(0)
    times = (start + durations).map(lambda cell: np.nan if cell is pd.NaT else cell.time())
    return _cast(times.astype(object), column)


def _spell_codes(codes: NDArray[np.int64], column: Discrete) -> pd.Series:
    categories = column.categories
    lowest = -1 if column.missing else 0
    if len(codes) and (codes.min() < lowest or codes.max() >= len(categories)):
        raise DataError(
            f"column {column.name!r}: codes must lie between {lowest} and {len(categories) - 1}"
        )
    if column.pandas_dtype == "category":
        ordered = isinstance(column, Categorical) and column.ordered
        spelled = pd.Categorical.from_codes(codes, categories=index_of(categories), ordered=ordered)
        return pd.Series(spelled, name=column.name)
    lookup = np.empty(len(categories) + 1, dtype=object)
    lookup[:-1] = categories
    lookup[-1] = np.nan
    return _cast(pd.Series(lookup[codes], dtype=object, name=column.name), column)


def index_of(categories: tuple[Value, ...]) -> pd.Index:
    """Categories as pandas keeps those of one type, such as numbers; others as objects."""
    kinds = {type(value) for value in categories}
    return pd.Index(categories, dtype=None if len(kinds) == 1 else object)


def draw_identifiers(column: Identifier, rows: int, rng: np.random.Generator) -> pd.Series:
    """As many new keys, each once, in an order drawn from `rng`."""
    numbers = pd.Series(rng.permutation(rows) + 1, name=column.name)
    if column.pandas_dtype not in TEXTS:
        return numbers.astype(pandas_dtype(column.pandas_dtype))
    width = len(str(rows)) if column.width is None else column.width
    texts = column.prefix + numbers.astype(str).str.zfill(width)
    return texts.astype(pandas_dtype(column.pandas_dtype))


def _cast(series: pd.Series, column: Modelled) -> pd.Series:
    """The series in the column's dtype, with that dtype's own missing value."""
    dtype = column.pandas_dtype
    if dtype.startswith(("decimal128", "dictionary")):
        return _build_arrow(series, dtype)
    if dtype in ("Int8", "Int16", "Int32", "Int64", "boolean") or dtype.startswith("UInt"):
        # From object cells pandas refuses NaN, which it takes as <NA> from floats.
        series = series.astype("float64").astype("Int64")
    elif dtype in ("Float32", "Float64"):
        series = series.astype("float64")
    elif _NUMBERED.fullmatch(dtype) or dtype.endswith("string[pyarrow]"):
        series = _plain_for_arrow(series, dtype)
    return series.astype(pandas_dtype(dtype))


def _plain_for_arrow(series: pd.Series, dtype: str) -> pd.Series:
    """Cells from which Arrow takes a missing one for missing, and not for NaN."""
    if re.match(r"u?int|bool", dtype):
        whole = series.astype("float64").astype("Int64")
        return whole.astype("boolean") if dtype.startswith("bool") else whole
    if re.match(r"float|double", dtype):
        return series.astype("float64").astype("Float64")
    return series.where(series.notna(), None) if series.dtype == object else series


def _build_arrow(series: pd.Series, dtype: str) -> pd.Series:
    """Arrow's decimals and dictionaries, whose names pandas does not read."""
    words = re.findall(r"\w+", dtype)
    cells = [None if missing else cell for cell, missing in zip(series, series.isna(), strict=True)]
    if words[0] == "decimal128":
        array = pa.array(cells, pa.decimal128(int(words[1]), int(words[2])))
    else:
        values, indices = pa.type_for_alias(words[2]), pa.type_for_alias(words[4])
        kind = pa.dictionary(indices, values, ordered=words[6] == "1")
        texts = pa.array([None if cell is None else str(cell) for cell in cells], values)
        array = texts.dictionary_encode().cast(kind)
    spelled = pd.arrays.ArrowExtensionArray(array)
    return pd.Series(spelled, name=series.name, index=series.index)
