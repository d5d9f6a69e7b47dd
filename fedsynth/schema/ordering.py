"""How values of two columns compare: numbers, durations and dates of whatever units.

Dates of several resolutions compare by the coarser: a patient who was admitted at 14:30 on the day
of discharge was not discharged before. Conformed dates are whole units since their column's lower
bound, so a date of one column is first brought to the other's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import SchemaError
from fedsynth.schema.columns import Continuous, Datetime, Identifier, Integer, Modelled, Numeric

Array = NDArray[np.float64]


def demand_comparable(columns: Sequence[Modelled | Identifier]) -> list[Numeric]:
    """The columns, if their values have an order. Raises SchemaError where they have none."""
    dates = [column for column in columns if isinstance(column, Datetime)]
    numbers = [column for column in columns if isinstance(column, Integer | Continuous)]
    if len(columns) not in (len(dates), len(numbers)):
        raise SchemaError("needs columns of numbers, or of dates")
    if len({column.seconds is None for column in numbers}) > 1:
        told = ", ".join(f"{one.name!r} is {one.format or 'a plain number'}" for one in numbers)
        raise SchemaError(f"needs numbers of one unit, or durations alone, but {told}")
    finer = [one for one in dates if not one.calendar]
    if finer and len(finer) < len(dates):
        for one in finer:
            if one.clock.utcoffset(None) is None:
                raise SchemaError(
                    f"{one.name!r} is on the clock of {one.zone}, whose days differ in length, and "
                    "cannot be compared with days: give it `resolution: day`, or `zone: UTC`"
                )
    return [*dates, *numbers]


def most(low: Numeric, high: Numeric, values: Array) -> Array:
    """The largest number that a value of `low` may be where `high` has these: not below it in
    order is whoever is not above. NaN and infinite values stay what they are."""
    if not isinstance(low, Datetime) or not isinstance(high, Datetime):
        return _scale(values, high, low, np.inf)
    if high.seconds <= low.seconds:
        shifted = _place(_begin(values, high, low), low, high)
        return shifted if high.seconds == low.seconds else np.floor(shifted)
    after = _place(_begin(values + 1, high, low), low, high)
    return np.asarray(np.ceil(after) - 1)


def least(low: Numeric, high: Numeric, values: Array) -> Array:
    """The smallest number that a value of `high` may be where `low` has these."""
    if not isinstance(low, Datetime) or not isinstance(high, Datetime):
        return _scale(values, low, high, -np.inf)
    shifted = _place(_begin(values, low, high), high, low)
    return np.floor(shifted) if high.seconds > low.seconds else shifted


def lead(total: Numeric, parts: Sequence[Numeric]) -> float:
    """What a sum of conformed parts lacks of its conformed total: conformed dates are counted from
    their column's lower bound, and the total's may be another than its part's."""
    if not isinstance(total, Datetime):
        return 0.0
    return float(sum(total.units_to(one.lower) for one in parts if isinstance(one, Datetime)))


def _begin(values: Array, column: Datetime, other: Datetime) -> Array:
    """Seconds from 1970 to where units of a column begin, on a clock that both share."""
    if column.calendar in (None, "D"):
        return values * column.seconds + _origin(column, other)
    found = np.array(values, np.float64)
    known = np.isfinite(found)
    whole = np.datetime64(column.lower, column.calendar) + np.floor(found[known]).astype(np.int64)
    found[known] = whole.astype("datetime64[s]").astype(np.int64)
    return found


def _place(seconds: Array, column: Datetime, other: Datetime) -> Array:
    """The column's unit in which so many seconds from 1970 lie, with what of it has passed; whole
    where units differ in length."""
    if column.calendar in (None, "D"):
        return (seconds - _origin(column, other)) / column.seconds
    found = np.array(seconds, np.float64)
    known = np.isfinite(found)
    moments = np.floor(found[known]).astype(np.int64).astype("datetime64[s]")
    since = moments.astype(f"datetime64[{column.calendar}]") - np.datetime64(
        column.lower, column.calendar
    )
    found[known] = since.astype(np.int64)
    return found


def _scale(values: Array, given: Numeric, wanted: Numeric, towards: float) -> Array:
    """Numbers in the unit of another column, by the last bit too far, so that what is equal stays
    in order."""
    ours, theirs = (1.0 if one.seconds is None else one.seconds for one in (given, wanted))
    return values if ours == theirs else np.nextafter(values * ours / theirs, towards)


def _origin(column: Datetime, other: Datetime) -> float:
    """Seconds from 1970 to what the column's units are counted from, on a clock that it shares with
    the other."""
    seconds = float(np.datetime64(column.origin, "s").astype(np.int64))
    if not column.calendar and other.calendar:
        # Days are those of each column's own clock, finer units are counted in UTC.
        offset = column.clock.utcoffset(None)
        return seconds + (0.0 if offset is None else offset.total_seconds())
    return seconds
