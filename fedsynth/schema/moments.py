"""Moments of a datetime column: cells into units since its lower bound, and back."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.columns import Datetime, text_of

ZONED = re.compile(r"[T ]\d\d.*[+-]\d\d(?::?\d\d)?$|Z$")
"""Times that end in Z or in their offset from UTC, as ISO 8601 has it."""


def read_units(series: pd.Series, column: Datetime) -> NDArray[np.float64]:
    """Datetimes, or any objects, as whole units since `lower`; NaN where a cell is no moment."""
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return _count_units(series, column)
    texts = series.map(_moment_text).astype(object)
    moments = _parse(texts, column, "ISO8601")
    if column.format is not None:
        moments = _parse(texts, column, column.format).fillna(moments)
    units = _count_units(moments, column)
    for place in np.flatnonzero(np.isnan(units)):
        units[place] = _parse_far_units(texts.iloc[place], column)
    return units


def moments(units: NDArray[np.float64], column: Datetime) -> pd.Series:
    """Units since `lower` [n] as datetime64 by the column's clock, without a zone; NaN as NaT."""
    if column.zone is None or column.calendar:
        return _count_on(units, column)
    clock: pd.Series = zoned_moments(units, column).dt.tz_localize(None)
    return clock


def zoned_moments(units: NDArray[np.float64], column: Datetime) -> pd.Series:
    """Units since `lower` [n] as moments of the column's zone, UTC where it names none."""
    series = _count_on(units, column)
    if column.calendar:
        return _localize(series, column)
    zoned: pd.Series = series.dt.tz_localize("UTC").dt.tz_convert(column.zone or "UTC")
    return zoned


def _count_on(units: NDArray[np.float64], column: Datetime) -> pd.Series:
    known = np.where(np.isnan(units), 0, units).astype(np.int64)
    if column.calendar:
        moments = np.datetime64(column.lower, column.calendar) + known
    else:
        moments = np.datetime64(column.origin, "s") + known * np.timedelta64(column.seconds, "s")
    series = pd.Series(moments.astype("datetime64[s]"), name=column.name)
    return series.mask(np.isnan(units))


def _localize(series: pd.Series, column: Datetime) -> pd.Series:
    """Moments by the column's clock as moments of its zone.

    Of an hour that the clock shows twice the first is meant; one that it leaves out is the next.
    """
    first = np.ones(len(series), dtype=bool)
    zone = column.zone or "UTC"
    zoned: pd.Series = series.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return zoned


def _moment_text(cell: object) -> str:
    return cell.isoformat() if isinstance(cell, date) else text_of(cell)


def _parse(texts: pd.Series, column: Datetime, pattern: str) -> pd.Series:
    """The moments of texts in UTC; those that name no zone are by the column's clock."""
    parsed = pd.to_datetime(texts, format=pattern, errors="coerce", utc=True)
    if column.zone is None:
        return parsed
    bare = ~texts.str.contains(ZONED) & parsed.notna()
    clock = _localize(parsed.dt.tz_localize(None), column).dt.tz_convert("UTC")
    return parsed.where(~bare, clock)


def _count_units(series: pd.Series, column: Datetime) -> NDArray[np.float64]:
    if column.zone is not None:
        placed = series if series.dt.tz is not None else _localize(series, column)
        zone = column.zone if column.calendar else "UTC"
        series = placed.dt.tz_convert(zone).dt.tz_localize(None)
    elif series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    # In microseconds, since pandas' nanoseconds overflow at differences of 292 years.
    moments = series.to_numpy(dtype="datetime64[us]")
    if column.calendar:
        kind = f"datetime64[{column.calendar}]"
        units = (moments.astype(kind) - np.datetime64(column.lower, column.calendar)).astype(int)
    else:
        since = moments - np.datetime64(column.origin, "us")
        units = since.astype(np.int64) // (column.seconds * 1_000_000)
    return np.where(np.isnat(moments), np.nan, units)


def _parse_far_units(text: str, column: Datetime) -> float:
    """Units to a moment that pandas cannot hold, such as the year 9999; NaN if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        if column.format is None:
            return math.nan
        try:
            moment = datetime.strptime(text, column.format)
        except ValueError:
            return math.nan
    clock = moment.replace(tzinfo=None)
    if column.calendar:
        return float(column.units_to(clock))
    # By the clock alone: in UTC it may be beyond what a datetime holds.
    return float((clock - column.lower) // timedelta(seconds=column.seconds))
