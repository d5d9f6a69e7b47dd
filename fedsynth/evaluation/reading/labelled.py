"""Tables and images as the features and labels that models take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.tables import Images
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.reading.features import Features
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Boolean, Categorical, ImageSchema, Modelled, Schema

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Features and class codes of n > 0 rows.

    x: tables float64 [n, d], the columns of `features_of`, as `Examples` has them; images float32
        [n, channels, height, width] in [0, 1].
    y: int64 [n] in [0, classes).
    """

    x: NDArray[np.floating[Any]]
    y: NDArray[np.int64]
    classes: int


@dataclass(frozen=True, eq=False)
class Examples:
    """n > 0 rows of a table whose answer, the target's value, is known.

    Attributes:
        rows: all columns.
        x: float64 [n, d], the columns of `features_of` as `Rows` has them.
        y: int64 codes [n] in [0, classes), or float64 numbers [n], dates in units since the lower
            bound.
        classes: 0 for numbers.
        left_out: rows beside these whose answer is missing or outside the schema.
    """

    rows: Rows
    x: NDArray[np.float64]
    y: NDArray[np.int64] | NDArray[np.float64]
    classes: int
    left_out: int = 0
    _seen: dict[int, tuple[Examples, NDArray[np.float32]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, positions: NDArray[np.int64] | NDArray[np.bool_]) -> Examples:
        """The examples at these positions."""
        rows, x, y = self.rows.take(positions), self.x[positions], self.y[positions]
        return Examples(rows, x, y, self.classes)

    def and_also(self, others: Examples) -> Examples:
        """These and, behind them, others of the same schema."""
        rows = Rows(
            self.rows.schema,
            np.concatenate([self.rows.values, others.rows.values]),
            np.concatenate([self.rows.outside, others.rows.outside]),
        )
        x, y = np.concatenate([self.x, others.x]), np.concatenate([self.y, others.y])
        return Examples(rows, x, y, self.classes)

    def vectors(self, others: Examples) -> NDArray[np.float32]:
        """`Features` learned from these examples, of others: finite [rows of others, p].

        Coordinates that are the same in all of these examples are left out; p may be 0. The vectors
        of each table are kept.
        """
        if id(others) not in self._seen:
            self._seen[id(others)] = others, self._vectors(others)
        return self._seen[id(others)][1]

    def _vectors(self, others: Examples) -> NDArray[np.float32]:
        target = self.rows.schema.target
        features = Features.of(self.rows, without=() if target is None else (target,))
        own = features.matrix(self.rows)
        varied = (own != own[0]).any(axis=0)
        return (own if others is self else features.matrix(others.rows))[:, varied]


def task_of(schema: Schema | ImageSchema) -> Task | None:
    """What models learn from such rows; None where `why_no_task` says why they learn nothing."""
    if why_no_task(schema) is not None:
        return None
    return "classification" if schema.classes else "regression"


def why_no_task(schema: Schema | ImageSchema) -> str | None:
    """Why there is nothing to train models for, as a sentence; None if there is."""
    if schema.target is None:
        return "The schema names no target, so there is nothing to predict: set `target`."
    if schema.classes == 1:
        return "The target has one category only, so there is nothing to predict."
    if isinstance(schema, Schema) and not features_of(schema):
        return "The schema has no column besides the target to predict it by."
    return None


def label_features(
    data: pd.DataFrame | Images, schema: Schema | ImageSchema, where: str = "data"
) -> Labelled:
    """The features and labels of a table or of images; `where` names them in errors.

    Rows of a table whose label is missing or none of the target's categories are left out.

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
        known = label_rows(read_rows(data, schema, where), where)
        return Labelled(known.x, known.y.astype(np.int64), known.classes)
    if not isinstance(data, Images):
        raise DataError(f"{where}: the schema is an image schema and the data are a table")
    return _labelled_images(data, schema, where)


def features_of(schema: Schema) -> tuple[Modelled, ...]:
    """The columns a model may look at: all but the target and identifiers, in order."""
    return tuple(column for column in schema.observed if column.name != schema.target)


def label_rows(rows: Rows, where: str = "data") -> Examples:
    """The rows whose answer is known; `where` names them in errors.

    Not known is an answer that is missing, unreadable, none of the categories (unless the target
    has one for others), or out of bounds. A fraction in an integer target is an answer.

    Raises:
        ConfigError: the schema has no target, or nothing besides.
        DataError: no row's answer is known.
    """
    schema = rows.schema
    target = schema.target_column
    if target is None:
        raise ConfigError("the schema has no target, so there is nothing to predict: set `target`")
    if not features_of(schema):
        raise ConfigError("the schema has no column besides the target to predict it by")
    place = rows.names.index(target.name)
    answers = rows.values[:, place]
    if isinstance(target, Categorical | Boolean):
        known = answers < schema.classes
    else:
        known = (answers >= target.low) & (answers <= target.high)
    if not known.any():
        raise DataError(
            f"{where}: no row has a value of the target {target.name!r} that the schema allows"
        )
    kept = rows if known.all() else rows.take(known)
    y = kept.values[:, place]
    return Examples(
        rows=kept,
        x=np.delete(kept.values, place, axis=1),
        y=y.astype(np.int64) if schema.classes else y.copy(),
        classes=schema.classes,
        left_out=len(rows) - len(kept),
    )


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
