"""Gaussian noise in whole numbers: what is added and what is accounted for are the same numbers.

A sum is rounded to a public grid, each share of the noise is a discrete Gaussian of as many steps,
and the total is taken modulo 2**64, so that masks that cancel can cover it.

**The Gaussian's accounting holds.** Let D(s) have the probabilities ``exp(-x^2 / 2 s^2) / Z`` on
the whole numbers. Draw a real y from N(0, s^2 - r^2), then a whole x with probability proportional
to ``exp(-(x - y)^2 / 2 r^2)``. Up to the last normalizer x has the probability of D(s), and by
Poisson summation that normalizer is ``r sqrt(2 pi) (1 +- e)`` wherever y lies, with
``e = 2.1 exp(-2 pi^2 r^2)``: below 2e-34 for r = 2 (the convolution lemma; Peikert 2010, "An
efficient and parallel Gaussian sampler for lattices", theorem 3.1). So whole numbers with noise
D(s) are, up to a factor of 1 +- 4e-34 a coordinate, what anybody could draw from the same numbers
with noise N(0, s^2 - 4): every bound for that one, of Renyi divergence or of a loss distribution,
with records drawn or not, is a bound for this one. With 65,536 steps the multiplier is 5e-10
smaller.

**Shares add up.** The sum of n draws of D(s) is one of D(s sqrt(n)), up to a factor of 1 +- t a
coordinate with ``t = 10 sum_{k<n} exp(-2 pi^2 s^2 k / (k + 1))`` (Kairouz, Liu, Steinke 2021, "The
distributed discrete Gaussian mechanism for federated learning with secure aggregation", theorem 1):
below 1e-67 a share for s = 4, and nothing at all for thousands of steps.

**Rounding widens the clip.** Two sums that differ by a vector of norm S steps, in k coordinates at
most, differ by at most S + sqrt(k) once each is rounded: a coordinate moves by half a step at
either. That is public and enters before the noise is calibrated (:func:`effective_multiplier`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.noise import NoiseSource

Steps = NDArray[np.int64]
Residues = NDArray[np.uint64]

FINE, COARSE = 16, 12
"""Binary digits of a share's noise in steps: for rows of many coordinates, and of few."""

_WIDTH = 4.0
"""r^2 = 4 of the convolution lemma, in steps."""

_DIGITS, _KEPT = 300, 127
"""Bits of a weight while thresholds are made, and of a threshold."""


@dataclass(frozen=True, eq=False)
class DiscreteGaussian:
    """Draws with probability proportional to ``exp(-x^2 / 2 sigma^2)`` on the whole numbers.

    By thresholds of 127 bits on the size, and a sign: a uniform number of 127 bits is looked up, so
    nothing is rejected and nothing rounded. The distance from the true distribution, in total
    variation, is below ``14 sigma 2**-127``: 1e-32 for 65,536 steps.

    Attributes:
        sigma: parameter, in steps; at least 1. Its square is the variance, up to 1e-7.
        high, low: [reach] the thresholds' upper 63 and lower 64 bits; threshold k is the
            probability of a size of at most k, of 2**127.
    """

    sigma: float
    high: Residues
    low: Residues

    def draw(self, count: int, source: NoiseSource) -> Steps:
        """Independent draws, shape [count]."""
        words = source.words(count)
        upper = words >> np.uint64(1)
        sizes = np.searchsorted(self.high, upper, side="left")
        # Where a threshold has the same upper bits the lower ones decide: about one draw in 2**43.
        tied = np.flatnonzero(self.high[np.minimum(sizes, len(self.high) - 1)] == upper)
        for place, lower in zip(tied, source.words(len(tied)), strict=True):
            end = np.searchsorted(self.high, upper[place], side="right")
            sizes[place] += np.searchsorted(self.low[sizes[place] : end], lower, side="right")
        return np.where(words & np.uint64(1), -sizes, sizes)


