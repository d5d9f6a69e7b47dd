"""A client's message in Fusion: a distribution a feature and a classifier, as one flat vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError, ReleaseError
from fedsynth.methods.copula.families import (
    FAMILIES,
    LARGEST,
    MOST_PARAMETERS,
    POINT,
    Fit,
    parameters_of,
)
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema
from fedsynth.schema.columns import Modelled
from fedsynth.schema.rounding import round_to_grid
from fedsynth.schema.target import conditions

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]
Categories = Literal["frequencies", "numbers"]

# Of a number: the family counted from 1, its parameters, the share of missing cells.
_NUMBER = 1 + MOST_PARAMETERS + 1


@dataclass(frozen=True, eq=False)
class FeatureModel:
    """A feature at one client.

    Attributes:
        fit: of a number; None of categories, and where every cell is missing.
        shares: of the categories [size], summing to 1, or all 0 where every cell is missing;
            None of a number.
        missing: share of cells that are missing, in [0, 1].
    """

    fit: Fit | None
    shares: Floats | None
    missing: float


@dataclass(frozen=True, eq=False)
class ClientModel:
    """What a client with rows sends.

    Attributes:
        features: one a feature of the layout.
        failures: for how many features each family failed, int64 [25].
        classifier: of the target; None where the schema has no classes.
    """

    features: tuple[FeatureModel, ...]
    failures: Whole
    classifier: Classifier | None


@dataclass(frozen=True)
class Feature:
    """What a feature is: a table's column, or a pixel from 0 to `top`.

    `size` is the number of categories whose frequencies are sent; 0 where it goes as a number.
    """

    column: Modelled | None
    size: int
    top: int = 0

    @property
    def block(self) -> int:
        """Numbers of it in a message."""
        return self.size + 1 if self.size else _NUMBER

    def known(self, values: NDArray[Any]) -> NDArray[Any]:
        """The cells that are not missing."""
        return values[values >= 0] if values.dtype.kind == "i" else values[~np.isnan(values)]

    def draw(self, model: FeatureModel, rows: int, rng: np.random.Generator) -> NDArray[Any]:
        """Cells [rows] as in conformed columns; pixels as whole numbers from 0 to `top`."""
        gone = rng.random(rows) < model.missing
        if model.shares is not None:
            even = model.shares if model.shares.any() else np.ones(self.size)
            codes = rng.choice(self.size, rows, p=even / even.sum())
            return np.where(gone, -1, codes).astype(np.int64)
        drawn = np.zeros(rows) if model.fit is None else model.fit.draw(rows, rng)
        column = self.column
        if isinstance(column, Categorical | Boolean):
            codes = np.clip(np.round(np.nan_to_num(drawn)), 0, len(column.categories) - 1)
            return np.where(gone, -1, codes).astype(np.int64)
        if column is None:
            return np.clip(np.round(np.nan_to_num(drawn)), 0, self.top)
        # Some of scipy's draws are no number at all, at parameters far out.
        placed = round_to_grid(np.where(np.isnan(drawn), column.low, drawn), column)
        return np.where(gone, np.nan, placed)


@dataclass(frozen=True)
class Layout:
    """What a message holds, by the public schema and settings alone.

    A message of no rows is zeros. Of others the first number is 1; then come the features, how
    often each family failed, and the classifier (:meth:`Classifier.to_vector`).
    """

    schema: Schema | ImageSchema
    categories: Categories = "frequencies"

    @property
    def classes(self) -> int:
        """Of the target beside other columns; 0 where there is no classifier."""
        return conditions(self.schema)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Every column that is not a target with classes, or every pixel."""
        schema = self.schema
        if isinstance(schema, ImageSchema):
            return (Feature(None, 0, schema.maximum),) * schema.pixels
        skipped = schema.target if self.classes else None
        return tuple(
            Feature(column, self._size(column))
            for column in schema.modelled
            if column.name != skipped
        )

    def _size(self, column: Modelled) -> int:
        if isinstance(column, Categorical | Boolean) and self.categories == "frequencies":
            return len(column.categories)
        return 0

    @property
    def width(self) -> int:
        """Inputs of the classifier."""
        if isinstance(self.schema, ImageSchema):
            return self.schema.pixels
        return Design(self.schema).width

    @property
    def dim(self) -> int:
        """Length of a message."""
        blocks = sum(feature.block for feature in self.features)
        classifier = Classifier.size(self.width, self.classes) if self.classes else 0
        return 1 + blocks + len(FAMILIES) + classifier

    def inputs(self, cells: list[NDArray[Any]]) -> Floats:
        """What the classifier sees of drawn cells, one array [n] a feature: [n, width]."""
        if isinstance(self.schema, ImageSchema):
            return np.column_stack(cells) / self.schema.maximum
        return Design(self.schema).matrix(self.name_columns(cells))

    def name_columns(self, cells: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """A table's drawn cells by their columns' names."""
        return {
            feature.column.name: values
            for feature, values in zip(self.features, cells, strict=True)
            if feature.column is not None
        }

    def encode(self, model: ClientModel | None) -> Floats:
        """A message [dim]; of None, where there are no rows, zeros."""
        if model is None:
            return np.zeros(self.dim)
        parts = [np.ones(1)]
        for feature in model.features:
            parts.append(
                _number(feature)
                if feature.shares is None
                else np.append(feature.shares, feature.missing)
            )
        parts.append(model.failures.astype(np.float64))
        if model.classifier is not None:
            parts.append(model.classifier.to_vector())
        return np.concatenate(parts)

    def decode(self, message: Floats, client: str) -> ClientModel | None:
        """The inverse of :meth:`encode`.

        Raises:
            FederationError: a message that no client of this fedsynth sends.
        """
        if message.shape == (self.dim,) and not message.any():
            return None
        try:
            if message.shape != (self.dim,) or message[0] != 1:
                raise ValueError
            stops = np.cumsum([1, *(f.block for f in self.features), len(FAMILIES)])
            _, *blocks, failures, vector = np.split(message, stops)
            features = tuple(map(_feature, self.features, blocks))
            if (failures < 0).any() or (failures > len(self.features)).any():
                raise ValueError
            classifier = (
                Classifier.from_vector(vector, self.width, self.classes) if self.classes else None
            )
            return ClientModel(features, failures.astype(np.int64), classifier)
        except (ValueError, OverflowError, ReleaseError):
            raise FederationError(
                f"the message of {client} holds no distributions and classifier of this schema: "
                "have it install the version that the server runs, or leave it out"
            ) from None


def _number(model: FeatureModel) -> Floats:
    block = np.zeros(_NUMBER)
    if model.fit is not None:
        block[0] = model.fit.family + 1
        block[1 : 1 + len(model.fit.parameters)] = model.fit.parameters
    block[-1] = model.missing
    return block


def _feature(feature: Feature, block: Floats) -> FeatureModel:
    """Raises ValueError for numbers that are no distribution."""
    missing = float(block[-1])
    if not 0 <= missing <= 1:
        raise ValueError
    if feature.size:
        shares = block[:-1].copy()
        if (shares < 0).any() or not (shares.any() or missing == 1):
            raise ValueError
        return FeatureModel(None, shares, missing)
    family = int(block[0]) - 1
    if block[0] != family + 1 or not -1 <= family <= POINT or (family < 0 and missing < 1):
        raise ValueError
    if family < 0:
        return FeatureModel(None, None, missing)
    parameters = tuple(float(value) for value in block[1 : 1 + parameters_of(family)])
    if max(map(abs, parameters)) > LARGEST or (family != POINT and parameters[-1] <= 0):
        raise ValueError
    # How near it was stays at the client.
    return FeatureModel(Fit(family, parameters, float("nan")), None, missing)
