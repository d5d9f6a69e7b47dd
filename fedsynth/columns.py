"""The kinds of column that a schema may declare: which values, in which spelling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from fedsynth.validation import Agreed, plain

Value = str | int | float | bool
_Value = Annotated[StrictBool | StrictInt | StrictFloat | StrictStr, BeforeValidator(plain)]
_Whole = Annotated[int, BeforeValidator(plain)]
_Number = Annotated[float, BeforeValidator(plain), Field(allow_inf_nan=False)]

_LARGEST_EXACT = 2**53
"""Whole numbers beyond this are not all exact in float64, which the arrays are made of."""

_SIGNED = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NULLABLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_FLOATS = ("float32", "float64", "Float32", "Float64")
_TEXTS = ("object", "string", "category")


def text_of(value: object) -> str:
    """The text under which equal values meet, whatever type a file or frame gave them.

    >>> text_of(1.0), text_of(1), text_of(" 1 "), text_of(True)
    ('1', '1', '1', 'True')
    """
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value).strip()


class _Column(Agreed):
    name: Annotated[str, Field(min_length=1, description="text that is not empty")]
    dtype: Annotated[str | None, Field(description="the name of a pandas dtype")] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"column {values.get('name', '(unnamed)')!r} ({cls.__name__.lower()})"

    def _demand_dtype(self, allowed: tuple[str, ...], missing: bool) -> None:
        if self.dtype is None:
            return
        if self.dtype not in allowed:
            raise ValueError(f"`dtype` {self.dtype!r} is none of {', '.join(allowed)}")
        if missing and (self.dtype in _SIGNED or self.dtype == "bool"):
            raise ValueError(f"`dtype` {self.dtype!r} cannot hold missing values")


class Categorical(_Column):
    """One of a public list of values, kept in their declared spelling, type and order.

    A value outside the list becomes `other` if there is one, else missing if the column may be
    missing, else the first category.
    """

    kind: Literal["categorical"] = "categorical"
    values: Annotated[
        tuple[_Value, ...],
        BeforeValidator(plain),
        Field(min_length=1, description="a list of texts, numbers or true/false"),
    ]
    other: Annotated[_Value | None, Field(description="a text, a number or true/false")] = None
    missing: Annotated[StrictBool, Field(description="true or false")] = False

    @property
    def categories(self) -> tuple[Value, ...]:
        """The values, and `other` after them if it is none of them; code j means categories[j]."""
        if self.other is None or text_of(self.other) in {text_of(value) for value in self.values}:
            return self.values
        return (*self.values, self.other)

    @property
    def other_code(self) -> int | None:
        """The code of `other`, if there is one."""
        if self.other is None:
            return None
        return [text_of(value) for value in self.categories].index(text_of(self.other))

    @model_validator(mode="after")
    def _consistent(self) -> Categorical:
        seen: dict[str, Value] = {}
        for value in self.values:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError("`values` may not hold nan or inf; set `missing: true` instead")
            twin = seen.setdefault(text_of(value), value)
            if twin is not value:
                raise ValueError(f"`values` holds {twin!r} and {value!r}, which read alike")
        self._demand_dtype(self._allowed_dtypes(), self.missing)
        return self

    def _allowed_dtypes(self) -> tuple[str, ...]:
        kinds = {type(value) for value in self.categories}
        if kinds == {bool}:
            return (*_TEXTS, "bool", "boolean")
        if kinds == {int}:
            return (*_TEXTS, *_SIGNED, *_NULLABLE, *_FLOATS)
        return (*_TEXTS, *_FLOATS) if kinds <= {int, float} else _TEXTS

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        kinds = {type(value) for value in self.categories}
        if self.dtype is not None:
            return self.dtype
        if kinds == {bool}:
            return "boolean" if self.missing else "bool"
        if kinds == {int}:
            return "Int64" if self.missing else "int64"
        return "float64" if kinds <= {int, float} else "object"


class Boolean(_Column):
    """True or false; read from true/false, yes/no, t/f, y/n and 1/0 in any case."""

    kind: Literal["boolean"] = "boolean"
    missing: Annotated[StrictBool, Field(description="true or false")] = False

    @property
    def categories(self) -> tuple[Value, ...]:
        """False, True: code 1 means true."""
        return (False, True)

    @model_validator(mode="after")
    def _consistent(self) -> Boolean:
        allowed = ("bool", "boolean", "object", "category", *_SIGNED, *_NULLABLE, *_FLOATS)
        self._demand_dtype(allowed, self.missing)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or ("boolean" if self.missing else "bool")


class Integer(_Column):
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
    def _consistent(self) -> Integer:
        _demand_numeric(self)
        self._demand_dtype((*_SIGNED, *_NULLABLE, *_FLOATS), self.missing)
        if self.dtype in _SIGNED + _NULLABLE:
            info = np.iinfo(self.dtype.lower())
            if self.lower < info.min or self.upper > info.max:
                raise ValueError(f"bounds do not fit into `dtype` {self.dtype!r}")
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or ("Int64" if self.missing else "int64")


class Continuous(_Column):
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
    def _consistent(self) -> Continuous:
        _demand_numeric(self)
        for bound in (self.lower, self.upper, *self.spikes):
            if round(bound, self.decimals) != bound:
                raise ValueError(f"{bound!r} has more than `decimals`: {self.decimals} places")
        self._demand_dtype(_FLOATS, self.missing)
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


def _moment(value: object) -> object:
    # A number would silently be taken for seconds since 1970.
    if isinstance(value, int | float):
        raise ValueError("must be a date such as 2024-01-31 or 2024-01-31 14:30, in quotes")
    return value


class Datetime(_Column):
    """A moment between public bounds, cut to a resolution; time zones are turned into UTC.

    Text is read as ISO 8601, or as `format` (strptime) says: without one, a date such as 03/04/2020
    is unreadable, because two clients may mean different days by it. Conformed arrays hold whole
    units of the resolution since `lower`.
    """

    kind: Literal["datetime"] = "datetime"
    lower: Annotated[
        datetime, BeforeValidator(_moment), Field(description="a date such as 2024-01-31")
    ]
    upper: Annotated[
        datetime, BeforeValidator(_moment), Field(description="a date such as 2024-01-31")
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
    def _naive(cls, value: datetime) -> datetime:
        if value.tzinfo is not None:
            raise ValueError("has a time zone; give it in UTC without one")
        if not datetime(1678, 1, 1) <= value < datetime(2262, 1, 1):
            raise ValueError("lies outside the years 1678 to 2261 that pandas can hold")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Datetime:
        if self.upper < self.lower:
            raise ValueError("`upper` lies before `lower`; swap them")
        for bound in (self.lower, self.upper):
            if (bound - datetime(1678, 1, 1)) % timedelta(seconds=self.seconds):
                raise ValueError(f"{bound} is not a whole {self.resolution} (the `resolution`)")
        allowed = tuple(f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns"))
        self._demand_dtype((*allowed, "object", "string"), self.missing)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or "datetime64[ns]"


class Identifier(_Column):
    """A key such as a patient number: dropped before anything is learned, made anew on output.

    New ones are unique: 1..n, or the prefix and zero-padded numbers.
    """

    kind: Literal["identifier"] = "identifier"
    prefix: Annotated[str, Field(description="a text")] = ""

    @model_validator(mode="after")
    def _consistent(self) -> Identifier:
        numbers = () if self.prefix else ("int64", "Int64")
        self._demand_dtype((*numbers, "object", "string"), False)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or ("object" if self.prefix else "int64")


Numeric = Integer | Continuous | Datetime
Discrete = Categorical | Boolean
Modelled = Categorical | Boolean | Integer | Continuous | Datetime
Column = Annotated[
    Categorical | Boolean | Integer | Continuous | Datetime | Identifier,
    Field(discriminator="kind"),
]


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
