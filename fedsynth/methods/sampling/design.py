"""The numbers that a classifier learns from: a table's columns without the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.schema import Schema
from fedsynth.schema.columns import Boolean, Categorical, Modelled


@dataclass(frozen=True)
class Design:
    """How a row becomes numbers, fixed by the schema alone.

    A number stays as it is (datetimes are units since their lower bound); where the column may be
    missing, a gap holds the lower bound, and a second coordinate is 1 at gaps and 0 elsewhere.
    Categories become one coordinate each, 1 for the row's and 0 for the others; a gap is all zeros.
    """

    schema: Schema

    @property
    def columns(self) -> tuple[Modelled, ...]:
        """The modelled columns without the target, in order."""
        return tuple(c for c in self.schema.modelled if c.name != self.schema.target)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many coordinates each of :attr:`columns` has, at least 1."""
        return tuple(_width(column) for column in self.columns)

    @property
    def width(self) -> int:
        """Coordinates of a row; 0 where the target is the only column."""
        return sum(self.widths)

    def matrix(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Rows as numbers.

        Args:
            columns: arrays [n] as those of `Conformed.columns`; the target's may be left out.

        Returns:
            float64 [n, width], finite.
        """
        rows = len(next(iter(columns.values()))) if columns else 0
        matrix = np.zeros((rows, self.width))
        start = 0
        for column, width in zip(self.columns, self.widths, strict=True):
            _fill(matrix[:, start : start + width], columns[column.name], column)
            start += width
        return matrix


def _width(column: Modelled) -> int:
    if isinstance(column, Categorical | Boolean):
        return len(column.categories)
    return 2 if column.missing else 1


def _fill(block: NDArray[np.float64], values: NDArray[Any], column: Modelled) -> None:
    if isinstance(column, Categorical | Boolean):
        known = np.flatnonzero(values >= 0)
        block[known, values[known]] = 1.0
        return
    gaps = np.isnan(values)
    block[:, 0] = np.where(gaps, column.low, values)
    if column.missing:
        block[:, 1] = gaps
