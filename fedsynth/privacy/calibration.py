"""Noise from epsilon: the least that a plan needs."""

from __future__ import annotations

import math
from collections.abc import Callable

from fedsynth.errors import PrivacyError
from fedsynth.privacy.accounting import Counts, renyi, spent

# The multipliers among which calibration searches.
_LEAST_NOISE, _MOST_NOISE = 1e-2, 1e6


def calibrate(planned: Callable[[float], Counts], epsilon: float, delta: float) -> float:
    """The smallest noise multiplier whose whole plan costs at most ``epsilon``.

    Args:
        planned: every release of the job, given the multiplier that is being sought.
        epsilon: target for all of them together; infinite gives 0.

    Returns:
        A multiplier whose cost is within about 0.1 % below the target, never above.

    Raises:
        PrivacyError: where the releases that do not depend on the multiplier already cost more.
    """
    from scipy.optimize import brentq

    if math.isinf(epsilon):
        return 0.0

    def gap(log_multiplier: float, bound: Callable[[Counts, float], float]) -> float:
        return bound(planned(math.exp(log_multiplier)), delta) - epsilon

    def tight(counts: Counts, delta: float) -> float:
        return spent(counts, delta).epsilon

    low, best = math.log(_LEAST_NOISE), math.log(_MOST_NOISE)
    # RDP is quick, and never below the tight bound.
    enough = gap(best, renyi) <= 0
    if not enough and gap(best, tight) > 0:
        raise PrivacyError(
            f"no amount of noise brings this plan down to epsilon {epsilon:g}: the parts with "
            "fixed noise cost more already. Raise epsilon, or give them a smaller share"
        )
    if gap(low, renyi) <= 0:
        return math.exp(low)
    # RDP gives a first answer; PLD then lowers it, in steps that bracket its own.
    if enough:
        root = float(brentq(gap, low, best, args=(renyi,), xtol=1e-4))
        best = _not_above(root, lambda x: gap(x, renyi))
    if spent(planned(math.exp(best)), delta).pld is None:
        return math.exp(best)
    floor = best
    while floor > low and gap(floor, tight) <= 0:
        best, floor = floor, max(low, floor - 0.5)
    if floor == best:
        return math.exp(best)
    root = float(brentq(gap, floor, best, args=(tight,), xtol=3e-4))
    return math.exp(_not_above(root, lambda x: gap(x, tight)))


def _not_above(root: float, gap: Callable[[float], float]) -> float:
    """The next point at or above ``root`` where the gap is not positive."""
    step = 1e-5
    while gap(root) > 0:
        root += step
        step *= 2
    return root


def optimal_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation of the optimal Gaussian mechanism for one release.

    ``sigma = (xi + sqrt(xi^2 + epsilon)) * sensitivity / (epsilon * sqrt(2))`` where xi solves
    ``erfc(xi) - exp(epsilon) * erfc(sqrt(xi^2 + epsilon)) = 2 delta`` (paper 001, theorem 2.3;
    Balle and Wang 2018). Valid for every epsilon > 0, unlike the classical formula.

    Raises:
        PrivacyError: for epsilon or delta outside (0, inf) and (0, 1).
    """
    from scipy.optimize import brentq
    from scipy.special import erfc, erfcx

    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise PrivacyError(f"needs 0 < epsilon < inf and 0 < delta < 1, not {epsilon}, {delta}")

    def excess(xi: float) -> float:
        # exp(epsilon) * erfc(sqrt(xi^2 + epsilon)), written so that neither factor leaves float64.
        grown = math.exp(-xi * xi) * float(erfcx(math.sqrt(xi * xi + epsilon)))
        return float(erfc(xi)) - grown - 2 * delta

    # xi may be negative (large delta); erfc(-inf) = 2 bounds the left side.
    xi = brentq(excess, -math.sqrt(epsilon) * 20 - 20, 30.0, xtol=1e-13)
    return float((xi + math.sqrt(xi * xi + epsilon)) * sensitivity / (epsilon * math.sqrt(2)))
