"""What all columns declare: a name, and the pandas dtype in which they are given back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from fedsynth.agreed import Agreed

PLAIN_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NULLABLE_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
FLOATS = ("float32", "float64", "Float32", "Float64")
TEXTS = ("object", "string", "category")


class Declaration(Agreed):
    """The keys that every kind of column has."""

    name: Annotated[str, Field(min_length=1, description="text that is not empty")]
    dtype: Annotated[str | None, Field(description="the name of a pandas dtype")] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"column {values.get('name', '(unnamed)')!r} ({cls.__name__.lower()})"

    def _repr_html_(self) -> str | None:
        from fedsynth.schema.showing import view_column

        return str(view_column(self).html())

    def demand_dtype(self, allowed: tuple[str, ...], missing: bool) -> None:
        """Raise ValueError unless `dtype` is None or one of those allowed, able to be missing."""
        if self.dtype is None:
            return
        if self.dtype not in allowed:
            raise ValueError(f"`dtype` {self.dtype!r} is none of {', '.join(allowed)}")
        if missing and (self.dtype in PLAIN_INTEGERS or self.dtype == "bool"):
            raise ValueError(f"`dtype` {self.dtype!r} cannot hold missing values")
