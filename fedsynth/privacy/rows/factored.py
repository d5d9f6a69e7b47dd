"""Rows that are gradients of linear layers: outer products of two short vectors each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import Floats, Norm
from fedsynth.privacy.rows.joining import Array, Starts, outer_squares


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

    def joined_squares(self, starts: Starts, weights: Array) -> Array:
        layers = (outer_squares(left, right, starts, weights) for left, right in self.layers)
        return np.asarray(sum(layers, np.zeros(len(starts))))

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        kept = weights != 0
        total = np.zeros(self.dim)
        for (left, right), (start, stop) in zip(self.layers, self._blocks(), strict=True):
            if not kept.all():
                left, right = left[kept], right[kept]
            scaled = left * weights[kept, None].astype(np.float64)
            total[start:stop] = (scaled.T @ right.astype(np.float64)).ravel()
        return total
