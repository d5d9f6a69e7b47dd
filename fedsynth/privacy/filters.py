"""Privacy filters: what a budget admits of releases that are chosen in view of earlier ones.

An owner's account goes on from job to job, and the next job is chosen by what the last one
released. Bounds for releases that are all fixed in advance do not hold then: exact ones, such as
that of loss distributions, fail unless all releases are of one totally ordered kind, and so does a
Renyi bound at the order that turns out to be the best. These filters are proved:

- Gaussian releases of everybody, noise multipliers z: the sum of 1/z^2 at most that of the one
  release that the budget allows (Smith, Thakurta 2022, "Fully adaptive composition for Gaussian
  differential privacy"; Koskela, Tobaben, Honkela 2023). Nothing is lost by choosing as one goes.
- Renyi at one order: the sum of what all releases cost at it, at most what becomes epsilon at delta
  there (Feldman, Zrnic 2021, "Individual privacy accounting via a Renyi filter"; Whitehouse et al.
  2023, "Fully-adaptive composition in differential privacy").

Several of them are used together, each with a share of delta, and a release is admitted while one
of them admits everything so far. A transcript that ends within one filter's bound is also one of
the same releases stopped by that filter alone, so neighbours give any set of such transcripts
probabilities within e^epsilon and that filter's share; the shares add up to delta. Orders and
shares follow from the budget alone, which the account's first line fixes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from fedsynth.privacy.accounting import Counts, renyi
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.curves import orders
from fedsynth.privacy.mechanisms.gaussian import Gaussian
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms

# Shares of delta: of the Gaussian filter, and of the order that is best for Gaussian noise. The
# other orders have the rest; lower ones are for small samples with little noise, higher ones for
# pure mechanisms.
_GAUSSIAN, _BEST = 1 / 2, 1 / 4
_OTHERS = 2.0 ** np.array([-2, -1.5, -1, -0.5, 0.5, 1])
_MOST = 1000.0
_TRIED = 1 + 2.0 ** np.arange(-5, 12, 0.125)


def admits(counts: Counts, epsilon: float, delta: float) -> bool:
    """Whether a budget admits releases, ``counts[terms]`` under each ``terms``, however each was
    chosen in view of those before it.

    Args:
        epsilon, delta: the budget's, positive and finite.

    Raises:
        PrivacyError: no analysis covers these releases together.
    """
    live = {terms: count for terms, count in counts.items() if count}
    if any(terms.noise_multiplier == 0 for terms in live):
        return False
    if all(map(_is_gaussian, live)):
        signal = sum(count / terms.noise_multiplier**2 for terms, count in live.items())
        if signal <= optimal_gaussian_sigma(epsilon, _GAUSSIAN * delta) ** -2:
            return True
    for order, share in _filters(epsilon, delta):
        # Renyi divergences grow with their order, so that of the next one known is a bound.
        at = int(np.searchsorted(orders(), order))
        if at < len(orders()) and renyi(live, share, slice(at, at + 1)) <= epsilon:
            return True
    return False


def least_epsilon(counts: Counts, delta: float) -> float:
    """The least epsilon, to 1e-4 of itself, of a budget that admits releases at delta; infinite
    where that is above 1,000. Raises as `admits`."""
    low, high = 0.0, 1.0
    while not admits(counts, high, delta):
        low, high = high, 2 * high
        if high > _MOST:
            return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if admits(counts, middle, delta) else (middle, high)
    return high


@lru_cache(maxsize=256)
def _filters(epsilon: float, delta: float) -> tuple[tuple[float, float], ...]:
    """Orders, each with its share of delta."""
    best = max(_TRIED, key=lambda order: _signal(order, epsilon, _BEST * delta))
    rest = (1 - _GAUSSIAN - _BEST) / len(_OTHERS)
    others = tuple((float(1 + (best - 1) * step), rest * delta) for step in _OTHERS)
    return (float(best), _BEST * delta), *others


def _signal(order: float, epsilon: float, delta: float) -> float:
    """The most Gaussian signal (half the sum of 1/z^2) that an order shows to be within epsilon at
    delta, by the conversion of Canonne, Kamath, Steinke 2020, proposition 12."""
    return (epsilon - math.log1p(-1 / order) + math.log(delta * order) / (order - 1)) / order


def _is_gaussian(terms: Terms) -> bool:
    return isinstance(terms.kind, Gaussian) and terms.sampling == Everyone()
