"""What all columns declare: a name, the pandas dtype in which they are given back, and of what they
are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fedsynth.agreed import Agreed, shown

PLAIN_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NULLABLE_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
INTEGERS = (
    *PLAIN_INTEGERS,
    *NULLABLE_INTEGERS,
    *(f"{name}[pyarrow]" for name in PLAIN_INTEGERS),
)
FLOATS = ("float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]")
BOOLEANS = ("bool", "boolean", "bool[pyarrow]")
TEXTS = ("object", "string", "string[pyarrow]", "utf8[pyarrow]", "large_string[pyarrow]")
"""object: texts of Python. utf8 is Arrow's own, which pandas calls string[pyarrow] as well."""

DECIMALS = ("decimal", "decimal128(P, S)[pyarrow]")
"""decimal: objects of Python's `Decimal`; of Arrow's with digits and decimals in parentheses."""

_UNITS = ("s", "ms", "us", "ns")
MOMENTS = (
    *(f"datetime64[{unit}]" for unit in _UNITS),
    *(f"timestamp[{unit}][pyarrow]" for unit in _UNITS),
)
DATES = ("date", "date32[day][pyarrow]")
"""date, and time below: objects of Python's `datetime` module."""

DURATIONS = (
    *(f"timedelta64[{unit}]" for unit in _UNITS),
    *(f"duration[{unit}][pyarrow]" for unit in _UNITS),
)
TIMES = ("time", "time32[s][pyarrow]", "time64[us][pyarrow]", "time64[ns][pyarrow]")
CATEGORIES = ("category", "dictionary<values=V, indices=I, ordered=0>[pyarrow]")

_OBJECTS = ("decimal", "date", "time")
_DECIMAL = re.compile(r"decimal128\((\d+), (\d+)\)\[pyarrow\]")
_DICTIONARY = re.compile(
    r"dictionary<values=(large_)?string, indices=u?int(8|16|32|64), ordered=[01]>\[pyarrow\]"
)


class Declaration(Agreed):
    """The keys that every kind of column has.

    `of: person` says of what is learned that all rows of one person have the same.
    """

    name: Annotated[str, Field(min_length=1, description="text that is not empty")]
    dtype: Annotated[str | None, Field(description="the name of a pandas dtype")] = None
    of: Annotated[Literal["person"] | None, Field(description="person")] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"column {shown(values.get('name', '(unnamed)'))} ({cls.__name__.lower()})"

    def demand_dtype(self, allowed: tuple[str, ...], missing: bool) -> None:
        """Raise ValueError unless `dtype` is None or one of those allowed, able to be missing."""
        if self.dtype is None:
            return
        if _template(self.dtype) not in allowed:
            raise ValueError(f"`dtype` {self.dtype!r} is none of {', '.join(allowed)}")
        if missing and (self.dtype in PLAIN_INTEGERS or self.dtype == "bool"):
            raise ValueError(f"`dtype` {self.dtype!r} cannot hold missing values")

    def demand_range(self, lower: float, upper: float) -> None:
        """Raise ValueError unless both numbers fit into the `dtype`."""
        if self.dtype in INTEGERS:
            info = np.iinfo(self.dtype.lower().removesuffix("[pyarrow]"))
            fits = info.min <= lower and upper <= info.max
        elif self.dtype is not None and (digits := _DECIMAL.fullmatch(self.dtype)):
            most = 10 ** (int(digits[1]) - int(digits[2]))
            fits = -most < lower and upper < most
        else:
            return
        if not fits:
            raise ValueError(f"bounds do not fit into `dtype` {self.dtype!r}")


def _template(dtype: str) -> str:
    """The dtype as it stands among those allowed."""
    if _DECIMAL.fullmatch(dtype):
        return DECIMALS[1]
    return CATEGORIES[1] if _DICTIONARY.fullmatch(dtype) else dtype


def pandas_name(dtype: str) -> str:
    """The dtype's name to pandas, which knows Python's own objects as `object`."""
    return "object" if dtype in _OBJECTS else dtype
