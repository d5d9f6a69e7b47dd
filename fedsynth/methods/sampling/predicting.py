"""Methods whose release brings a classifier along, and the rows that it is asked about."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed, conform
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, Schema


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


def conform_unlabelled(data: pd.DataFrame | Images, schema: Schema) -> Conformed:
    """A table to classify, conformed; its target is not looked at and may be absent.

    Raises:
        ConfigError: images, or a schema without a target of categories beside other columns.
        DataError: a table that the schema does not fit.
    """
    target = schema.target_column
    if not isinstance(target, Categorical | Boolean) or len(schema.modelled) == 1:
        raise ConfigError(
            "there is no classifier: the schema has no target of categories beside other columns"
        )
    if isinstance(data, Images):
        raise ConfigError("the schema describes a table, and images were given")
    return conform(data.assign(**{target.name: target.categories[0]}), schema, "table to classify")
