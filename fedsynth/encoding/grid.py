"""The grid a numeric column is counted on, from public bounds alone.

A value is a whole number of *units*: 1 for integers, 10^-decimals for continuous columns, one unit
of the resolution for datetimes, or as many of these as the column's `step` says. Units are grouped
into at most 2**17 *cells*, one each where they are no more, and cells into a tree whose nodes have
16 children. Nothing here has seen a row.

Bounds that are known in public may lie far from the values. So half of the cells of a column of
more units have equal widths, and half have widths that grow with the distance from 0, as those of
an HDR histogram: numbers of any size are told apart to a small part of themselves. Moments are
measured from no natural 0 and have equal cells alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

BRANCHING = 16
MAX_CELLS = 2**17
# A level this small is the coarsest: a further one would cost sensitivity and save little noise.
MAX_TOP = 2 * BRANCHING


def _scale(value: float, decimals: int) -> Decimal:
    """value * 10^decimals of the decimal number that `value` is written as (0.1 is a tenth)."""
    return Decimal(repr(float(value))).scaleb(decimals)


def merge(*rising: NDArray[np.int64]) -> NDArray[np.int64]:
    """All values, none below 0, each once, in order."""
    # What is sorted in parts is sorted sooner than hashed.
    values = np.sort(np.concatenate(rising), kind="stable")
    return values[np.diff(values, prepend=-1) > 0]


def _rank(distance: int, bits: int) -> int:
    """The cell, from 0, of a distance from 0 in units, if an octave has 2**bits."""
    octave = max(distance.bit_length() - bits - 1, 0)
    return (distance >> octave) + (octave << bits)


@dataclass(frozen=True)
class Grid:
    """Units and cells of the values with `decimals` decimals in [lower, upper].

    Unit k, 0 <= k < units, is the value lower + k * step * 10^-decimals. The bounds are such values
    themselves, and within 2**53 last places of 0, as every schema sees to. `origin`: whether a
    value's distance from 0 means something.
    """

    lower: float
    upper: float
    decimals: int = 0
    origin: bool = True
    step: int = 1

    @property
    def first(self) -> int:
        """The lower bound in last places."""
        return round(_scale(self.lower, self.decimals))

    @property
    def units(self) -> int:
        """Number of values."""
        return (round(_scale(self.upper, self.decimals)) - self.first) // self.step + 1

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first unit of each cell [at most 2**17], rising from 0."""
        if self.units <= MAX_CELLS:
            return np.arange(self.units)
        if not self.origin:
            return self._cut_evenly(MAX_CELLS)
        return merge(self._cut_evenly(MAX_CELLS // 2), *self._cut_by_size(MAX_CELLS // 2))

    @property
    def cells(self) -> int:
        """Number of cells, at most 2**17."""
        return len(self.starts)

    def _cut_evenly(self, most: int) -> NDArray[np.int64]:
        return np.arange(0, self.units, -(-self.units // most))

    def _cut_by_size(self, most: int) -> list[NDArray[np.int64]]:
        """First units of at most `most` cells, above 0 and below: single units up to some 2**p, and
        2**p to an octave from there on. Whole numbers throughout, so all machines cut alike.
        """
        last = self.first + (self.units - 1) * self.step
        sides = ((1, max(self.first, 0), last), (-1, max(-last, 0), -self.first))
        ways = [side for side in sides if side[2] >= 0]
        bits = 0
        while sum(_rank(b, bits + 1) - _rank(a, bits + 1) + 2 for _, a, b in ways) <= most:
            bits += 1
        cuts = []
        for way, nearest, farthest in ways:
            rank = np.arange(_rank(nearest, bits), _rank(farthest, bits) + 1)
            octave = np.maximum(rank >> bits, 1) - 1
            sizes = (rank - (octave << bits)) << octave
            # Below 0 it is the farthest unit that comes first: the one before the next cell's.
            starts = -((self.first - (sizes if way > 0 else 1 - sizes[::-1])) // self.step)
            cuts.append(starts[(starts > 0) & (starts < self.units)])
        return cuts

    @property
    def levels(self) -> tuple[int, ...]:
        """Nodes per level of the tree, coarse to fine; the last level is the cells."""
        sizes = [self.cells]
        while sizes[0] > MAX_TOP:
            sizes.insert(0, -(-sizes[0] // BRANCHING))
        return tuple(sizes)

    def offsets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The unit nearest to each finite value; one outside the bounds counts as the bound."""
        inside = np.clip(values, self.lower, self.upper)
        whole = np.rint(inside * 10.0**self.decimals).astype(np.int64) - self.first
        if self.step > 1:
            whole = (2 * whole + self.step) // (2 * self.step)
        return np.clip(whole, 0, self.units - 1)

    def ceiling(self, value: float) -> int:
        """The first unit whose value is not below `value`; `units` if there is none."""
        whole = -((self.first - math.ceil(_scale(value, self.decimals))) // self.step)
        return min(max(whole, 0), self.units)

    def values(self, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value of each unit: the float64 nearest to the decimal number."""
        # A quotient of exact whole numbers is correctly rounded; a product with 10^-d is not.
        return np.asarray((offsets * self.step + self.first) / 10.0**self.decimals, np.float64)
