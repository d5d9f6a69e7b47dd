"""Gaussian noise in whole numbers: what is added and what is accounted for are the same numbers.

A sum is rounded to a public grid, of 65,536 steps to a standard deviation of a share of the noise;
each share is a discrete Gaussian of as many steps, and the total is taken modulo 2**64, so that
masks that cancel can cover it.

**Two roundings make one.** Let D(s) have the probabilities ``exp(-x^2 / 2 s^2) / Z`` on the whole
numbers, and write ``rho = 2.1 exp(-2 pi^2 4)``, below 2e-34. For all real r >= 2 and y the sum of
``exp(-(x - y)^2 / 2 r^2)`` over the whole numbers x is ``r sqrt(2 pi) (1 +- rho / 2)``, by Poisson
summation. Completing a square in that sum gives both of what follows (the convolution lemma;
Peikert 2010, "An efficient and parallel Gaussian sampler for lattices", theorem 3.1).

**The Gaussian's accounting holds.** Draw a real y from N(0, s^2 - 4), then a whole x with
probability proportional to ``exp(-(x - y)^2 / 8)``: x has the distribution D(s), up to a factor of
1 +- 2 rho. So whole numbers with noise D(s) are, up to that factor a coordinate, what anybody could
draw from the same numbers with noise N(0, s^2 - 4): every bound for that one, of Renyi divergence
or of a loss distribution, with records drawn or not, is a bound for this one. With 65,536 steps the
multiplier is 5e-10 smaller.

**Small tables will do.** ``256 a + b``, with a drawn from D(s_a) and b from D(s_b), has the
distribution D(s), ``s^2 = 256^2 s_a^2 + s_b^2``, up to a factor of 1 +- 2 rho where
``s_a s_b / s >= 2`` (Micciancio, Walter 2017, "Gaussian sampling over the integers").

**Shares add up.** The sum of n draws of D(s) is one of D(s sqrt(n)), up to a factor of 1 +- t a
coordinate with ``t = 10 sum_{k<n} exp(-2 pi^2 s^2 k / (k + 1))`` (Kairouz, Liu, Steinke 2021, "The
distributed discrete Gaussian mechanism for federated learning with secure aggregation", theorem 1):
nothing at all for so many steps.

**Rounding widens the clip.** Two sums that differ by a vector of norm S steps, in k coordinates at
most, differ by at most S + sqrt(k) once each is rounded: a coordinate moves by half a step at
either. That is public, and the noise is that much wider than its multiplier says
(:func:`widened`): what the accountant is told stays what it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.noise import NoiseSource

Steps = NDArray[np.int64]
Residues = NDArray[np.uint64]

SIGMA = 2.0**16
"""Steps of the grid to a standard deviation of a share of the noise."""

_STRIDE, _FINE = 256, 512.0
"""Of the sum 256 a + b that makes up a draw: 256, and s_b."""
_COARSE = math.sqrt(SIGMA**2 - _FINE**2) / _STRIDE
"""s_a: about 256, so that s_a s_b / s is 2."""

_DIGITS, _KEPT = 300, 127
"""Bits of a weight while thresholds are made, and of a threshold."""
_GUIDED = 12
"""Bits of a uniform number that tell about where it falls."""


def add_noise(steps: Steps, source: NoiseSource) -> Steps:
    """Whole numbers [n] with one share of noise, of 65,536 steps, in each."""
    coarse, fine = discrete_gaussian(_COARSE), discrete_gaussian(_FINE)
    return steps + _STRIDE * coarse.draw(len(steps), source) + fine.draw(len(steps), source)


@dataclass(frozen=True, eq=False)
class DiscreteGaussian:
    """Draws with probability proportional to ``exp(-x^2 / 2 sigma^2)`` on the whole numbers.

    By thresholds of 127 bits on the size, and a sign: a uniform number of 127 bits is looked up, so
    nothing is rejected and nothing rounded. The distance from the true distribution, in total
    variation, is below ``14 sigma 2**-127``: 5e-35 for 512 steps.

    Attributes:
        sigma: parameter, in steps.
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
        sizes = self._find(upper)
        # Where a threshold has the same upper bits the lower ones decide: one draw in 2**50 or so.
        tied = np.flatnonzero(self.high[np.minimum(sizes, len(self.high) - 1)] == upper)
        for place, lower in zip(tied, source.words(len(tied)), strict=True):
            end = np.searchsorted(self.high, upper[place], side="right")
            sizes[place] += np.searchsorted(self.low[sizes[place] : end], lower, side="right")
        return np.where(words & np.uint64(1), -sizes, sizes)

    def _find(self, upper: Residues) -> Steps:
        """How many thresholds' upper bits are below: as np.searchsorted, at half the time."""
        sizes: Steps = self._first[upper >> np.uint64(63 - _GUIDED)]
        for _ in range(2):
            sizes += self._ends[sizes] < upper
        far = np.flatnonzero(self._ends[sizes] < upper)
        sizes[far] = np.searchsorted(self.high, upper[far], side="left")
        return sizes

    @cached_property
    def _ends(self) -> Residues:
        """The thresholds' upper bits, and what none is below."""
        return np.append(self.high, np.uint64(2**63))

    @cached_property
    def _first(self) -> Steps:
        """By the first bits of a uniform number, the least that :meth:`_find` can find."""
        lowest = np.arange(2**_GUIDED, dtype=np.uint64) << np.uint64(63 - _GUIDED)
        return np.searchsorted(self.high, lowest, side="left")


@lru_cache(maxsize=8)
def discrete_gaussian(sigma: float) -> DiscreteGaussian:
    """The thresholds for a parameter of at least 1, in steps: about 13 sigma of them."""
    one = 1 << _DIGITS
    with localcontext(prec=_DIGITS // 3):
        quotient = int((-1 / (2 * Decimal(sigma) ** 2)).exp() * one)
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


def widened(noise: float, shares: int, touched: int) -> float:
    """The multiplier of noise that is worth ``noise`` to the Gaussian's accountant.

    With N of it over the clip the grid has ``65,536 sqrt(shares) / N`` steps to a clip.

    Args:
        noise: of the whole sum over the clip, as it is accounted for.
        shares: in which clients add it; 1 where one draw carries all.
        touched: coordinates that one unit can move, k.

    Raises:
        PrivacyError: rounding alone moves the sum by more than such noise hides.
    """
    left = math.sqrt(1 - 4 / SIGMA**2) - noise * math.sqrt(touched / shares) / SIGMA
    if left <= 0:
        raise PrivacyError(
            f"{touched:,} coordinates on a grid of {SIGMA:,.0f} steps move by more than noise of "
            f"{noise:g} times the clip hides: take noise in floating point"
        )
    return noise / left


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


def demand_room(largest: float, step: float, owners: int) -> None:
    """Make sure that no honest sum can wrap, by public bounds alone.

    Args:
        largest: what a coordinate of one owner's clipped sum cannot exceed: clip times the public
            cap on its units.
        step: of the grid.
        owners: that may answer.

    Raises:
        PrivacyError: the sum may reach 2**63 steps.
    """
    # A draw is never farther out than the thresholds: 14 sigma of either part.
    if owners * (largest / step + 1 + 28 * SIGMA) >= 2.0**63:
        raise PrivacyError(
            f"sums of {owners} owners of up to {largest:g} in steps of {step:g} may exceed 64 "
            f"bits: agree on fewer records an owner"
        )
