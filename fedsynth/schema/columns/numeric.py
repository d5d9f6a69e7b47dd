"""Columns of numbers and moments between public bounds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, StrictBool, field_validator, model_validator

from fedsynth.agreed import plain
from fedsynth.schema.columns.declaration import (
    DATES,
    DECIMALS,
    DURATIONS,
    FLOATS,
    INTEGERS,
    MOMENTS,
    TEXTS,
    TIMES,
    Declaration,
    pandas_name,
)
from fedsynth.schema.columns.notation import Notation, parse_notation

_Whole = Annotated[int, BeforeValidator(plain)]
_Float = Annotated[float, BeforeValidator(plain), Field(allow_inf_nan=False)]

_Step = Annotated[
    int | None, Field(ge=1, description="a whole number of at least 1"), BeforeValidator(plain)
]

_LARGEST_EXACT = 2**53
"""Whole numbers beyond this are not all exact in float64, which the arrays are made of."""


class _Number(Declaration):
    """What columns of numbers share: how texts of them are written.

    Without a `format` a text is a plain number such as 1234.5. With one, given by example
    (`parse_notation`), cells are read by it and as plain numbers, and texts written by it; of
    durations (`h:mm:ss`) the number counts the smallest unit shown.
    """

    format: Annotated[
        str | None, Field(description="a text that shows how 1234.5 is written, such as '$1,234.5'")
    ] = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, value: str | None) -> str | None:
        if value is not None:
            parse_notation(value)
        return value

    @property
    def notation(self) -> Notation | None:
        """How texts are written; None for plain numbers."""
        return None if self.format is None else parse_notation(self.format)

    @property
    def seconds(self) -> float | None:
        """Seconds in one of the column's units, where it holds durations."""
        return None if self.notation is None else self.notation.seconds

    def _demand_numbers(self, low: float, high: float, missing: bool, own: tuple[str, ...]) -> None:
        """Raise ValueError where `dtype` cannot hold the numbers; `own`: dtypes of plain ones."""
        seconds = self.seconds
        spans = () if seconds is None else (*DURATIONS, *TIMES)
        self.demand_dtype((*own, *FLOATS, *TEXTS, *DECIMALS, *spans), missing)
        if self.dtype in TIMES and (low < 0 or high * (seconds or 1) >= 86_400):
            raise ValueError(f"`dtype` {self.dtype!r} holds times of one day, below 24 hours")
        self.demand_range(low, high)


class Integer(_Number):
    """A whole number between public bounds, both included.

    `edges` are fixed public bin edges, from `lower` to `upper`: bins [e0, e1), [e1, e2), .. and the
    last one closed. `spikes` are public single values that get a bin of their own. With a `step`,
    values are whole steps from `lower`, and so is `upper`: nothing else is counted or drawn.
    """

    kind: Literal["integer"] = "integer"
    lower: Annotated[_Whole, Field(description="a whole number")]
    upper: Annotated[_Whole, Field(description="a whole number")]
    missing: Annotated[StrictBool, Field(description="true or false")] = False
    edges: Annotated[
        tuple[_Whole, ...] | None, BeforeValidator(plain), Field(description="a list of integers")
    ] = None
    spikes: Annotated[
        tuple[_Whole, ...], BeforeValidator(plain), Field(description="a list of integers")
    ] = ()
    step: _Step = None

    @property
    def low(self) -> float:
        """Lowest value in conformed arrays."""
        return float(self.lower)

    @property
    def high(self) -> float:
        """Highest value in conformed arrays."""
        return float(self.upper)

    @property
    def unit(self) -> float:
        """Spacing of values in conformed arrays."""
        return float(self.stride)

    @property
    def stride(self) -> int:
        """Whole numbers from one value to the next."""
        return self.step or 1

    @model_validator(mode="after")
    def _check_consistency(self) -> Integer:
        _demand_numeric(self, 1.0)
        for value in (self.upper, *self.spikes):
            _demand_steps(value - self.lower, self.stride, self)
        self._demand_numbers(self.low, self.high, self.missing, INTEGERS)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return pandas_name(self.dtype or ("Int64" if self.missing else "int64"))


