"""Clipping: the last thing that happens to a contribution before noise.

A *row* is the contribution of one unit, a vector of ``dim`` numbers. Rows come in whichever form is
cheap, and each form knows the exact norm of its rows and their weighted sum, so that a clipped sum
never needs the rows written out:

- :class:`DenseRows`: the vectors themselves.
- :class:`FactoredRows`: gradients of linear layers, outer products of two short vectors each.
- :class:`IndicatorRows`: ones at a few positions, as histograms need.
- :class:`MarginalRows`: one weight in each of several tables of columns, as marginals need.

A row with a NaN or an infinity cannot be scaled into the ball, so it counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.terms import Norm

Floats = NDArray[np.float64] | NDArray[np.float32]

# Rows that are widened to float64 at once: bounds memory.
_BLOCK = 256


class Rows(Protocol):
    """Contributions of several units, one row each."""

    @property
    def dim(self) -> int:
        """Length of a row."""
        ...

    def __len__(self) -> int: ...

    def norms(self, norm: Norm) -> Floats:
        """The norm of every row, shape [rows]; not finite where the row is not."""
        ...

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        """``sum_i weights[i] * row_i``, shape [dim]; rows with weight 0 are ignored entirely.

        Added in float64: in float32 the rounding of all other rows changes when one row comes or
        goes, by thousandths of the clip for some thousand rows, and tiny weights lose bits.
        """
        ...


@dataclass(frozen=True)
class DenseRows:
    """Rows written out: ``values`` is [rows, dim]."""

    values: Floats

    @property
    def dim(self) -> int:
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return len(self.values)

    def norms(self, norm: Norm) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            if norm == "l1":
                total: Floats = np.abs(self.values).sum(axis=1, dtype=np.float64)
                return total
            squares = np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)
            return np.asarray(np.sqrt(squares))

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        total = np.zeros(self.dim)
        chosen = np.flatnonzero(weights)
        for start in range(0, len(chosen), _BLOCK):
            block = chosen[start : start + _BLOCK]
            total += weights[block].astype(np.float64) @ self.values[block].astype(np.float64)
        return total


@dataclass(frozen=True)
class FactoredRows:
    """Row i holds ``outer(left[i], right[i])``, flattened, for each of several linear layers.

    The gradient of a record's loss in a linear layer's weights is the outer product of the gradient
    in the layer's output ([rows, out], ``left``) and the layer's input ([rows, in], ``right``), so
    norms cost O(out + in) a record instead of O(out * in) (Goodfellow 2015, "Efficient
    per-example gradient computations").

    Attributes:
        layers: pairs (left, right).
        starts: where each layer's block begins in the row; default: one behind the other. Blocks
            may not overlap, or norms would not add up.
        width: length of a row, 0 elsewhere; default: as far as the blocks reach.
    """

    layers: Sequence[tuple[Floats, Floats]]
    starts: Sequence[int] | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        end = 0
        for start, stop in sorted(self._blocks()):
            if start < end:
                raise PrivacyError("blocks of a factored row overlap: its norm would be wrong")
            end = stop
        if self.width is not None and end > self.width:
            raise PrivacyError(f"a factored row of width {self.width} has a block up to {end}")

    def _blocks(self) -> list[tuple[int, int]]:
        sizes = [left.shape[1] * right.shape[1] for left, right in self.layers]
        starts = self.starts
        if starts is None:
            starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]

    @property
    def dim(self) -> int:
        if self.width is not None:
            return self.width
        return max(stop for _, stop in self._blocks())

    def __len__(self) -> int:
        return len(self.layers[0][0])

    def norms(self, norm: Norm) -> Floats:
        total = np.zeros(len(self))
        with np.errstate(over="ignore", invalid="ignore"):
            for left, right in self.layers:
                if norm == "l1":
                    total += np.abs(left).sum(1, dtype=np.float64) * np.abs(right).sum(
                        1, dtype=np.float64
                    )
                else:
                    total += np.einsum("ij,ij->i", left, left, dtype=np.float64) * np.einsum(
                        "ij,ij->i", right, right, dtype=np.float64
                    )
            return total if norm == "l1" else np.sqrt(total)

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        kept = weights != 0
        total = np.zeros(self.dim)
        for (left, right), (start, stop) in zip(self.layers, self._blocks(), strict=True):
            if not kept.all():
                left, right = left[kept], right[kept]
            scaled = left * weights[kept, None].astype(np.float64)
            total[start:stop] = (scaled.T @ right.astype(np.float64)).ravel()
        return total


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

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        kept = weights != 0
        # Column by column, so that a table's places are read from contiguous memory.
        columns = np.ascontiguousarray(self.codes[kept].T, np.int64)
        factors = weights[kept].astype(np.float64)
        even = len(factors) == 0 or bool((factors == factors[0]).all())
        tables = []
        for clique, weight in zip(self.cliques, self.table_weights, strict=True):
            places = np.zeros(columns.shape[1], np.int64)
            for column in clique:
                places = places * self.sizes[column] + columns[column]
            if even:
                counts = np.bincount(places, minlength=self._cells(clique))
                factor = factors[0] if len(factors) else 1.0
                tables.append(counts * (weight * factor))
            else:
                tables.append(weight * np.bincount(places, factors, self._cells(clique)))
        return np.concatenate(tables) if tables else np.zeros(0)


@dataclass(frozen=True)
class ClippedSum:
    """A sum of clipped rows.

    Attributes:
        values: float64 [dim].
        clipped: share of the rows that the clip shortened. It depends on private data: it may steer
            nothing and leave nowhere unless released through the door.
    """

    values: NDArray[np.float64]
    clipped: float


def factors(rows: Rows, clip: float, norm: Norm = "l2") -> NDArray[np.float64]:
    """``min(1, clip / ||row||)`` for every row; 0 for rows that are not finite. Shape [rows]."""
    norms = rows.norms(norm).astype(np.float64)
    finite = np.isfinite(norms)
    # What float32 rows may gain when a task has scaled them itself (clip_parts), and norms by
    # rounding: the margin keeps the ball closed.
    safe = clip * (1 - 1e-6)
    return np.where(finite, np.minimum(1.0, safe / np.maximum(norms, safe)), 0.0)


def clip_and_sum(rows: Rows, clip: float, norm: Norm = "l2") -> ClippedSum:
    """Scale every row into the ball of radius ``clip``, then sum.

    Adding or removing one row moves the result by at most ``clip`` in ``norm``. No rows at all sum
    to zero: an empty sample is an answer like any other.
    """
    if len(rows) == 0:
        return ClippedSum(np.zeros(rows.dim), 0.0)
    scale = factors(rows, clip, norm)
    return ClippedSum(rows.weighted_sum(scale), float(np.mean(scale < 1)))


def clip_blocks(rows: Rows, starts: NDArray[np.int64], clip: float) -> ClippedSum:
    """Scale every row so that no block of it exceeds ``clip`` in L1, then sum.

    Adding or removing one row moves every block of the result by at most ``clip`` in L1.

    Args:
        starts: where each block begins, rising from 0; the last reaches to the end of a row.

    Raises:
        PrivacyError: rows whose blocks' norms are not known, or starts that do not fit them.
    """
    if len(rows) == 0:
        return ClippedSum(np.zeros(rows.dim), 0.0)
    largest = largest_blocks(rows, np.asarray(starts, np.int64))
    safe = clip * (1 - 1e-6)
    scale = np.where(np.isfinite(largest), np.minimum(1.0, safe / np.maximum(largest, safe)), 0.0)
    return ClippedSum(rows.weighted_sum(scale), float(np.mean(scale < 1)))


def largest_blocks(rows: Rows, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest L1 norm of a block of each row, shape [rows]."""
    if len(starts) == 0 or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= rows.dim:
        raise PrivacyError("blocks must begin at rising places from 0, within the row")
    if isinstance(rows, MarginalRows):
        if starts.tolist() != rows.starts:
            raise PrivacyError("blocks of marginal rows must be their tables")
        return np.full(len(rows), float(rows.table_weights.max()))
    if isinstance(rows, DenseRows):
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.reduceat(np.abs(rows.values), starts, axis=1, dtype=np.float64)
        return np.asarray(sums.max(axis=1))
    raise PrivacyError(f"the norms of blocks of {type(rows).__name__} are not known")


def clip_parts(values: Floats, parts: int, clip: float) -> Floats:
    """Clip each of ``parts`` equal slices of every row to ``clip / sqrt(parts)`` in L2.

    Paper 001, Algorithm 4: one difference a class, each clipped to S/sqrt(C), so that the
    concatenation has norm at most S and a large class cannot crowd out the others.

    Args:
        values: [rows, dim], ``dim`` divisible by ``parts``.
    """
    rows, dim = values.shape
    slices = values.reshape(rows * parts, dim // parts)
    scale = factors(DenseRows(slices), clip / np.sqrt(parts))
    kept = np.where(scale[:, None] > 0, slices, 0)
    # In float32 the factor of a huge slice may be subnormal, and too coarse for the margin.
    scaled = kept.astype(np.float64) * scale[:, None]
    clipped: Floats = np.zeros_like(values)
    clipped[...] = scaled.reshape(rows, dim)
    return clipped
