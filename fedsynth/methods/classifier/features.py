"""What a row is to a classifier: numbers that the schema and public cut points alone decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed, conform
from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, ImageSchema, Modelled, Schema, build_schema

Floats = NDArray[np.float32]
Cuts = Mapping[str, tuple[float, ...]]

_PARTS = 16
"""Parts of equal shares that the values of a column are cut into."""


@dataclass(frozen=True)
class Features:
    """The map from a row to numbers within [-1, 1].

    A category is one-hot over those that the schema declares. A number is its place among the cut
    points, -1 at the first and 1 at the last, linear in between; so is a date, in units since its
    lower bound. A gap is 0 in place of a number and has a coordinate of its own. Of images pixels
    in [0, 1].

    Attributes:
        cuts: of every column of numbers or dates beside the target, rising.

    Raises:
        ConfigError: cut points that are none, or of no such column.
    """

    schema: Schema | ImageSchema
    cuts: Cuts

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns if not _count(column)]
        for name in self.cuts:
            if name not in names:
                raise ConfigError(
                    f"scaled_by: {name!r} is no column of numbers or dates beside the target"
                )
        for name in names:
            points = np.asarray(self.cuts.get(name, ()), np.float64)
            if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
                raise ConfigError(f"scaled_by: {name!r} needs at least one cut point, a number")
            if (np.diff(points) <= 0).any():
                raise ConfigError(f"scaled_by: the cut points of {name!r} must rise")

    @cached_property
    def columns(self) -> tuple[Modelled, ...]:
        """Those that a table's target is predicted by."""
        return _columns(self.schema)

    @cached_property
    def width(self) -> int:
        """Numbers of a row."""
        if isinstance(self.schema, ImageSchema):
            return self.schema.pixels
        return sum(max(1, _count(column)) + column.missing for column in self.columns)

    def vectors(self, data: Conformed | Images) -> Floats:
        """Float32 [n, width], each row of its own record alone."""
        if isinstance(self.schema, ImageSchema):
            assert isinstance(data, Images)
            return image.encode(data, self.schema)
        assert isinstance(data, Conformed)
        x, at, rows = np.zeros((data.rows, self.width), np.float32), 0, np.arange(data.rows)
        for column in self.columns:
            values, count = data.columns[column.name], _count(column)
            if count:
                x[rows, at + np.where(values < 0, count, values).astype(np.int64)] = 1
            else:
                points, gap = np.asarray(self.cuts[column.name]), np.isnan(values)
                places = np.linspace(-1, 1, len(points)) if len(points) > 1 else np.zeros(1)
                x[:, at] = np.where(gap, 0, np.interp(values, points, places))
                if column.missing:
                    x[:, at + 1] = gap
            at += max(1, count) + column.missing
        return x

    def labels(self, data: Conformed | Images) -> NDArray[np.int64]:
        """Codes of the target's values [n]."""
        if isinstance(data, Images):
            assert data.labels is not None
            return data.labels
        assert isinstance(self.schema, Schema) and self.schema.target is not None
        return data.columns[self.schema.target].astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` gives the same features back."""
        return {
            "schema": self.schema.to_dict(),
            "cuts": {name: list(points) for name, points in self.cuts.items()},
        }

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Features:
        cuts = {str(name): tuple(points) for name, points in plain["cuts"].items()}
        return Features(build_schema(plain["schema"]), cuts)


def _columns(schema: Schema | ImageSchema) -> tuple[Modelled, ...]:
    if isinstance(schema, ImageSchema):
        return ()
    return tuple(column for column in schema.modelled if column.name != schema.target)


def _count(column: Modelled) -> int:
    """Categories of a column; 0 of numbers and dates."""
    return len(column.categories) if isinstance(column, Categorical | Boolean) else 0


def cuts_by_bounds(schema: Schema | ImageSchema) -> Cuts:
    """The declared bounds of every column of numbers or dates beside the target."""
    return {name: _rising(column, []) for name, column in _numbers(schema).items()}


def cuts_by_encoding(encoding: TableEncoding) -> Cuts:
    """Quantiles of what a noisy histogram says of every column of numbers or dates, and bounds."""
    places = {column.name: j for j, column in enumerate(encoding.schema.modelled)}
    cuts = {}
    for name, column in _numbers(encoding.schema).items():
        bins = encoding.bins[places[name]]
        assert isinstance(bins, Bins)
        own = encoding.frequencies[places[name]][: bins.size]
        masses = bins.weights * (own / np.bincount(bins.codes, bins.weights))[bins.codes]
        # Units from which each piece begins, and shares of the values below.
        ends = np.append(bins.starts, bins.grid.units).astype(np.float64)
        below = np.concatenate([[0.0], np.cumsum(masses)])
        if below[-1] > 0:
            wanted = np.linspace(0, below[-1], _PARTS + 1)
            units = np.interp(wanted, below, ends).astype(np.int64)
            points = bins.grid.values(np.minimum(units, bins.grid.units - 1)).tolist()
        else:
            points = []
        cuts[name] = _rising(column, points)
    return cuts


def cuts_by_rows(rows: pd.DataFrame, schema: Schema) -> Cuts:
    """Quantiles of every column of numbers or dates beside the target, and its bounds.

    Args:
        rows: that anybody may see, such as a release's.
    """
    conformed, cuts = conform(rows, schema, "rows to scale by"), {}
    for name, column in _numbers(schema).items():
        values = conformed.columns[name]
        values = values[~np.isnan(values)]
        wanted = np.linspace(0, 1, _PARTS + 1)
        points = np.quantile(values, wanted, method="inverted_cdf").tolist() if len(values) else []
        cuts[name] = _rising(column, points)
    return cuts


def _numbers(schema: Schema | ImageSchema) -> dict[str, Any]:
    """The columns of numbers and dates beside the target, by name."""
    return {column.name: column for column in _columns(schema) if not _count(column)}


def _rising(column: Any, points: list[float]) -> tuple[float, ...]:
    """Points within the column's bounds, and these, each once."""
    return tuple(sorted({float(column.low), *map(float, points), float(column.high)}))