@lru_cache(maxsize=4)
def discrete_gaussian(sigma: float) -> DiscreteGaussian:
    """The thresholds for a parameter, in steps: about 13 sigma of them.

    Raises:
        PrivacyError: a parameter below 1, where shares would not add up, or above 2**20.
    """
    if not 1 <= sigma <= 2**20:
        raise PrivacyError(f"noise of {sigma:g} grid steps cannot be drawn in whole numbers")
    one = 1 << _DIGITS
    with localcontext(prec=_DIGITS // 3):
        ratio = (-1 / (2 * Decimal(sigma) ** 2)).exp()
        quotient = int(ratio * one)
    squared = quotient * quotient >> _DIGITS
    # exp(-k^2/2s^2) from the one before by q^(2k+1). Both signs of all but 0 go to one size.
    weights, step, weight = [one], quotient, one
    while weight >> (_DIGITS - _KEPT - 2):
        weight = weight * step >> _DIGITS
        step = step * squared >> _DIGITS
        weights.append(2 * weight)
    total, below = sum(weights), 0
    high, low = np.empty((2, len(weights)), np.uint64)
    for size, weight in enumerate(weights):
        below += weight
        threshold = (below << _KEPT) // total
        high[size], low[size] = threshold >> 64, threshold & (2**64 - 1)
    return DiscreteGaussian(sigma, high[:-1], low[:-1])


def to_steps(total: NDArray[np.float64], step: float) -> Steps:
    """A sum [n] on the grid, rounded half to even.

    Raises:
        PrivacyError: numbers that are not finite, or beyond 2**62 steps.
    """
    steps = np.rint(total / step)
    if not (np.abs(steps) < 2.0**62).all():
        raise PrivacyError("a sum is too large for its grid: is its clip right?")
    return steps.astype(np.int64)


def to_residues(steps: Steps) -> Residues:
    """Whole numbers modulo 2**64, in which sums of them wrap."""
    return steps.view(np.uint64)


def from_residues(residues: Residues, step: float) -> NDArray[np.float64]:
    """Numbers [n] of what is left of a sum modulo 2**64; right where :func:`demand_room` held."""
    return np.asarray(residues.view(np.int64) * step, np.float64)


def demand_room(largest: float, step: float, owners: int, sigma: float) -> None:
    """Make sure that no honest sum can wrap, by public bounds alone.

    Args:
        largest: what a coordinate of one owner's clipped sum cannot exceed: clip times the public
            cap on its units.
        step: of the grid.
        owners: that may answer.
        sigma: of a share's noise, in steps.

    Raises:
        PrivacyError: the sum may reach 2**63 steps.
    """
    # A draw is never farther out than the thresholds, 14 sigma.
    if owners * (largest / step + 1 + 14 * sigma) >= 2.0**63:
        raise PrivacyError(
            f"sums of {owners} owners of up to {largest:g} in steps of {step:g} may exceed 64 "
            f"bits: agree on fewer records an owner"
        )


def effective_multiplier(noise: float, shares: int, touched: int, digits: int = FINE) -> float:
    """The noise multiplier that the Gaussian's accountant may be told.

    Args:
        noise: of the whole sum over the clip, before rounding.
        shares: in which clients add it; 1 where one draw carries all.
        touched: coordinates that one unit can move, k.
        digits: of a share's noise in steps: its parameter is 2**digits.
    """
    summed = shares * 4.0**digits
    return math.sqrt(summed - _WIDTH) / (math.sqrt(summed) / noise + math.sqrt(touched))


def needed_multiplier(effective: float, shares: int, touched: int, digits: int = FINE) -> float:
    """The multiplier of the noise for :func:`effective_multiplier` to be this one.

    Raises:
        PrivacyError: rounding alone moves the sum by more than such noise hides.
    """
    summed = shares * 4.0**digits
    left = math.sqrt(summed - _WIDTH) / effective - math.sqrt(touched)
    if left <= 0:
        raise PrivacyError(
            f"{touched} coordinates on a grid of 2**-{digits} of the noise move by more than a "
            f"multiplier of {effective:g} hides: take a finer grid"
        )
    return math.sqrt(summed) / left
