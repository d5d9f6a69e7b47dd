"""Columns of few values, and identifiers, which are never modelled."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from fedsynth.agreed import plain
from fedsynth.schema.columns.declaration import (
    BOOLEANS,
    CATEGORIES,
    FLOATS,
    INTEGERS,
    TEXTS,
    Declaration,
)

Value = str | int | float | bool
_Value = Annotated[StrictBool | StrictInt | StrictFloat | StrictStr, BeforeValidator(plain)]


def text_of(value: object) -> str:
    """The text under which equal values meet, whatever type a file or frame gave them.

    >>> text_of(1.0), text_of(1), text_of(" 1 "), text_of(True)
    ('1', '1', '1', 'True')
    """
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value).strip()


class Categorical(Declaration):
    """One of a public list of values, kept in their declared spelling, type and order.

    A value outside the list becomes `other` if there is one, else missing if the column may be
    missing, else its row is left out. `ordered` is pandas' flag of a `category`: nothing is learned
    from it.
    """

    kind: Literal["categorical"] = "categorical"
    values: Annotated[
        tuple[_Value, ...],
        BeforeValidator(plain),
        Field(min_length=1, description="a list of texts, numbers or true/false"),
    ]
    other: Annotated[_Value | None, Field(description="a text, a number or true/false")] = None
    missing: Annotated[StrictBool, Field(description="true or false")] = False
    ordered: Annotated[StrictBool, Field(description="true or false")] = False

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
    def _check_consistency(self) -> Categorical:
        seen: dict[str, Value] = {}
        for value in self.values:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError("`values` may not hold nan or inf; set `missing: true` instead")
            text = text_of(value)
            if text in seen:
                raise ValueError(f"`values` holds {seen[text]!r} and {value!r}, which read alike")
            seen[text] = value
        self.demand_dtype(self._allowed_dtypes(), self.missing)
        if self.ordered and self.dtype != "category":
            raise ValueError("`ordered` needs `dtype: category`")
        numbers = [value for value in self.categories if isinstance(value, int)]
        if len(numbers) == len(self.categories):
            self.demand_range(min(numbers), max(numbers))
        return self

    def _allowed_dtypes(self) -> tuple[str, ...]:
        kinds = {type(value) for value in self.categories}
        texts = (*TEXTS, *CATEGORIES)
        if kinds == {bool}:
            return (*texts, *BOOLEANS)
        if kinds == {int}:
            return (*texts, *INTEGERS, *FLOATS)
        return (*texts, *FLOATS) if kinds <= {int, float} else texts

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


class Boolean(Declaration):
    """True or false; read from true/false, yes/no, t/f, y/n and 1/0 in any case."""

    kind: Literal["boolean"] = "boolean"
    missing: Annotated[StrictBool, Field(description="true or false")] = False

    @property
    def categories(self) -> tuple[Value, ...]:
        """False, True: code 1 means true."""
        return (False, True)

    @model_validator(mode="after")
    def _check_consistency(self) -> Boolean:
        self.demand_dtype((*BOOLEANS, "object", "category", *INTEGERS, *FLOATS), self.missing)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        return self.dtype or ("boolean" if self.missing else "bool")


WIDEST_KEY = 40
"""Digits of a key at most, as many as the longest account numbers have and more."""


class Identifier(Declaration):
    """A key such as a patient number: dropped before anything is learned, made anew on output.

    New ones are unique: 1..n, or the prefix and zero-padded numbers, of `width` digits at least, or
    all of as many as the last one needs.
    """

    kind: Literal["identifier"] = "identifier"
    prefix: Annotated[str, Field(description="a text")] = ""
    width: Annotated[
        Annotated[StrictInt, Field(ge=1, le=WIDEST_KEY)] | None,
        BeforeValidator(plain),
        Field(description=f"an integer from 1 to {WIDEST_KEY}"),
    ] = None

    @model_validator(mode="after")
    def _check_consistency(self) -> Identifier:
        written = self.prefix or self.width is not None
        # Numbers of the smaller ones end before large tables do.
        numbers = tuple(dtype for dtype in INTEGERS if re.match(r"u?int(32|64)", dtype.lower()))
        self.demand_dtype((*(() if written else numbers), *TEXTS), False)
        return self

    @property
    def pandas_dtype(self) -> str:
        """The dtype that the column has in a table given back."""
        written = self.prefix or self.width is not None
        return self.dtype or ("object" if written else "int64")
