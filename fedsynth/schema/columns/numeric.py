"""Columns of numbers and moments between public bounds."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool, field_validator, model_validator

from fedsynth.agreed import plain
from fedsynth.schema.columns.declaration import (
    FLOATS,
    NULLABLE_INTEGERS,
    PLAIN_INTEGERS,
    Declaration,
)

_Whole = Annotated[int, BeforeValidator(plain)]
_Number = Annotated[float, BeforeValidator(plain), Field(allow_inf_nan=False)]

_LARGEST_EXACT = 2**53
"""Whole numbers beyond this are not all exact in float64, which the arrays are made of."""


class Integer(Declaration):
    """A whole number between public bounds, both included.

    `edges` are fixed public bin edges, from `lower` to `upper`: bins [e0, e1), [e1, e2), .. and the
    last one closed. `spikes` are public single values that get a bin of their own.
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
        return 1.0

    @model_validator(mode="after")
    def _check_consistency(self) -> Integer:
        _demand_numeric(self)
        self.demand_dtype((*PLAIN_INTEGERS, *NULLABLE_INTEGERS, *FLOATS), self.missing)
        if self.dtype in PLAIN_INTEGERS + NULLABLE_INTEGERS:
            info = np.iinfo(self.dtype.lower())
            if self.lower < info.min or self.upper > info.max:
                raise ValueError(f"bounds do not fit into `dtype` {self.dtype!r}")
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or ("Int64" if self.missing else "int64")


class Continuous(Declaration):
    """A number between public bounds, both included, rounded to `decimals` places.

    `edges` and `spikes` are as for `Integer`.
    """

    kind: Literal["continuous"] = "continuous"
    lower: Annotated[_Number, Field(description="a finite number")]
    upper: Annotated[_Number, Field(description="a finite number")]
    decimals: Annotated[_Whole, Field(ge=0, le=12, description="an integer from 0 to 12")]
    missing: Annotated[StrictBool, Field(description="true or false")] = False
    edges: Annotated[
        tuple[_Number, ...] | None, BeforeValidator(plain), Field(description="a list of numbers")
    ] = None
    spikes: Annotated[
        tuple[_Number, ...], BeforeValidator(plain), Field(description="a list of numbers")
    ] = ()

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
        return float(10.0**-self.decimals)

    @model_validator(mode="after")
    def _check_consistency(self) -> Continuous:
        _demand_numeric(self)
        for bound in (self.lower, self.upper, *self.spikes):
            if round(bound, self.decimals) != bound:
                raise ValueError(f"{bound!r} has more than `decimals`: {self.decimals} places")
        self.demand_dtype(FLOATS, self.missing)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or "float64"


Resolution = Literal["day", "hour", "minute", "second"]
_SECONDS: dict[str, int] = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_PATTERNS: dict[str, str] = {
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%d %H:00",
    "minute": "%Y-%m-%d %H:%M",
    "second": "%Y-%m-%d %H:%M:%S",
}


def _refuse_number(value: object) -> object:
    # A number would silently be taken for seconds since 1970.
    if isinstance(value, int | float):
        raise ValueError("must be a date such as 2024-01-31 or 2024-01-31 14:30, in quotes")
    return value


class Datetime(Declaration):
    """A moment between public bounds, cut to a resolution; time zones are turned into UTC.

    Text is read as ISO 8601, or as `format` (strptime) says: without one, a date such as 03/04/2020
    is unreadable, because two clients may mean different days by it. Conformed arrays hold whole
    units of the resolution since `lower`.
    """

    kind: Literal["datetime"] = "datetime"
    lower: Annotated[
        datetime, BeforeValidator(_refuse_number), Field(description="a date such as 2024-01-31")
    ]
    upper: Annotated[
        datetime, BeforeValidator(_refuse_number), Field(description="a date such as 2024-01-31")
    ]
    resolution: Annotated[Resolution, Field(description="day, hour, minute or second")] = "day"
    format: Annotated[str | None, Field(description="a strptime format such as %d/%m/%Y")] = None
    missing: Annotated[StrictBool, Field(description="true or false")] = False

    @property
    def low(self) -> float:
        """Lowest value in conformed arrays: no unit after `lower`."""
        return 0.0

    @property
    def high(self) -> float:
        """Highest value in conformed arrays: units from `lower` to `upper`."""
        return float((self.upper - self.lower) // timedelta(seconds=self.seconds))

    @property
    def unit(self) -> float:
        """Spacing of values in conformed arrays."""
        return 1.0

    @property
    def seconds(self) -> int:
        """Seconds in one unit of the resolution."""
        return _SECONDS[self.resolution]

    @property
    def pattern(self) -> str:
        """The strftime pattern in which the column is written."""
        return self.format or _PATTERNS[self.resolution]

    @field_validator("lower", "upper")
    @classmethod
    def _check_naive(cls, value: datetime) -> datetime:
        if value.tzinfo is not None:
            raise ValueError("has a time zone; give it in UTC without one")
        if not datetime(1678, 1, 1) <= value < datetime(2262, 1, 1):
            raise ValueError("lies outside the years 1678 to 2261 that pandas can hold")
        return value

    @model_validator(mode="after")
    def _check_consistency(self) -> Datetime:
        if self.upper < self.lower:
            raise ValueError("`upper` lies before `lower`; swap them")
        for bound in (self.lower, self.upper):
            if (bound - datetime(1678, 1, 1)) % timedelta(seconds=self.seconds):
                raise ValueError(f"{bound} is not a whole {self.resolution} (the `resolution`)")
        allowed = tuple(f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns"))
        self.demand_dtype((*allowed, "object", "string"), self.missing)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or "datetime64[ns]"


def _demand_numeric(column: Integer | Continuous) -> None:
    """Raise ValueError where bounds, edges or spikes contradict each other."""
    lower, upper = column.lower, column.upper
    if lower > upper:
        raise ValueError(f"`lower` {lower} is above `upper` {upper}; swap them")
    if max(abs(lower), abs(upper)) / column.unit > _LARGEST_EXACT:
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
