"""Rows as vectors that distances and linear models can take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.reading.rows import Rows

MOST_CODES = 64
"""Categories of a column that have a coordinate of their own."""
_CELLS = 2**24
"""Entries of a block: 128 MiB of rough distances, and as much of exact differences."""


@dataclass(frozen=True, eq=False)
class Features:
    """A map from rows to vectors, learned from one table and applied to others.

    A number is scaled by the 5 to 95 % range of the table it was learned from and clipped to 3 such
    ranges around the median; a gap lies at the median and has a coordinate of its own. A category
    is one-hot over the table's 64 commonest codes, the others sharing one, scaled so that two
    different ones are at distance 1.
    """

    columns: tuple[int, ...]
    centres: NDArray[np.float64]
    scales: NDArray[np.float64]
    codes: dict[int, NDArray[np.int64]]

    @classmethod
    def of(cls, rows: Rows, without: tuple[str, ...] = ()) -> Features:
        """Learned from `rows`; columns named in `without` are left out."""
        columns = tuple(j for j, name in enumerate(rows.names) if name not in without)
        centres, scales = np.zeros(len(rows.names)), np.ones(len(rows.names))
        codes: dict[int, NDArray[np.int64]] = {}
        for j in columns:
            known = rows.values[~np.isnan(rows.values[:, j]), j]
            if rows.sizes[j]:
                counts = np.bincount(known.astype(np.int64), minlength=rows.sizes[j])
                codes[j] = np.sort(np.argsort(-counts, kind="stable")[:MOST_CODES])
            elif len(known):
                low, centres[j], high = np.quantile(known, [0.05, 0.5, 0.95])
                scales[j] = (high - low) or np.ptp(known) or 1.0
        return cls(columns, centres, scales, codes)

    def matrix(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors float32 [n, p], all finite."""
        parts = [np.empty((len(rows), 0))]
        for j in self.columns:
            values = rows.values[:, j]
            gap = np.isnan(values)
            if j in self.codes:
                kept = self.codes[j]
                hot = values[:, None] == kept
                rest = ~gap & ~hot.any(axis=1)
                parts.append(np.column_stack([hot, rest, gap]) * np.float32(np.sqrt(0.5)))
            else:
                scaled = np.clip((values - self.centres[j]) / self.scales[j], -3, 3)
                parts.append(np.column_stack([np.where(gap, 0, scaled), gap]))
        return np.concatenate(parts, axis=1).astype(np.float32)


def width(rows: Rows, number: int = 2) -> int:
    """Coordinates of a row's vector at most, where a number counts for so many."""
    return sum(min(size, MOST_CODES) + 2 if size else number for size in rows.sizes)


def nearest(
    queries: NDArray[np.float32], among: NDArray[np.float32], k: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Euclidean distances [q, k], rising, of each query to its k nearest vectors, and their places.

    Candidates come from one matrix product a block; their distances are then computed exactly, so
    that equal vectors are at distance 0. The product is in float64: in float32, rows that lie close
    in few coordinates hide the nearest. Fewer than k vectors give as many columns as there are.
    """
    k = min(k, len(among))
    wanted = min(k + 4, len(among))
    exactly = among.astype(np.float64)
    norms = np.einsum("ij,ij->i", exactly, exactly)
    distances, places = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    step = max(1, _CELLS // max(len(among), wanted * among.shape[1]))
    for start in range(0, len(queries), step):
        block = queries[start : start + step].astype(np.float64)
        rough = block @ exactly.T
        rough *= -2
        rough += norms
        near = np.argpartition(rough, wanted - 1, axis=1)[:, :wanted]
        gaps = block[:, None, :] - exactly[near]
        exact = np.sqrt(np.einsum("qkp,qkp->qk", gaps, gaps))
        order = np.lexsort((near, exact), axis=1)[:, :k]
        distances[start : start + step] = np.take_along_axis(exact, order, axis=1)
        places[start : start + step] = np.take_along_axis(near, order, axis=1)
    return distances, places
