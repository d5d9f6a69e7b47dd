"""Rows of one person, added up before they are clipped: the clip then bounds the whole person.

The norm that the clip bounds is that of the weighted sum of a person's rows, exactly, whatever
their number: a person of 1,000 rows moves a clipped sum no further than one of a single row. In L2
rows that point elsewhere add up to less than their lengths do, and each form knows by how much.
In L1, and of blocks of a choice, the lengths are added up, which is exact for rows without negative
numbers and never too little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import Floats, Norm, Rows, largest_blocks

Array = NDArray[np.float64]
Starts = NDArray[np.int64]
"""Where each person's rows begin, [persons], rising from 0: they lie one behind another."""

# Of the squared sum of the lengths of a person's rows: more than rounding takes from a squared norm
# where they cancel each other. Beside the lengths that a clip leaves it is nothing.
_ROUNDING = 2.0**-40
# Numbers that are written out at once: bounds memory.
_BATCH = 2**22


@runtime_checkable
class Summing(Protocol):
    """Rows that know the squared L2 norm of weighted sums of them."""

    def joined_squares(self, starts: Starts, weights: Array) -> Array:
        """Of every person's ``sum_i weights[i] * row_i``, [persons]; not finite where a row is
        not. Its error is rounding beside the squared sum of the lengths that are added up."""
        ...


@dataclass(frozen=True)
class JoinedRows:
    """A row a person: the weighted sum of its records' rows.

    Attributes:
        rows: of records, a person's one behind another.
        starts: see :data:`Starts`.
        weights: of each record's row, nonnegative, [records].

    Raises:
        PrivacyError: starts or weights that are none.
    """

    rows: Rows
    starts: Starts
    weights: Array

    def __post_init__(self) -> None:
        count, starts = len(self.rows), self.starts
        begins = len(starts) == 0 if count == 0 else len(starts) > 0 and starts[0] == 0
        if not begins or (np.diff([*starts, count]) <= 0).any():
            raise PrivacyError("persons' rows must begin at rising places from 0, within the rows")
        fit = self.weights.shape == (count,) and np.isfinite(self.weights).all()
        if not fit or (self.weights < 0).any():
            raise PrivacyError("a person's rows need one weight each, none below 0")

    @property
    def dim(self) -> int:
        return self.rows.dim

    def __len__(self) -> int:
        return len(self.starts)

    def norms(self, norm: Norm) -> Floats:
        lengths = self._add(self.rows.norms(norm))
        if norm == "l1" or len(self) == 0:
            return lengths
        if not isinstance(self.rows, Summing):
            raise PrivacyError(f"the norms of sums of {type(self.rows).__name__} are not known")
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.rows.joined_squares(self.starts, self.weights)
            longest = np.maximum(squares, 0.0) + _ROUNDING * lengths**2
            return np.where(np.isfinite(squares), np.sqrt(longest), np.inf)

    def largest_blocks(self, starts: NDArray[np.int64]) -> Floats:
        return self._add(largest_blocks(self.rows, starts))

    def weighted_sum(self, weights: Floats) -> Array:
        each = np.repeat(weights.astype(np.float64), np.diff([*self.starts, len(self.rows)]))
        return self.rows.weighted_sum(each * self.weights)

    def _add(self, lengths: Floats) -> Array:
        """Lengths of records' rows, weighted and added up by person."""
        if len(self) == 0:
            return np.zeros(0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(lengths.astype(np.float64) * self.weights, self.starts)


def outer_squares(left: Floats, right: Floats, starts: Starts, weights: Array) -> Array:
    """Squared norm of ``sum_i weights[i] * outer(left[i], right[i])`` over each person's rows.

    Of few rows by their inner products, ``<l_i, l_j> <r_i, r_j>`` for each pair; of many the sum is
    written out, a person at a time.

    Args:
        left, right: [records, out] and [records, in].
    """
    sizes = np.diff([*starts, len(left)])
    out, into = left.shape[1], right.shape[1]
    found = np.zeros(len(starts))
    with np.errstate(over="ignore", invalid="ignore"):
        for size in np.unique(sizes).tolist():
            persons = np.flatnonzero(sizes == size)
            pairs = size * (out + into) <= out * into
            step = max(1, _BATCH // (size * (out + into) + (size**2 if pairs else out * into)))
            for first in range(0, len(persons), step):
                some = persons[first : first + step]
                rows = starts[some][:, None] + np.arange(size)
                ours = left[rows].astype(np.float64) * weights[rows][..., None]
                theirs = right[rows].astype(np.float64)
                if pairs:
                    products = (ours @ ours.swapaxes(1, 2)) * (theirs @ theirs.swapaxes(1, 2))
                    found[some] = products.sum(axis=(1, 2))
                else:
                    sums = ours.swapaxes(1, 2) @ theirs
                    found[some] = np.einsum("pij,pij->p", sums, sums)
    return found


def cell_squares(cells: NDArray[np.int64], count: int, starts: Starts, weights: Array) -> Array:
    """Squared norm of the weighted counts of each person's rows in ``count`` cells.

    Args:
        cells: of every record's row, [records, ones].
    """
    persons = np.repeat(np.arange(len(starts)), np.diff([*starts, len(cells)]))
    places, index = np.unique(persons[:, None] * count + cells, return_inverse=True)
    sums = np.bincount(index.ravel(), np.repeat(weights, cells.shape[1]), len(places))
    return np.bincount(places // count, sums**2, len(starts)).astype(np.float64)
