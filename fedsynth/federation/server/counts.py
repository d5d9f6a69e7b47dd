"""What a released sum of counts looks like if every client is honest; what cannot be is found.

Where nobody sees one client's answer the sum is all that can be looked at. A unit adds one to
exactly one number of each of a sum's blocks (a column's cells, a table), so the blocks' totals
agree, none is below zero, and neither is any number. The noise of Gaussian sums is known exactly,
so is how far they stray from that. All of it is computed from released values, and costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.privacy.terms import Terms

FALSE_ALARM = 1e-9
"""That honest clients' sum is refused."""

# Of a figure, beside one: what adding up in another order explains where there is no noise.
_ROUNDING = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """How the numbers of a sum fall into blocks, to one number of each of which a unit adds.

    Attributes:
        starts: where each begins, rising from 0, [blocks].
        weights: what a unit adds, positive, [blocks].
    """

    starts: NDArray[np.int64]
    weights: Floats

    @staticmethod
    def of_ones(starts: NDArray[np.int64]) -> Blocks:
        """Every unit adds one to each."""
        return Blocks(starts, np.ones(len(starts)))


@dataclass(frozen=True)
class Total:
    """An estimate of how many units there are, and its variance."""

    value: float
    variance: float

    def with_(self, other: Total | None) -> Total:
        """Both together, which are independent."""
        if other is None:
            return self
        weights = 1 / np.array([self.variance, other.variance])
        value = float(weights @ [self.value, other.value] / weights.sum())
        return Total(value, float(1 / weights.sum()))


def most_units(terms: Terms, answered: int, most_records: int | None) -> float:
    """How many units so many honest clients add up to, at the most; infinite if nobody knows."""
    if not terms.protects.per_record:
        return answered
    return math.inf if most_records is None else answered * most_records


def look(
    values: Floats, blocks: Blocks, scale: float, most: float, earlier: Total | None = None
) -> tuple[Total, str | None]:
    """What a released sum says of how many units it counts, and what is wrong with it, or None.

    Of honest clients' sums one in 1e9 is found at fault.

    Args:
        values: float64 [numbers].
        scale: standard deviation of the Gaussian noise in each number.
        most: :func:`most_units`.
        earlier: what other sums of the same units said of their number.
    """
    from scipy.special import chdtri, ndtri

    widths = np.diff([*blocks.starts, len(values)])
    totals = np.add.reduceat(values, blocks.starts) / blocks.weights
    slack = _ROUNDING * (1 + np.abs(totals).max())
    variances = widths * (scale / blocks.weights) ** 2 + slack**2
    level = FALSE_ALARM / 3
    weights = 1 / variances
    total = Total(float(weights @ totals / weights.sum()), float(1 / weights.sum()))
    known = [*zip(totals, variances, strict=True)]
    if earlier is not None:
        known.append((earlier.value, earlier.variance))
    mean = total.with_(earlier).value
    strays = sum((value - mean) ** 2 / variance for value, variance in known)
    # Two-sided, and above the margin of a sum within bounds by one side alone.
    margin = -ndtri(level / 2) * math.sqrt(total.variance)
    reason = None
    if len(known) > 1 and strays > chdtri(len(known) - 1, level):
        reason = "its tables disagree on how many they count"
    elif values.min() < ndtri(level / len(values)) * scale - slack * blocks.weights.max():
        reason = "a count is below zero"
    elif total.value < -margin:
        reason = "it counts fewer than none"
    elif total.value > most + margin:
        reason = "it counts more than all clients may have"
    return total, reason
