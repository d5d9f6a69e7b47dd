"""A proposal of columns from the rows of a table: convenient, private, and to be reviewed.

Bounds, categories and decimals are read off private rows, which no epsilon covers. A schema made
of them says `private-data` until its owner has replaced them by public knowledge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import DataError, SchemaError
from fedsynth.schema.cells import demand_frame
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
    text_of,
)

_LARGEST_EXACT = 2**53
_MOST_CATEGORIES = 500
_FEW_NUMBERS, _FEW_LABELS = 10, 50
_FEWEST_KEYS = 10
"""So many distinct values at least make a key: fewer may be distinct by chance."""

_SURE_MARKERS = ("", "?", "N/A", "NaN", "nan", "NULL", "null", "<NA>")
_NUMBER_MARKERS = (*_SURE_MARKERS, "NA", "None", "none", ".", "-")
"""Among numbers these can only mean missing; among texts NA may be Namibia."""

_DATES = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
_KEY_NAME = re.compile(r"(^|[\W_])(id|key|index|uuid)$", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)0*[1-9]\d*")


def draft_columns(
    frame: pd.DataFrame, target: str | None
) -> tuple[list[Modelled | Identifier], tuple[str, ...]]:
    """Propose a column for each of the frame's, and the texts that mean missing, commonest first.

    Raises:
        DataError: if the frame has no rows, or columns without or with the same name.
    """
    demand_frame(frame, "table")
    if frame.empty:
        raise DataError("table: has no rows to draft a schema from")
    seen: dict[str, int] = {}
    columns: list[Modelled | Identifier] = []
    for name in frame.columns:
        _demand_single(frame[name])
        markers = _markers(frame[name])
        for marker, count in markers.items():
            seen[marker] = seen.get(marker, 0) + count
        columns.append(draft_column(frame[name], is_target=name == target))
    return columns, tuple(sorted(seen, key=lambda marker: -seen[marker])) or ("",)


def draft_column(
    series: pd.Series, *, is_target: bool = False, kind: str | None = None
) -> Modelled | Identifier:
    """Propose a column for one series; `kind` asks for a categorical or an identifier."""
    name = str(series.name)
    known = series[series.notna()]
    markers = _markers(series)
    if markers:
        known = known[~known.map(text_of).isin(markers)]
    missing = len(known) < len(series)
    if kind == "identifier":
        return Identifier(name=name, prefix=_prefix(known, name))
    column: Modelled | Identifier | None = None
    if kind is None:
        column = _draft_plain(known, name, missing, is_target)
    if column is None and kind is None and not (is_target or missing) and _is_key(known):
        return Identifier(name=name, prefix=_prefix(known, name))
    return _set_dtype(column or _draft_categorical(known, name, missing), series)


def enclose(name: str, lowest: float, highest: float, decimals: int, missing: bool) -> Continuous:
    """A continuous column whose bounds enclose two numbers, with decimals that float64 holds."""
    while decimals > 0 and max(abs(lowest), abs(highest)) * 10**decimals > _LARGEST_EXACT / 2:
        decimals -= 1
    lower, upper = round(lowest, decimals), round(highest, decimals)
    return Continuous(
        name=name,
        lower=lower if lower <= lowest else round(lowest - 10**-decimals, decimals),
        upper=upper if upper >= highest else round(highest + 10**-decimals, decimals),
        decimals=decimals,
        missing=missing,
    )


def _demand_single(series: pd.Series) -> None:
    """Raises DataError for cells that no column of a table can hold."""
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("complex", "timedelta", "timedelta64", "interval", "period"):
        raise DataError(
            f"column {series.name!r} holds {kind} values; give it numbers, dates or texts"
        )
    try:
        pd.factorize(series)
    except TypeError:
        raise DataError(
            f"column {series.name!r} holds lists or other compound cells; give it single values"
        ) from None


def _is_text(series: pd.Series) -> bool:
    return pd.api.types.infer_dtype(series, skipna=True) in ("string", "mixed", "mixed-integer")


def _markers(series: pd.Series) -> dict[str, int]:
    """The texts in this column that mean missing, with their counts; none in numeric ones."""
    if not _is_text(series):
        return {}
    counts: dict[str, int] = {}
    for cell, count in series.value_counts().items():
        counts[text_of(cell)] = counts.get(text_of(cell), 0) + int(count)
    others = pd.Series([text for text in counts if text not in _NUMBER_MARKERS], dtype=object)
    numeric = pd.to_numeric(others, errors="coerce").notna().all()
    markers = _NUMBER_MARKERS if numeric else _SURE_MARKERS
    return {marker: counts[marker] for marker in markers if marker in counts}


def _draft_plain(
    known: pd.Series, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    """A column for numbers, moments and truth values; None for texts."""
    inferred = pd.api.types.infer_dtype(known, skipna=True)
    if known.empty:
        return Continuous(name=name, lower=0, upper=0, decimals=0, missing=True)
    if inferred == "boolean":
        return Boolean(name=name, missing=missing)
    if inferred in ("datetime64", "datetime", "date"):
        return _draft_datetime(pd.to_datetime(known, utc=True), name, missing, None)
    if isinstance(known.dtype, pd.CategoricalDtype):
        return None
    numbers = pd.to_numeric(known.astype(object), errors="coerce")
    coded = inferred == "string" and known.str.match(r"\s*[-+]?0\d").any()
    if numbers.notna().all() and not coded:
        return _draft_number(numbers.to_numpy(dtype=np.float64), known, name, missing, is_target)
    if inferred != "string":
        return None
    texts = known.drop_duplicates().str.strip()
    for pattern in _patterns():
        moments = pd.to_datetime(texts, format=pattern, errors="coerce", utc=True)
        if moments.notna().all():
            return _draft_datetime(
                moments, name, missing, None if pattern == "ISO8601" else pattern
            )
    return None


def _patterns() -> Iterator[str]:
    yield "ISO8601"
    for time in _TIMES:
        for date in _DATES:
            yield date + time


def _draft_number(
    values: NDArray[np.float64], known: pd.Series, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    values = values[np.isfinite(values)]
    if not values.size:
        return Continuous(name=name, lower=0, upper=0, decimals=0, missing=True)
    lowest, highest = float(values.min()), float(values.max())
    if not (values == np.rint(values)).all():
        return enclose(name, lowest, highest, _decimals(values, known), missing)
    if max(abs(lowest), abs(highest)) > _LARGEST_EXACT:
        return None
    distinct = np.unique(values)
    counted = highest - lowest == len(values) - 1
    unique = not missing and len(distinct) == len(values) >= _FEWEST_KEYS
    if unique and not is_target and (counted or _KEY_NAME.search(name)):
        return Identifier(name=name)
    enough = len(values) >= 10 * len(distinct)
    if (is_target and len(distinct) <= _FEW_LABELS) or (len(distinct) <= _FEW_NUMBERS and enough):
        return Categorical(name=name, values=[int(value) for value in distinct], missing=missing)
    return Integer(name=name, lower=int(lowest), upper=int(highest), missing=missing)


def _decimals(values: NDArray[np.float64], known: pd.Series) -> int:
    """The fewest decimals that hold every number, or eight significant digits where none do."""
    stored = np.float32 if str(known.dtype).lower() == "float32" else np.float64
    for decimals in range(13):
        if (np.round(values, decimals).astype(stored) == values.astype(stored)).all():
            return decimals
    return min(max(8 - math.ceil(math.log10(np.abs(values).max())), 0), 12)


def _draft_datetime(moments: pd.Series, name: str, missing: bool, pattern: str | None) -> Datetime:
    naive = moments.dt.tz_convert("UTC").dt.tz_localize(None)
    seconds = naive.dt.hour * 3600 + naive.dt.minute * 60 + naive.dt.second
    resolution = "second"
    for length, word in ((60, "minute"), (3_600, "hour"), (86_400, "day")):
        if not (seconds % length).any():
            resolution = word
    unit = {"second": "s", "minute": "min", "hour": "h", "day": "D"}[resolution]
    return Datetime(
        name=name,
        lower=naive.min().floor(unit).to_pydatetime(),
        upper=naive.max().floor(unit).to_pydatetime(),
        resolution=resolution,
        format=pattern,
        missing=missing,
    )


def _is_key(known: pd.Series) -> bool:
    return len(known) >= _FEWEST_KEYS and bool(known.is_unique)


def _prefix(known: pd.Series, name: str) -> str:
    """What stands before the numbers of keys such as P001; the column's name where they differ."""
    matches = [_NUMBERED.fullmatch(text_of(key)) for key in known]
    prefixes = {match.group(1) if match else None for match in matches}
    prefix = prefixes.pop() if len(prefixes) == 1 else None
    return f"{name}-" if prefix is None else prefix


