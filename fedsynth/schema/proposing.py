"""Columns that hold what cells were read as: kind, bounds rounded outwards, decimals, dtype."""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fedsynth.errors import SchemaError
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
from fedsynth.schema.columns.declaration import TEXTS
from fedsynth.schema.columns.discrete import WIDEST_KEY
from fedsynth.schema.columns.numeric import FIRST_ZONED, find_zone
from fedsynth.schema.reading import Reading, are_of, means_missing

_LARGEST_EXACT = 2**53
_MOST_CATEGORIES = 5_000
_FEW_NUMBERS, _FEW_LABELS = 10, 50
_FEWEST_KEYS = 10
"""So many distinct values at least make a key: fewer may be distinct by chance."""

_DAY = 86_400
KEY_NAME = re.compile(r"(^|[\W_])(id|key|index|uuid)$", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)(0*[1-9]\d*|0+)")


def propose_plain(
    read: Reading, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    """A column for numbers, moments and truth values; None for texts."""
    if read.known.empty:
        return Continuous(name=name, lower=0, upper=0, decimals=0, missing=True)
    if read.meaning == "boolean":
        return Boolean(name=name, missing=missing)
    if read.meaning == "date":
        return _propose_datetime(read, name, missing)
    if read.meaning == "number":
        return _propose_number(read, name, missing, is_target)
    return None


def _propose_number(
    read: Reading, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    values = read.values.to_numpy(dtype=np.float64)
    lowest, highest = float(values.min()), float(values.max())
    whole = bool((values == np.rint(values)).all())
    if whole and max(abs(lowest), abs(highest)) > _LARGEST_EXACT:
        return None
    distinct = np.unique(values)
    if is_target and len(distinct) <= _FEW_LABELS and read.pattern is not None:
        return None
    if read.decimals or not whole:
        decimals = read.decimals or _decimals(values, read.known)
        lower, upper = _round_outwards(lowest, highest, decimals)
        column = enclose(name, float(lower), float(upper), decimals, missing)
        return column if read.pattern is None else _write_as(column, read)
    if read.pattern is None and (found := _label_or_key(read, name, missing, is_target)):
        return found
    lower, upper = _round_outwards(int(lowest), int(highest), 0)
    least, most = _limits(read.known)
    lower, upper = max(lower, Decimal(least)), min(upper, Decimal(most))
    whole_numbers = Integer(name=name, lower=int(lower), upper=int(upper), missing=missing)
    return whole_numbers if read.pattern is None else _write_as(whole_numbers, read)


def _label_or_key(
    read: Reading, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    """A column for whole numbers that are labels or keys."""
    values = read.values.to_numpy(dtype=np.float64)
    distinct = np.unique(values)
    counted = values.max() - values.min() == len(values) - 1
    unique = not missing and len(distinct) == len(values) >= _FEWEST_KEYS
    if unique and not is_target and (counted or KEY_NAME.search(name)):
        return Identifier(name=name)
    enough = len(values) >= 10 * len(distinct)
    if (is_target and len(distinct) <= _FEW_LABELS) or (len(distinct) <= _FEW_NUMBERS and enough):
        return Categorical(name=name, values=[int(value) for value in distinct], missing=missing)
    return None


def _write_as(column: Integer | Continuous, read: Reading) -> Integer | Continuous:
    """The column with the notation of its texts; times of day end with the day."""
    entry = {**column.model_dump(), "format": read.pattern}
    written = type(column)(**entry)
    if read.of_day:
        end = _DAY / (written.seconds or 1) - column.unit
        upper = min(column.upper, round(end, 6))
        entry |= {"lower": max(column.lower, 0), "upper": type(column.upper)(upper)}
    return type(column)(**entry)


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


def _round_outwards(lowest: float, highest: float, decimals: int) -> tuple[Decimal, Decimal]:
    """Round numbers around two: multiples of 1, 2 or 5 times a power of ten, in 4 to 12 steps."""
    low, high = Decimal(str(lowest)), Decimal(str(highest))
    if low == high:
        return low, high
    quarter = (high - low) / 4
    power = Decimal(1).scaleb(quarter.adjusted())
    steps = [factor * power for factor in map(Decimal, (1, 2, 5)) if factor * power <= quarter]
    step = max(*steps, Decimal(1).scaleb(-decimals))
    lower = (low / step).to_integral_value(ROUND_FLOOR) * step
    return lower, (high / step).to_integral_value(ROUND_CEILING) * step


def _limits(known: pd.Series) -> tuple[int, int]:
    """What whole numbers of the series' dtype, and float64, can hold."""
    if not pd.api.types.is_integer_dtype(known.dtype):
        return -_LARGEST_EXACT, _LARGEST_EXACT
    held = np.iinfo(str(known.dtype).lower())
    return max(int(held.min), -_LARGEST_EXACT), min(int(held.max), _LARGEST_EXACT)


def _decimals(values: NDArray[np.float64], known: pd.Series) -> int:
    """The fewest decimals that hold every number, or eight significant digits where none do."""
    for decimals in range(13):
        if are_exact(values, known, decimals):
            return decimals
    return min(max(8 - math.ceil(math.log10(np.abs(values).max())), 0), 12)


def are_exact(values: NDArray[np.float64], known: pd.Series, decimals: int) -> bool:
    """Whether so many decimals hold every number, as exactly as the series' dtype does."""
    stored = np.float32 if str(known.dtype).lower() == "float32" else np.float64
    rounded = np.round(values, decimals).astype(stored)
    return bool((rounded == values.astype(stored)).all())


def _propose_datetime(read: Reading, name: str, missing: bool) -> Datetime:
    """Moments between bounds rounded outwards, to whole years, months or days by their range."""
    early = read.values.min().year <= FIRST_ZONED.year
    named = read.zone is not None and isinstance(find_zone(read.zone), ZoneInfo)
    zone = None if early and named else read.zone
    local = read.values.dt.tz_convert(zone or "UTC").dt.tz_localize(None)
    first, last = local.min(), local.max()
    # pandas' own difference ends at 292 years.
    days = (last.to_pydatetime() - first.to_pydatetime()).days
    period = "Y" if days >= 2 * 365 else "M" if days >= 60 else "D"
    lower = first.to_period(period).start_time.to_pydatetime()
    upper = last.to_period(period).end_time
    column = Datetime(name=name, lower=lower, upper=lower, resolution="second", zone=zone)
    seconds = local.dt.hour * 3_600 + local.dt.minute * 60 + local.dt.second
    if not seconds.any():
        # Of two dates it may be chance that they begin a month.
        begin = (local.dt.day == 1).all() and local.nunique() > 2
        resolution = "day" if not begin else "month" if (local.dt.month > 1).any() else "year"
    else:
        # Of a clock that is put forward and back, hours are those that passed.
        moments = read.values.dt.tz_localize(None).to_numpy("datetime64[s]")
        passed = (moments - np.datetime64(column.origin, "s")).astype(np.int64)
        hours, minutes = passed % 3_600 == 0, passed % 60 == 0
        resolution = "hour" if hours.all() else "minute" if minutes.all() else "second"
    last = {"year": upper.to_period("Y"), "month": upper.to_period("M")}
    unit = {"second": "s", "minute": "min", "hour": "h", "day": "D"}
    upper = last[resolution].start_time if resolution in last else upper.floor(unit[resolution])
    entry = {
        **column.model_dump(),
        "upper": upper.to_pydatetime(),
        "resolution": resolution,
        "missing": missing,
    }
    plain = Datetime(**entry)
    pattern = read.pattern
    if pattern is not None and lower.strftime(pattern) == lower.strftime(plain.pattern):
        pattern = None
    return Datetime(**{**entry, "format": pattern})


def propose_key(known: pd.Series, name: str) -> Identifier:
    """Keys with what stands before their numbers, such as P in P001, and as many digits.

    Where they differ, the column's name stands before them.
    """
    if pd.api.types.is_numeric_dtype(known.dtype) and (known == np.rint(known)).all():
        return Identifier(name=name)
    matches = [_NUMBERED.fullmatch(text_of(key)) for key in known]
    prefixes = {match[1] if match else None for match in matches}
    prefix = prefixes.pop() if len(prefixes) == 1 else None
    if prefix is None:
        return Identifier(name=name, prefix=f"{name}-")
    digits = [match[2] for match in matches if match]
    lengths = {len(each) for each in digits}
    padded = any(each.startswith("0") and len(each) > 1 for each in digits)
    width = lengths.pop() if len(lengths) == 1 else None if padded else 1
    if width is not None and width > WIDEST_KEY:
        width = None
    return Identifier(name=name, prefix=prefix, width=width)


def is_key(known: pd.Series) -> bool:
    """Whether so many cells, each once, are keys."""
    return len(known) >= _FEWEST_KEYS and bool(known.is_unique)


def propose_categorical(known: pd.Series, name: str, missing: bool) -> Modelled:
    """A categorical of the values found; beyond 5,000, of the commonest and `other`."""
    if known.empty:
        return Boolean(name=name, missing=True)
    cells = known.astype(object)
    # To pandas 0 and False are one; in the table of an owner who has one of them it is itself.
    flag = are_of(cells, bool, np.bool_)
    counts = Counter(cells[~flag].tolist())
    found = pd.Index([value for value, _ in counts.most_common()], dtype=object)
    commonest = [*found.infer_objects(), *cells[flag].unique()]
    categories = known.cat.categories if isinstance(known.dtype, pd.CategoricalDtype) else ()
    spelled: dict[str, object] = {}
    for value in (*commonest, *categories):
        plain = value.item() if isinstance(value, np.generic) else value
        value = plain if isinstance(plain, str | int | float) else str(plain)
        spelled.setdefault(text_of(value), value)
    kept = list(spelled)[:_MOST_CATEGORIES]
    # What means missing in another column is a value here, so it may not fall into `other`.
    texts = sorted({*kept, *(text for text in spelled if means_missing(text))})
    if len(categories) and len(spelled) <= _MOST_CATEGORIES:
        texts = sorted(texts, key=[text_of(value) for value in categories].index)
    other = "other" if len(spelled) > _MOST_CATEGORIES else None
    return Categorical(
        name=name, values=[spelled[text] for text in texts], other=other, missing=missing
    )


def set_dtype(column: Modelled | Identifier, series: pd.Series) -> Modelled | Identifier:
    """The column with the series' dtype, where that is another than its default and can hold it."""
    dtype = _dtype_name(series, column)
    if dtype is None or dtype == column.pandas_dtype:
        return column
    entry = {**column.model_dump(), "dtype": dtype}
    if isinstance(column, Categorical) and isinstance(series.dtype, pd.CategoricalDtype):
        entry["ordered"] = bool(series.cat.ordered)
    try:
        return type(column)(**entry)
    except SchemaError:
        return column


def _dtype_name(series: pd.Series, column: Modelled | Identifier) -> str | None:
    """The series' dtype as a schema names it; None where it is best given back in the default."""
    dtype = series.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return f"datetime64[{dtype.unit}]"
    if isinstance(dtype, pd.ArrowDtype):
        if dtype.pyarrow_dtype == pa.string():
            name = "utf8[pyarrow]"
        else:
            name = re.sub(r", tz=.*?\]", "]", str(dtype))
    elif isinstance(dtype, pd.StringDtype):
        name = "string[pyarrow]" if dtype.storage == "pyarrow" else "string"
    elif pd.api.types.is_object_dtype(dtype):
        kind = pd.api.types.infer_dtype(series, skipna=True)
        if kind in ("decimal", "date", "time"):
            return kind
        if kind in ("datetime", "datetime64"):
            return None
        name = "object"
    else:
        return str(dtype)
    # Numbers in texts are of more use as numbers; amounts come back as they are written.
    plain = isinstance(column, Integer | Continuous) and column.format is None
    return None if plain and name in TEXTS else name
