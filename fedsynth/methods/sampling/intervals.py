"""Records as cells that a GAN draws, by the schema alone, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.models.cells import Cells
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.columns import Boolean, Categorical, Datetime, Modelled, Numeric
from fedsynth.schema.target import conditions

# Numbers over a wider public range, mostly amounts of money, are spread by their logarithm.
_WIDE = 10_000.0

Columns = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Encoding:
    """How a table's row becomes cells (:class:`fedsynth.models.cells.Cells`).

    A number is scaled from its public bounds to [-1, 1], over a range wider than 10,000 after
    ``sign(x) log(1 + |x|)``; where the column may be missing, two categories follow, present and
    missing, and a gap's number is 0. Categories are one-hot, with one more for a gap. A target with
    other columns beside it has no cells: it is the label.
    """

    schema: Schema

    @property
    def columns(self) -> tuple[Modelled, ...]:
        """The columns that have cells, in order."""
        labelled = conditions(self.schema) > 0
        modelled = self.schema.modelled
        return tuple(c for c in modelled if not (labelled and c.name == self.schema.target))

    @property
    def cells(self) -> Cells:
        return Cells(columns=tuple(size for c in self.columns for size in _sizes(c)))

    def encode(self, columns: Columns) -> Floats:
        """Cells [n, width] of arrays such as `Conformed.columns`."""
        parts: list[NDArray[Any]] = []
        for column in self.columns:
            values = columns[column.name]
            if isinstance(column, Categorical | Boolean):
                size = _sizes(column)[0]
                codes = np.where(values < 0, size - 1, values)
                parts.append(codes[:, None] == np.arange(size))
                continue
            absent = np.isnan(values)
            number = _squash(np.where(absent, column.low, values), column)
            parts.append(np.where(absent, 0.0, number)[:, None])
            if column.missing:
                parts += [~absent[:, None], absent[:, None]]
        rows = len(parts[0]) if parts else 0
        return np.concatenate(parts, axis=1).astype(np.float32).reshape(rows, self.cells.width)

    def decode(self, cells: Floats) -> dict[str, NDArray[Any]]:
        """Arrays such as `Conformed.columns` of cells [n, width]; numbers are not on the grid."""
        columns: dict[str, NDArray[Any]] = {}
        at = 0
        for column in self.columns:
            if isinstance(column, Categorical | Boolean):
                size = _sizes(column)[0]
                codes = cells[:, at : at + size].argmax(axis=1).astype(np.int64)
                gap = column.missing & (codes == size - 1)
                columns[column.name] = np.where(gap, -1, codes)
                at += size
                continue
            values = _stretch(cells[:, at].astype(np.float64), column)
            at += 1
            if column.missing:
                values = np.where(cells[:, at + 1] > cells[:, at], np.nan, values)
                at += 2
            columns[column.name] = values
        return columns


def cells_of(schema: Schema | ImageSchema) -> Cells:
    """What a record's cells are under the schema."""
    if isinstance(schema, ImageSchema):
        return Cells(shape=schema.shape)
    return Encoding(schema).cells


def _sizes(column: Modelled) -> tuple[int, ...]:
    """Of a column's parts: 0 for a number, else its categories."""
    if isinstance(column, Categorical | Boolean):
        return (len(column.categories) + column.missing,)
    return (0, 2) if column.missing else (0,)


def _wide(column: Numeric) -> bool:
    return not isinstance(column, Datetime) and column.high - column.low > _WIDE


def _ladder(values: NDArray[np.float64], column: Numeric) -> NDArray[np.float64]:
    return np.sign(values) * np.log1p(np.abs(values)) if _wide(column) else values


def _bounds(column: Numeric) -> tuple[float, float]:
    low, high = _ladder(np.array([column.low, column.high]), column)
    return float(low), float(high)


def _squash(values: NDArray[np.float64], column: Numeric) -> NDArray[np.float64]:
    low, high = _bounds(column)
    if low == high:
        return np.zeros(len(values))
    return 2 * (_ladder(values, column) - low) / (high - low) - 1


def _stretch(cells: NDArray[np.float64], column: Numeric) -> NDArray[np.float64]:
    low, high = _bounds(column)
    steps = low + (cells + 1) / 2 * (high - low)
    values = np.sign(steps) * np.expm1(np.abs(steps)) if _wide(column) else steps
    return np.clip(values, column.low, column.high)
