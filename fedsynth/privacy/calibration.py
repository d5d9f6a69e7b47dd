"""Noise from epsilon: the least that a plan needs."""

from __future__ import annotations

import math
from collections.abc import Callable

from fedsynth.errors import PrivacyError
from fedsynth.privacy.accounting import Counts, renyi, spent

# The multipliers among which calibration searches, and costs that are told from one another.
_LEAST_NOISE, _MOST_NOISE = 1e-2, 1e6
_LEAST_COST, _MOST_COST = 1e-9, 1e9
# How far below the target a cost may end, in logarithms; by RDP, where PLD then lowers it.
_SLACK, _FIRST_SLACK = 3e-4, 0.05


def calibrate(planned: Callable[[float], Counts], epsilon: float, delta: float) -> float:
    """The smallest noise multiplier whose whole plan costs at most ``epsilon``.

    Args:
        planned: every release of the job, given the multiplier that is being sought.
        epsilon: target for all of them together; infinite gives 0.

    Returns:
        A multiplier whose cost is at most 0.03 % below the target, never above.

    Raises:
        PrivacyError: where the releases that do not depend on the multiplier already cost more.
    """
    if math.isinf(epsilon):
        return 0.0

    def gap(log_multiplier: float, bound: Callable[[Counts, float], float]) -> float:
        cost = bound(planned(math.exp(log_multiplier)), delta)
        return math.log(min(max(cost, _LEAST_COST), _MOST_COST) / epsilon)

    def by_rdp(log_multiplier: float) -> float:
        return gap(log_multiplier, renyi)

    def by_both(log_multiplier: float) -> float:
        return gap(log_multiplier, lambda counts, delta: spent(counts, delta).epsilon)

    low, best = math.log(_LEAST_NOISE), math.log(_MOST_NOISE)
    # RDP is quick, and never below the tight bound.
    enough = by_rdp(best) <= 0
    if not enough and by_both(best) > 0:
        raise PrivacyError(
            f"no amount of noise brings this plan down to epsilon {epsilon:g}: the parts with "
            "fixed noise cost more already. Raise epsilon, or give them a smaller share"
        )
    if by_rdp(low) <= 0:
        return math.exp(low)
    if enough:
        best = _least(by_rdp, 0.0, low, best, _FIRST_SLACK)
    known = spent(planned(math.exp(best)), delta).pld is not None
    return math.exp(_least(by_both if known else by_rdp, best, low, best, _SLACK))


def _least(
    gap: Callable[[float], float], point: float, below: float, above: float, slack: float
) -> float:
    """A point between ``below`` and ``above``, where the gap is not positive, at which it is not,
    and less than the slack: by secants, for costs and multipliers are nearly on a line in
    logarithms. Seldom more than five gaps are computed."""
    last: tuple[float, float] | None = None
    while True:
        found = gap(point)
        if -slack <= found <= 0:
            return point
        below, above = (point, above) if found > 0 else (below, point)
        if above - below < 1e-7:
            return above
        slope = -1.0 if last is None else (found - last[1]) / (point - last[0])
        last = point, found
        step = (-slack / 3 - found) / slope if slope < 0 else math.inf
        point = point + step if below < point + step < above else (below + above) / 2


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
