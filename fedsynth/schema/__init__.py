"""The schema: what a table or a set of images is, agreed in public; drafted, checked, exchanged."""

from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Column,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
)
from fedsynth.schema.image import ImageSchema
from fedsynth.schema.table import Schema, build_schema, demand_schema, load_schema

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Continuous",
    "Datetime",
    "Identifier",
    "ImageSchema",
    "Integer",
    "Modelled",
    "Schema",
    "build_schema",
    "demand_schema",
    "load_schema",
]