class Continuous(_Number):
    """A number between public bounds, both included, rounded to `decimals` places.

    `edges`, `spikes` and `step` are as for `Integer`.
    """

    kind: Literal["continuous"] = "continuous"
    lower: Annotated[_Float, Field(description="a finite number")]
    upper: Annotated[_Float, Field(description="a finite number")]
    decimals: Annotated[_Whole, Field(ge=0, le=12, description="an integer from 0 to 12")]
    missing: Annotated[StrictBool, Field(description="true or false")] = False
    edges: Annotated[
        tuple[_Float, ...] | None, BeforeValidator(plain), Field(description="a list of numbers")
    ] = None
    spikes: Annotated[
        tuple[_Float, ...], BeforeValidator(plain), Field(description="a list of numbers")
    ] = ()
    step: Annotated[
        float | None, Field(gt=0, description="a number above 0"), BeforeValidator(plain)
    ] = None

    @property
    def low(self) -> float:
        """Lowest value in conformed arrays."""
        return self.lower

    @property
    def high(self) -> float:
        """Highest value in conformed arrays."""
        return self.upper

    @property
    def unit(self) -> float:
        """Spacing of values in conformed arrays."""
        return float(10.0**-self.decimals) if self.step is None else self.step

    @property
    def stride(self) -> int:
        """Units of the last decimal place from one value to the next."""
        return 1 if self.step is None else self._places(self.step)

    def _places(self, value: float) -> int:
        """A number with `decimals` places, in units of the last one."""
        return round(Decimal(repr(value)).scaleb(self.decimals))

    @model_validator(mode="after")
    def _check_consistency(self) -> Continuous:
        _demand_numeric(self, 10.0**-self.decimals)
        steps = () if self.step is None else (self.step,)
        for bound in (self.lower, self.upper, *self.spikes, *steps):
            if round(bound, self.decimals) != bound:
                raise ValueError(f"{bound!r} has more than `decimals`: {self.decimals} places")
        for value in (self.upper, *self.spikes):
            _demand_steps(self._places(value) - self._places(self.lower), self.stride, self)
        if self.decimals and self.notation is not None and self.notation.whole:
            raise ValueError(f"`format` {self.format!r} shows no decimals, and `decimals` has some")
        self._demand_numbers(self.low, self.high, self.missing, ())
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return pandas_name(self.dtype or "float64")


Resolution = Literal["year", "month", "day", "hour", "minute", "second"]
# Of years and months on average, by the Gregorian calendar.
_SECONDS: dict[str, int] = {
    "year": 31_556_952,
    "month": 2_629_746,
    "day": 86_400,
    "hour": 3_600,
    "minute": 60,
    "second": 1,
}
_PATTERNS: dict[str, str] = {
    "year": "%Y-%m-%d",
    "month": "%Y-%m-%d",
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%d %H:00",
    "minute": "%Y-%m-%d %H:%M",
    "second": "%Y-%m-%d %H:%M:%S",
}


_CALENDAR: dict[str, Literal["Y", "M", "D"]] = {"year": "Y", "month": "M", "day": "D"}


def _refuse_number(value: object) -> object:
    # A number would silently be taken for seconds since 1970.
    if isinstance(value, int | float):
        raise ValueError("must be a date such as 2024-01-31 or 2024-01-31 14:30, in quotes")
    return value


_PROBE = datetime(1999, 11, 23, 13, 45, 56, tzinfo=UTC)
"""A moment none of whose parts could be another."""


def _demand_date_format(text: str, calendar: Literal["Y", "M", "D"] | None) -> None:
    """Raises ValueError for a format that strptime does not know, or that would lose a date."""
    try:
        read = datetime.strptime(_PROBE.strftime(text), text)
    except ValueError:
        raise ValueError(f"`format` {text!r} is none of strptime's, such as %d/%m/%Y") from None
    parts = {"Y": ("year",), "M": ("year", "month")}.get(calendar or "D", ("year", "month", "day"))
    for part in parts:
        if getattr(read, part) != getattr(_PROBE, part):
            raise ValueError(f"`format` {text!r} names no {part}")


