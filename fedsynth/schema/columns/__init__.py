"""The kinds of column that a schema may declare: which values, in which spelling."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedsynth.schema.columns.discrete import Boolean, Categorical, Identifier, Value, text_of
from fedsynth.schema.columns.numeric import Continuous, Datetime, Integer

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Continuous",
    "Datetime",
    "Discrete",
    "Identifier",
    "Integer",
    "Modelled",
    "Numeric",
    "Value",
    "text_of",
]

Numeric = Integer | Continuous | Datetime
Discrete = Categorical | Boolean
Modelled = Categorical | Boolean | Integer | Continuous | Datetime
Column = Annotated[
    Categorical | Boolean | Integer | Continuous | Datetime | Identifier,
    Field(discriminator="kind"),
]
