"""Rows made of several forms side by side, and rows of products of a record's numbers.

Both know their rows' exact norms, so that nothing of the length of a row is written per record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import Floats, Norm, Rows
from fedsynth.privacy.rows.joining import Array, Starts, Summing, outer_squares

ROOT = math.sqrt(2.0)


@dataclass(frozen=True)
class SecondMomentRows:
    """Row i is the upper triangle of ``outer(values[i], values[i])`` in its own block, 0 elsewhere.

    Products of different coordinates count times sqrt(2), so that a row's L2 norm is the squared
    norm of its values, as that of the whole product is.

    Attributes:
        values: [rows, width].
        blocks: whole numbers [rows], each at least 0 and below ``count``: which block is a row's.
        count: number of blocks of width * (width + 1) / 2 numbers, one behind another.

    Raises:
        PrivacyError: a block that there is not.
    """

    values: Floats
    blocks: NDArray[np.integer]
    count: int

    def __post_init__(self) -> None:
        if self.blocks.shape != (len(self.values),) or self.values.ndim != 2:
            raise PrivacyError("second moments need one block for each row of values")
        if len(self.blocks) and not 0 <= self.blocks.min() <= self.blocks.max() < self.count:
            raise PrivacyError(f"second moments have the blocks 0 to {self.count - 1} alone")

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    @property
    def dim(self) -> int:
        return self.count * triangle(self.width)

    def __len__(self) -> int:
        return len(self.values)

    def norms(self, norm: Norm) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)
            if norm == "l2":
                return np.asarray(squares)
            # sum_i z_i^2 + sqrt(2) * sum_{i<j} |z_i z_j|.
            sums = np.abs(self.values).sum(axis=1, dtype=np.float64)
            return np.asarray(squares + (sums**2 - squares) / ROOT)

    def joined_squares(self, starts: Starts, weights: Array) -> Array:
        # The root of 2 makes a triangle as long as the whole product. A person's rows in one block
        # add up, those in others do not meet them.
        persons = np.repeat(np.arange(len(starts)), np.diff([*starts, len(self)]))
        order = np.lexsort((self.blocks, persons))
        keys = persons[order] * self.count + self.blocks[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        values = self.values[order]
        squares = outer_squares(values, values, begins, weights[order])
        return np.bincount(persons[order][begins], squares, len(starts)).astype(np.float64)

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        total = np.zeros((self.count, triangle(self.width)))
        at = np.triu_indices(self.width)
        factors = np.where(at[0] == at[1], 1.0, ROOT)
        for block in np.unique(self.blocks[weights != 0]):
            mine = np.flatnonzero((self.blocks == block) & (weights != 0))
            values = self.values[mine].astype(np.float64)
            products = (values * weights[mine, None].astype(np.float64)).T @ values
            total[block] = products[at] * factors
        return total.ravel()


def triangle(width: int) -> int:
    """Numbers in the upper triangle, diagonal included, of a square matrix."""
    return width * (width + 1) // 2


@dataclass(frozen=True)
class StackedRows:
    """Row i is the rows i of several forms one behind another, each times a public weight.

    Raises:
        PrivacyError: forms of different numbers of rows, or not one positive weight a form.
    """

    parts: Sequence[Rows]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if not self.parts or len({len(part) for part in self.parts}) > 1:
            raise PrivacyError("forms side by side need the same number of rows, and one at least")
        fits = len(self.parts) == len(self.weights)
        if not fits or not all(math.isfinite(w) and w > 0 for w in self.weights):
            raise PrivacyError("forms side by side need one positive weight each")

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    def __len__(self) -> int:
        return len(self.parts[0])

    def norms(self, norm: Norm) -> Floats:
        each = [
            weight * part.norms(norm).astype(np.float64)
            for part, weight in zip(self.parts, self.weights, strict=True)
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            if norm == "l1":
                return np.asarray(np.sum(each, axis=0))
            return np.asarray(np.sqrt(np.sum(np.square(each), axis=0)))

    def joined_squares(self, starts: Starts, weights: Array) -> Array:
        total = np.zeros(len(starts))
        for part, weight in zip(self.parts, self.weights, strict=True):
            if not isinstance(part, Summing):
                raise PrivacyError(f"the norms of sums of {type(part).__name__} are not known")
            total += weight**2 * part.joined_squares(starts, weights)
        return total

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        return np.concatenate(
            [
                weight * part.weighted_sum(weights)
                for part, weight in zip(self.parts, self.weights, strict=True)
            ]
        )