class Datetime(Declaration):
    """A moment between public bounds, cut to a resolution, on the clock of a zone, UTC by default.

    Text is read as ISO 8601, or as `format` (strptime) says: without one, a date such as 03/04/2020
    is unreadable, because two clients may mean different days by it. Bounds, and cells that name no
    zone, are on the column's clock; others are turned to it. Conformed arrays hold whole units of
    the resolution since `lower`: years, months or days of the calendar, a year or month being its
    first day; hours, minutes or seconds that passed. With a `step` they are whole steps of so many
    of these.
    """

    kind: Literal["datetime"] = "datetime"
    lower: Annotated[
        datetime, BeforeValidator(_refuse_number), Field(description="a date such as 2024-01-31")
    ]
    upper: Annotated[
        datetime, BeforeValidator(_refuse_number), Field(description="a date such as 2024-01-31")
    ]
    resolution: Annotated[
        Resolution, Field(description="year, month, day, hour, minute or second")
    ] = "day"
    format: Annotated[str | None, Field(description="a strptime format such as %d/%m/%Y")] = None
    zone: Annotated[
        str | None, Field(description="a time zone such as Europe/Berlin, UTC or '+02:00'")
    ] = None
    missing: Annotated[StrictBool, Field(description="true or false")] = False
    step: _Step = None

    @property
    def low(self) -> float:
        """Lowest value in conformed arrays: no unit after `lower`."""
        return 0.0

    @property
    def high(self) -> float:
        """Highest value in conformed arrays: units from `lower` to `upper`."""
        return float(self.units_to(self.upper))

    @property
    def origin(self) -> datetime:
        """What units are counted from: `lower`, of days by the column's clock, else in UTC."""
        return self._count_from(self.lower)

    @property
    def clock(self) -> tzinfo:
        """The column's time zone."""
        return find_zone(self.zone or "UTC")

    @property
    def calendar(self) -> Literal["Y", "M", "D"] | None:
        """Years, months and days by NumPy's letter; None of units that pass on a clock."""
        return _CALENDAR.get(self.resolution)

    def units_to(self, moment: datetime) -> int:
        """Whole units from `lower` to a moment of the column's clock, of no zone."""
        years, months = moment.year - self.lower.year, moment.month - self.lower.month
        if self.calendar == "Y":
            return years
        if self.calendar == "M":
            return 12 * years + months
        return (self._count_from(moment) - self.origin) // timedelta(seconds=self.seconds)

    def moment_at(self, units: float) -> datetime:
        """So many units after :attr:`origin`. Raises OverflowError out of a datetime's reach."""
        if self.calendar in (None, "D"):
            return self.origin + timedelta(seconds=units * self.seconds)
        months = int(units) * (12 if self.calendar == "Y" else 1) + self.lower.month - 1
        year = self.lower.year + months // 12
        if not 1 <= year <= 9999:
            raise OverflowError(f"the year {year}")
        return datetime(year, months % 12 + 1, 1)

    def spell_at(self, units: float) -> str:
        """The moment so many units after :attr:`origin`, on the column's clock."""
        try:
            moment = self.moment_at(units)
            if self.calendar:
                return str(moment.date())
            return str(moment.replace(tzinfo=UTC).astimezone(self.clock).replace(tzinfo=None))
        except OverflowError:
            return "a date out of reach"

    def _is_whole(self, bound: datetime) -> bool:
        if self.calendar in (None, "D"):
            return not (bound - datetime(1678, 1, 1)) % timedelta(seconds=self.seconds)
        return bound == datetime(bound.year, 1 if self.calendar == "Y" else bound.month, 1)

    def _count_from(self, bound: datetime) -> datetime:
        if self.calendar:
            return bound
        offset = bound.replace(tzinfo=self.clock).utcoffset() or timedelta()
        # As pandas does, whose zones have no seconds.
        return bound - timedelta(minutes=(offset + timedelta(seconds=30)) // timedelta(minutes=1))

    @property
    def unit(self) -> float:
        """Spacing of values in conformed arrays."""
        return float(self.stride)

    @property
    def stride(self) -> int:
        """Units of the resolution from one value to the next."""
        return self.step or 1

    @property
    def seconds(self) -> int:
        """Seconds in one unit of the resolution, of years and months on average."""
        return _SECONDS[self.resolution]

    @property
    def pattern(self) -> str:
        """The strftime pattern in which the column is written."""
        if self.format is not None:
            return self.format
        if self.zone is None or self.calendar:
            return _PATTERNS[self.resolution]
        # Where a clock is put back, the offset tells the two hours apart. It may be by minutes.
        pattern = _PATTERNS["minute" if self.resolution == "hour" else self.resolution]
        return f"{pattern}%z"

    @field_validator("lower", "upper")
    @classmethod
    def _check_naive(cls, value: datetime) -> datetime:
        if value.tzinfo is not None:
            raise ValueError("has a time zone; give it without one, by the clock of `zone` or UTC")
        if not datetime(1678, 1, 1) <= value < datetime(2262, 1, 1):
            raise ValueError("lies outside the years 1678 to 2261 that pandas can hold")
        return value

    @field_validator("zone")
    @classmethod
    def _check_zone(cls, value: str | None) -> str | None:
        if value is not None:
            find_zone(value)
        return value

    @model_validator(mode="after")
    def _check_consistency(self) -> Datetime:
        if self.upper < self.lower:
            raise ValueError("`upper` lies before `lower`; swap them")
        named = self.zone is not None and isinstance(self.clock, ZoneInfo)
        if named and self.lower < FIRST_ZONED:
            raise ValueError(
                f"`zone` {self.zone!r} is known from 1902 on: raise `lower`, or drop it"
            )
        for bound in (self.lower, self.upper):
            if not self._is_whole(bound):
                raise ValueError(f"{bound} is not a whole {self.resolution} (the `resolution`)")
        if self.format is not None:
            _demand_date_format(self.format, self.calendar)
        _demand_steps(int(self.high), self.stride, self)
        self.demand_dtype((*MOMENTS, *TEXTS, *DATES), self.missing)
        if self.dtype in DATES and (not self.calendar or self.zone is not None):
            raise ValueError(f"`dtype` {self.dtype!r} holds days alone, of no zone")
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        dtype = self.dtype or "datetime64[ns]"
        if self.zone is None or dtype in TEXTS:
            return pandas_name(dtype)
        if dtype.startswith("timestamp"):
            return dtype.replace("]", f", tz={self.zone}]", 1)
        utc = "UTC" if _OFFSET.fullmatch(self.zone) else ""
        return dtype.replace("]", f", {utc}{self.zone}]")


FIRST_ZONED = datetime(1902, 1, 1)
"""Before this, libraries differ in what the clocks of a zone showed."""

_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


def find_zone(name: str) -> tzinfo:
    """The time zone of a name such as Europe/Berlin, or of an offset from UTC such as +02:00.

    Raises:
        ValueError: if there is none.
    """
    if found := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        if offset < timedelta(days=1):
            return timezone(-offset if found[1] == "-" else offset)
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is no time zone; give a name such as Europe/Berlin, or '+02:00'"
        ) from None


