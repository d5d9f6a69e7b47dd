"""Methods whose release brings a classifier along, and the rows that it is asked about."""

from __future__ import annotations

from typing import Protocol, overload, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed, conform_all
from fedsynth.data.images import Images, check_images, demand_rows
from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema
from fedsynth.schema.frames import with_columns


@runtime_checkable
class Predictor(Protocol):
    """A synthesizer with a classifier of the schema's target."""

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """Of every class, float64 [n, classes], for rows or images with or without labels.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that the schema does not fit.
        """
        ...


@overload
def conform_unlabelled(data: pd.DataFrame | Images, schema: Schema) -> Conformed: ...
@overload
def conform_unlabelled(data: pd.DataFrame | Images, schema: ImageSchema) -> Images: ...
def conform_unlabelled(
    data: pd.DataFrame | Images, schema: Schema | ImageSchema
) -> Conformed | Images:
    """A table to classify, conformed, or images; labels are not looked at and may be absent.

    Raises:
        ConfigError: a table where the schema describes images, or the reverse; or a schema without
            a target of categories beside other columns.
        DataError: data that the schema does not fit.
    """
    data = demand_rows(data, "data to classify")
    if isinstance(schema, ImageSchema):
        if not schema.classes:
            raise ConfigError("there is no classifier: the schema has no target of categories")
        if not isinstance(data, Images):
            raise ConfigError("the schema describes images, and a table was given")
        unlabelled = schema.model_copy(update={"target": None})
        return check_images(Images(data.pixels), unlabelled, "images to classify")
    target = schema.target_column
    if not isinstance(target, Categorical | Boolean) or len(schema.modelled) == 1:
        raise ConfigError(
            "there is no classifier: the schema has no target of categories beside other columns"
        )
    if isinstance(data, Images):
        raise ConfigError("the schema describes a table, and images were given")
    labelled = with_columns(data, {target.name: target.categories[0]})
    return conform_all(labelled, schema, "table to classify")
