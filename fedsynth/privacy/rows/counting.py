"""Rows that are counts: ones at a few positions, as histograms need, or a cell of each of several
tables, as marginals need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import Floats, Norm
from fedsynth.privacy.rows.joining import Array, Starts, cell_squares


@dataclass(frozen=True)
class IndicatorRows:
    """Row i is 1 at ``positions[i]`` ([rows, ones], distinct within a row) and 0 elsewhere.

    Raises:
        PrivacyError: positions that repeat within a row (its norm would be wrong) or lie outside.
    """

    positions: NDArray[np.integer]
    dim: int

    def __post_init__(self) -> None:
        steps = np.diff(self.positions, axis=1)
        if not (steps > 0).all() and not (np.diff(np.sort(self.positions, axis=1)) > 0).all():
            raise PrivacyError("positions repeat within an indicator row: its norm would be wrong")
        inside = (self.positions >= 0) & (self.positions < self.dim)
        if not inside.all():
            raise PrivacyError(f"positions of an indicator row lie outside its {self.dim} places")

    def __len__(self) -> int:
        return len(self.positions)

    def norms(self, norm: Norm) -> Floats:
        ones = float(self.positions.shape[1])
        return np.full(len(self), ones if norm == "l1" else np.sqrt(ones))

    def joined_squares(self, starts: Starts, weights: Array) -> Array:
        return cell_squares(self.positions.astype(np.int64), self.dim, starts, weights)

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        spread = np.repeat(weights, self.positions.shape[1])
        counts = np.bincount(self.positions.ravel(), weights=spread, minlength=self.dim)
        return counts.astype(np.float64)


@dataclass(frozen=True)
class MarginalRows:
    """Row i has a weight in one cell of each of several tables over columns of a code matrix.

    The tables stand one behind another, each of shape [sizes of its columns], flattened; a record
    touches each table once, so all rows have the same norm.

    Attributes:
        codes: whole numbers [rows, columns], each at least 0 and below its column's size.
        sizes: number of codes of each column.
        cliques: the columns of each table.
        weights: of each table, public and positive; default 1.

    Raises:
        PrivacyError: codes outside their columns, tables of columns that there are not, or weights
            that are none.
    """

    codes: NDArray[np.integer]
    sizes: Sequence[int]
    cliques: Sequence[Sequence[int]]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        # Column by column: no array of the codes' size beside them.
        fits = self.codes.shape[1:] == (len(self.sizes),)
        if not fits or not all(
            int(column.min(initial=0)) >= 0 and int(column.max(initial=-1)) < size
            for column, size in zip(self.codes.T, self.sizes, strict=True)
        ):
            raise PrivacyError("codes of marginal rows lie outside their columns' sizes")
        columns = range(len(self.sizes))
        if not all(column in columns for clique in self.cliques for column in clique):
            raise PrivacyError(f"marginal rows have the columns 0 to {len(self.sizes) - 1} alone")
        weights = self.table_weights
        if weights.shape != (len(self.cliques),) or not (weights > 0).all():
            raise PrivacyError("marginal rows need one positive weight for each table")

    @property
    def table_weights(self) -> NDArray[np.float64]:
        """The weight of each table."""
        given = self.weights
        return np.ones(len(self.cliques)) if given is None else np.asarray(given, np.float64)

    def _cells(self, clique: Sequence[int]) -> int:
        return math.prod(self.sizes[column] for column in clique)

    @property
    def starts(self) -> list[int]:
        """Where each table begins in a row."""
        sizes = [self._cells(clique) for clique in self.cliques]
        return [int(start) for start in np.cumsum([0, *sizes[:-1]])]

    @property
    def dim(self) -> int:
        return sum(self._cells(clique) for clique in self.cliques)

    def __len__(self) -> int:
        return len(self.codes)

    def norms(self, norm: Norm) -> Floats:
        weights = self.table_weights
        each = weights.sum() if norm == "l1" else np.sqrt(weights @ weights)
        return np.full(len(self), float(each))

    def largest_blocks(self, starts: NDArray[np.int64]) -> Floats:
        if starts.tolist() != self.starts:
            raise PrivacyError("blocks of marginal rows must be their tables")
        return np.full(len(self), float(self.table_weights.max()))

    def joined_squares(self, starts: Starts, weights: Array) -> Array:
        columns = np.ascontiguousarray(self.codes.T, np.int64)
        total = np.zeros(len(starts))
        for clique, weight in zip(self.cliques, self.table_weights, strict=True):
            cells = self._places(columns, clique)[:, None]
            total += weight**2 * cell_squares(cells, self._cells(clique), starts, weights)
        return total

    def _places(self, columns: NDArray[np.int64], clique: Sequence[int]) -> NDArray[np.int64]:
        """The cell of a table that each of the rows [columns, rows] is in, [rows]."""
        places = np.zeros(columns.shape[1], np.int64)
        for column in clique:
            places = places * self.sizes[column] + columns[column]
        return places

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        kept = weights != 0
        # Column by column, so that a table's places are read from contiguous memory.
        columns = np.ascontiguousarray(self.codes[kept].T, np.int64)
        factors = weights[kept].astype(np.float64)
        even = len(factors) == 0 or bool((factors == factors[0]).all())
        tables = []
        for clique, weight in zip(self.cliques, self.table_weights, strict=True):
            places = self._places(columns, clique)
            if even:
                counts = np.bincount(places, minlength=self._cells(clique))
                factor = factors[0] if len(factors) else 1.0
                tables.append(counts * (weight * factor))
            else:
                tables.append(weight * np.bincount(places, factors, self._cells(clique)))
        return np.concatenate(tables) if tables else np.zeros(0)
