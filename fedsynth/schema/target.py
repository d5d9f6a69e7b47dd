"""The target among a schema's columns."""

from __future__ import annotations

from fedsynth.schema import ImageSchema, Schema


def target_index(schema: Schema) -> int:
    """Position of the target among the modelled columns."""
    return [column.name for column in schema.modelled].index(str(schema.target))


def conditions(schema: Schema | ImageSchema) -> int:
    """Classes of the target that a model can be conditioned on; 0 where there is nothing beside."""
    if isinstance(schema, Schema) and len(schema.modelled) == 1:
        return 0
    return schema.classes
