"""Rows without labels: public ones that the user gives, or drawn from released statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed
from fedsynth.data.images import Images, demand_rows
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.methods.copula.model import FusionModel
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema

Floats = NDArray[np.float64]
Rows = Conformed | Images
Arrays = Mapping[str, NDArray[Any]]

_COLUMN, _PIXELS = "public:", "public"


class Source(Protocol):
    """Where rows without labels come from."""

    def queries(self, count: int, others: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Rows to be labelled, ``count`` or as many as there are, and at most ``others`` more."""
        ...

    def candidates(self, count: int, rng: np.random.Generator) -> Rows:
        """Rows to choose from: ``count`` new ones, or all there are."""
        ...

    def check(self, schema: Schema | ImageSchema) -> None:
        """Raises ReleaseError where the rows are not the schema's."""
        ...


@dataclass(frozen=True, eq=False)
class Public:
    """Rows that anybody may see. They are part of the release, labelled by the student."""

    rows: Rows

    def queries(self, count: int, others: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
        order = rng.permutation(size_of(self.rows))
        return self.rows.take(order[:count]), self.rows.take(order[count : count + others])

    def candidates(self, count: int, rng: np.random.Generator) -> Rows:
        return self.rows

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], None]:
        if isinstance(self.rows, Images):
            return {_PIXELS: self.rows.pixels}, None
        return {_COLUMN + name: values for name, values in self.rows.columns.items()}, None

    @staticmethod
    def from_arrays(arrays: Arrays, plain: None) -> Public:
        if _PIXELS in arrays:
            return Public(Images(np.asarray(arrays[_PIXELS])))
        columns = {
            name.removeprefix(_COLUMN): values
            for name, values in arrays.items()
            if name.startswith(_COLUMN)
        }
        if not columns or len({values.shape for values in columns.values()}) != 1:
            raise ReleaseError("pate: no public rows, or columns of different lengths")
        return Public(Conformed(columns, {}, len(next(iter(columns.values())))))

    def check(self, schema: Schema | ImageSchema) -> None:
        if isinstance(schema, ImageSchema):
            if not isinstance(self.rows, Images) or self.rows.pixels.shape[1:] != schema.shape:
                raise ReleaseError("pate: the public images do not fit the schema")
            return
        columns = {} if isinstance(self.rows, Images) else self.rows.columns
        for column in schema.modelled:
            if column.name == schema.target:
                continue
            kind = np.int64 if isinstance(column, Categorical | Boolean) else np.float64
            values = columns.get(column.name)
            if values is None or values.dtype != kind or values.ndim != 1 or not len(values):
                raise ReleaseError("pate: the public rows do not fit the schema")
            if kind is np.int64 and not -1 <= values.min() <= values.max() < len(
                column.categories  # type: ignore[union-attr]
            ):
                raise ReleaseError("pate: the public rows hold categories that the schema does not")

    @property
    def digest(self) -> str:
        """Tells these rows from others."""
        digest = hashlib.sha256()
        for name, values in sorted(self.to_arrays()[0].items()):
            digest.update(name.encode() + np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows from a model of released statistics, whatever class they were drawn by."""

    model: FusionModel

    def queries(self, count: int, others: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
        return self.candidates(count, rng), self.candidates(others, rng)

    def candidates(self, count: int, rng: np.random.Generator) -> Rows:
        shares = self.model.frequencies
        classes = rng.choice(len(shares), count, p=shares).astype(np.int64)
        return Conformed(self.model.columns(classes, count, rng), {}, count)

    def check(self, schema: Schema | ImageSchema) -> None:
        self.model.check()


def size_of(rows: Rows) -> int:
    """How many."""
    return len(rows) if isinstance(rows, Images) else rows.rows


def public_rows(given: pd.DataFrame | Images, schema: Schema | ImageSchema) -> Public:
    """Public rows under the schema; labels are dropped.

    Raises:
        ConfigError, DataError: rows that the schema does not fit, or none.
    """
    given = demand_rows(given, "public")
    if not len(given):
        raise ConfigError("pate: `public` holds no rows")
    if isinstance(schema, Schema):
        known = conform_unlabelled(given, schema)
        columns = {n: v for n, v in known.columns.items() if n != schema.target}
        return Public(Conformed(columns, {}, known.rows))
    if not isinstance(given, Images) or given.pixels.shape[1:] != schema.shape:
        raise ConfigError(
            f"pate: `public` must be images of {list(schema.shape)}, as the schema says"
        )
    return Public(Images(given.pixels))