def _demand_steps(units: int, stride: int, column: Integer | Continuous | Datetime) -> None:
    """Raise ValueError where a value so many units above `lower` is no whole step from it."""
    if units % stride:
        raise ValueError(
            f"`step` {column.step} does not lead from `lower` {column.lower} to `upper` "
            f"{column.upper}, or not by each of the `spikes`: move the bounds outwards"
        )


def _demand_numeric(column: Integer | Continuous, unit: float) -> None:
    """Raise ValueError where bounds, edges or spikes contradict each other."""
    lower, upper = column.lower, column.upper
    if lower > upper:
        raise ValueError(f"`lower` {lower} is above `upper` {upper}; swap them")
    if max(abs(lower), abs(upper)) / unit > _LARGEST_EXACT:
        raise ValueError("bounds are too wide for exact numbers; narrow them or round more")
    if column.edges is not None:
        edges = column.edges
        rising = all(a < b for a, b in pairwise(edges))
        if len(edges) < 2 or not rising or (edges[0], edges[-1]) != (lower, upper):
            raise ValueError(f"`edges` must rise from `lower` {lower} to `upper` {upper}")
    if any(not lower <= spike <= upper for spike in column.spikes):
        raise ValueError(f"`spikes` must lie between `lower` {lower} and `upper` {upper}")
    if len(set(column.spikes)) != len(column.spikes):
        raise ValueError("`spikes` holds a value twice")
