"""Rows that are written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.privacy.rows.clipping import Floats, Norm

# Rows that are widened to float64 at once: bounds memory.
_BLOCK = 256


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
                return np.asarray(np.abs(self.values).sum(axis=1, dtype=np.float64))
            squares = np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)
            return np.asarray(np.sqrt(squares))

    def largest_blocks(self, starts: NDArray[np.int64]) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.reduceat(np.abs(self.values), starts, axis=1, dtype=np.float64)
        return np.asarray(sums.max(axis=1))

    def joined_squares(
        self, starts: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        found = np.zeros(len(starts))
        stops = np.array([*starts[1:], len(self)])
        first = 0
        with np.errstate(over="ignore", invalid="ignore"):
            while first < len(starts):
                # As many persons as fit in a block, and one at least.
                last = max(first + 1, int(np.searchsorted(stops, starts[first] + _BLOCK, "right")))
                rows = slice(int(starts[first]), int(stops[last - 1]))
                scaled = self.values[rows].astype(np.float64) * weights[rows, None]
                sums = np.add.reduceat(scaled, starts[first:last] - starts[first], axis=0)
                found[first:last] = np.einsum("ij,ij->i", sums, sums)
                first = last
        return found

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        total = np.zeros(self.dim)
        chosen = np.flatnonzero(weights)
        for start in range(0, len(chosen), _BLOCK):
            block = chosen[start : start + _BLOCK]
            total += weights[block].astype(np.float64) @ self.values[block].astype(np.float64)
        return total