def _draft_categorical(known: pd.Series, name: str, missing: bool) -> Modelled:
    """A categorical of the values found; beyond 500, of the commonest and `other`."""
    if known.empty:
        return Boolean(name=name, missing=True)
    commonest = known.astype(object).value_counts().index
    spelled: dict[str, object] = {}
    for value in commonest:
        plain = value.item() if isinstance(value, np.generic) else value
        kept = plain if isinstance(plain, str | int | float) else str(plain)
        spelled.setdefault(text_of(kept), kept)
    texts = sorted(list(spelled)[:_MOST_CATEGORIES])
    if isinstance(known.dtype, pd.CategoricalDtype) and len(spelled) <= _MOST_CATEGORIES:
        texts = sorted(texts, key=[text_of(value) for value in known.cat.categories].index)
    other = "other" if len(spelled) > _MOST_CATEGORIES else None
    return Categorical(
        name=name, values=[spelled[text] for text in texts], other=other, missing=missing
    )


def _set_dtype(column: Modelled | Identifier, series: pd.Series) -> Modelled | Identifier:
    """The column with the series' dtype, where that is another than its default and can hold it."""
    dtype = "string" if isinstance(series.dtype, pd.StringDtype) else str(series.dtype)
    if dtype == column.pandas_dtype:
        return column
    try:
        return type(column)(**{**column.model_dump(), "dtype": dtype})
    except SchemaError:
        return column
