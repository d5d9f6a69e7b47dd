"""Tables and images as the features and labels that classifiers take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.tables import Images, conform
from fedsynth.errors import ConfigError, DataError
from fedsynth.schema import Boolean, Categorical, ImageSchema, Modelled, Schema


@dataclass(frozen=True, eq=False)
class Labelled:
    """Features and class codes of n > 0 rows.

    x: tables float64 [n, d], the columns of `features_of`, codes for categories, NaN for a gap;
        images float32 [n, channels, height, width] in [0, 1].
    y: int64 [n] in [0, classes).
    """

    x: NDArray[np.floating[Any]]
    y: NDArray[np.int64]
    classes: int


def labelled(
    data: pd.DataFrame | Images, schema: Schema | ImageSchema, where: str = "data"
) -> Labelled:
    """The features and labels of a table or of images; `where` names them in errors.

    Raises:
        ConfigError: the schema has no target of categories, or nothing besides.
        DataError: the data do not fit the schema, are empty or carry no labels.
    """
    if schema.classes == 0:
        raise ConfigError(
            "the schema has no target of categories, so there is nothing to classify: set `target`"
        )
    if isinstance(schema, Schema):
        if not isinstance(data, pd.DataFrame):
            raise DataError(f"{where}: the schema is a table's and the data are images")
        return _labelled_table(data, schema, where)
    if not isinstance(data, Images):
        raise DataError(f"{where}: the schema is an image schema and the data are a table")
    return _labelled_images(data, schema, where)


def features_of(schema: Schema) -> tuple[Modelled, ...]:
    """The columns a classifier may look at: all but the target and identifiers, in order."""
    return tuple(column for column in schema.modelled if column.name != schema.target)


def _labelled_table(frame: pd.DataFrame, schema: Schema, where: str) -> Labelled:
    columns = conform(frame, schema, where).columns
    features = features_of(schema)
    if not features or schema.target is None:
        raise ConfigError("the schema has no column besides the target to classify by")
    x = np.stack([columns[column.name].astype(np.float64) for column in features], axis=1)
    discrete = np.array([isinstance(column, Categorical | Boolean) for column in features])
    x[discrete & (x < 0)] = np.nan
    return Labelled(x, columns[schema.target].astype(np.int64), schema.classes)


def _labelled_images(images: Images, schema: ImageSchema, where: str) -> Labelled:
    pixels, codes = images.pixels, images.labels
    if codes is None:
        raise DataError(f"{where}: the images carry no labels")
    if len(images) == 0:
        raise DataError(f"{where}: there are no images")
    if pixels.shape[1:] != schema.shape:
        raise DataError(
            f"{where}: images of shape {pixels.shape[1:]} and a schema of shape {schema.shape}"
        )
    if codes.min() < 0 or codes.max() >= schema.classes:
        raise DataError(f"{where}: labels must be codes from 0 to {schema.classes - 1}")
    height, width, channels = (*schema.shape, 1)[:3]
    scaled = np.divide(np.minimum(pixels, schema.maximum), schema.maximum, dtype=np.float32)
    x = scaled.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
    return Labelled(np.ascontiguousarray(x), codes.astype(np.int64), schema.classes)
