"""The grid a numeric column is counted on, from public bounds alone.

A value is a whole number of *units*: 1 for integers, 10^-decimals for continuous columns, one step
of the resolution for datetimes. Units are grouped into at most 2**17 *cells* of equal width, and
cells into a tree whose nodes have 16 children. Nothing here has seen a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

BRANCHING = 16
MAX_CELLS = 2**17
# A level this small is the coarsest: a further one would cost sensitivity and save little noise.
MAX_TOP = 2 * BRANCHING


def _scale(value: float, decimals: int) -> Decimal:
    """value * 10^decimals of the decimal number that `value` is written as (0.1 is a tenth)."""
    return Decimal(repr(float(value))).scaleb(decimals)


@dataclass(frozen=True)
class Grid:
    """Units and cells of the values with `decimals` decimals in [lower, upper].

    Unit k, 0 <= k < units, is the value lower + k * 10^-decimals. The bounds are such values
    themselves, and within 2**53 units of 0, as every schema sees to.
    """

    lower: float
    upper: float
    decimals: int = 0

    @property
    def first(self) -> int:
        """The lower bound in units."""
        return round(_scale(self.lower, self.decimals))

    @property
    def units(self) -> int:
        """Number of values."""
        return round(_scale(self.upper, self.decimals)) - self.first + 1

    @property
    def width(self) -> int:
        """Units in a cell (the last cell may hold fewer)."""
        return -(-self.units // MAX_CELLS)

    @property
    def cells(self) -> int:
        """Number of cells, at most 2**17."""
        return -(-self.units // self.width)

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
        return np.clip(whole, 0, self.units - 1)

    def ceiling(self, value: float) -> int:
        """The first unit whose value is not below `value`; `units` if there is none."""
        whole = math.ceil(_scale(value, self.decimals)) - self.first
        return min(max(whole, 0), self.units)

    def values(self, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value of each unit: the float64 nearest to the decimal number."""
        # A quotient of exact whole numbers is correctly rounded; a product with 10^-d is not.
        return np.asarray((offsets + self.first) / 10.0**self.decimals, np.float64)
