"""Epsilon from events, and noise from epsilon, by dp-accounting.

RDP (the moments accountant) composes everything; the privacy loss distribution (PLD) tightens the
figure where it supports the events. Both are upper bounds, so the smaller is reported and both are
shown.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy import losses
from fedsynth.privacy.mechanisms import stable
from fedsynth.privacy.terms import Everyone, FixedSize, Poisson, Terms, Unit

if TYPE_CHECKING:
    import dp_accounting

# Above this the privacy loss distribution needs gigabytes, and the figure protects nobody anyway.
_PLD_LIMIT = 30.0

# The multipliers among which calibration searches.
_LEAST_NOISE, _MOST_NOISE = 1e-2, 1e6

Counts = Mapping[Terms, int]


@dataclass(frozen=True)
class Spent:
    """What a composition of releases costs at one delta.

    Attributes:
        epsilon: the smaller of the valid bounds.
        rdp: bound by Renyi composition.
        pld: bound by the privacy loss distribution, None where it does not apply.
    """

    epsilon: float
    rdp: float
    pld: float | None


def replaces_one(counts: Counts) -> bool:
    """Whether neighbours exchange a unit (forced by fixed-size samples) or add or remove one."""
    return any(isinstance(terms.sampling, FixedSize) for terms in counts)


def spent(counts: Counts, delta: float) -> Spent:
    """Cost of ``counts[terms]`` releases under each ``terms``, composed.

    Raises:
        PrivacyError: where no analysis covers the combination, for instance Poisson samples beside
            fixed-size ones.
    """
    return _spent(tuple(sorted(counts.items(), key=repr)), delta)


@lru_cache(maxsize=4096)
def _spent(counts: tuple[tuple[Terms, int], ...], delta: float) -> Spent:
    live = {_bare(terms): 0 for terms, count in counts if count}
    for terms, count in counts:
        if count:
            live[_bare(terms)] += count
    if not live:
        return Spent(0.0, 0.0, 0.0)
    if any(terms.noise_multiplier == 0 for terms in live):
        return Spent(math.inf, math.inf, None)
    by_rdp = renyi(live, delta)
    # Under replace-one no loss distribution is known for a sample without replacement.
    by_pld = None
    if by_rdp <= _PLD_LIMIT and not replaces_one(live):
        by_pld = losses.epsilon(live, delta)
    return Spent(min(by_rdp, math.inf if by_pld is None else by_pld), by_rdp, by_pld)


def _bare(terms: Terms) -> Terms:
    """The terms with everything levelled that does not change the cost."""
    return replace(terms, clip=1.0, survivors=1, trust="central")


def to_event(terms: Terms, replace_one: bool = False) -> dp_accounting.DpEvent:
    """dp-accounting's description of one release.

    Under replace-one the sensitivity of a clipped sum is twice the clip.

    Raises:
        PrivacyError: a mechanism that dp-accounting has no event for (stable noise).
    """
    import dp_accounting as dp

    multiplier = terms.noise_multiplier / (2 if replace_one else 1)
    noise: dp_accounting.DpEvent
    match terms.mechanism:
        case "laplace":
            noise = dp.LaplaceDpEvent(multiplier)
        case "gaussian" | "exponential":
            # The exponential mechanism's Renyi divergences are at most the Gaussian's of the same
            # multiplier: eps0-bounded range is eps0^2/8-zCDP, with eps0 = 2/multiplier.
            noise = dp.GaussianDpEvent(multiplier)
        case _:
            raise PrivacyError(f"no event describes {terms.mechanism} noise")
    match terms.sampling:
        case Everyone():
            return noise
        case Poisson(rate=rate):
            return noise if rate == 1 else dp.PoissonSampledDpEvent(rate, noise)
        case FixedSize(size=size, population=population):
            return dp.SampledWithoutReplacementDpEvent(population, size, noise)


def charged(
    counts: Counts, participations: int | None = None, unit: Unit | None = None
) -> dict[Terms, int]:
    """The counts that a curious server must be charged with.

    A server that draws clients knows whom it drew. Unless it is trusted (central), drawing hides
    nothing from it, so every round counts in full, up to the number in which one client may take
    part. Records are drawn in secret at their client, so their amplification holds against all.
    Fixed-size rounds become rounds of the whole population, for their relation stays replace-one.

    A release of one row a client may stand in a job that protects records: one record exchanges
    its client's row for another, which moves the sum by up to twice the clip.

    Args:
        participations: rounds after which a client refuses, None for no limit.
        unit: that the job protects; None where it is that of all terms.
    """
    found: dict[Terms, int] = {}
    for terms, count in counts.items():
        if unit == "record" and terms.unit == "client":
            halved = terms.noise_multiplier / 2
            terms = replace(terms, unit="record", noise_multiplier=halved, sampling=Everyone())
        elif terms.unit == "client" and terms.trust != "central":
            if terms.sampling != Everyone() and participations is not None:
                count = min(count, participations)
            terms = unsampled(terms)
        found[terms] = found.get(terms, 0) + count
    return found


def unsampled(terms: Terms) -> Terms:
    """The same release for those who know who took part: no amplification, same relation."""
    if isinstance(terms.sampling, FixedSize):
        population = terms.sampling.population
        return replace(terms, sampling=FixedSize(population, population))
    return replace(terms, sampling=Everyone())


def renyi(counts: Counts, delta: float) -> float:
    """The bound by Renyi composition alone, which is quick: an upper bound on :func:`spent`.

    Raises:
        PrivacyError: where no analysis covers the combination.
    """
    from dp_accounting import rdp

    # It logs every order that it leaves out of the minimum, which is sound and of no use to a user.
    logging.getLogger("absl").setLevel(logging.ERROR)
    if any(count and terms.noise_multiplier == 0 for terms, count in counts.items()):
        return math.inf
    live = {terms: count for terms, count in counts.items() if count}
    exchange = replaces_one(live)
    total = sum(count * _curve(_bare(terms), exchange) for terms, count in live.items())
    return float(rdp.compute_epsilon(_orders(), total, delta)[0]) if live else 0.0


@lru_cache(maxsize=1)
def _orders() -> NDArray[np.float64]:
    from dp_accounting import rdp

    return np.asarray(rdp.RdpAccountant().orders, np.float64)


@lru_cache(maxsize=4096)
def _curve(terms: Terms, exchange: bool) -> NDArray[np.float64]:
    """RDP of one release at :func:`_orders`."""
    if terms.mechanism == "stable":
        return _pure_curve(stable.release_epsilon(terms, exchange))
    import dp_accounting as dp
    from dp_accounting import rdp

    relation = (
        dp.NeighboringRelation.REPLACE_ONE if exchange else dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    accountant = rdp.RdpAccountant(neighboring_relation=relation)
    event = to_event(terms, exchange)
    if not accountant.supports(event):
        raise PrivacyError(
            "no analysis covers these releases together: fixed-size samples cannot be combined "
            "with Poisson samples, and Laplace noise cannot be amplified by sampling"
        )
    return np.asarray(accountant.compose(event).rdp, np.float64)


def _pure_curve(eps0: float) -> NDArray[np.float64]:
    """The largest Renyi divergences of any eps0-DP release, at :func:`_orders`.

    Those of randomised response, ``ln((sinh(a eps0) - sinh((a-1) eps0)) / sinh(eps0)) / (a-1)``
    (Bun and Steinke 2016; Kairouz, Oh, Viswanath 2015: it dominates all), which is ``ln(1 + 2
    sinh(a eps0/2) sinh((a-1) eps0/2) / cosh(eps0/2)) / (a-1)``: so nothing cancels.
    """
    a = _orders()
    cosh = np.logaddexp(eps0 / 2, -eps0 / 2) - math.log(2)
    logs = math.log(2) + _log_sinh(a * eps0 / 2) + _log_sinh((a - 1) * eps0 / 2) - cosh
    return np.asarray(np.logaddexp(0, logs) / (a - 1))


def _log_sinh(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(x + np.log(-np.expm1(-2 * x)) - math.log(2))


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
    if math.isinf(epsilon):
        return 0.0
    from scipy.optimize import brentq

    def gap(log_multiplier: float, bound: Callable[[Counts, float], float]) -> float:
        return bound(planned(math.exp(log_multiplier)), delta) - epsilon

    def tight(counts: Counts, delta: float) -> float:
        return spent(counts, delta).epsilon

    low, best = math.log(_LEAST_NOISE), math.log(_MOST_NOISE)
    if gap(best, tight) > 0:
        raise PrivacyError(
            f"no amount of noise brings this plan down to epsilon {epsilon:g}: the parts with "
            "fixed noise cost more already. Raise epsilon, or give them a smaller share"
        )
    if gap(low, renyi) <= 0:
        return math.exp(low)
    # RDP is quick and gives a first answer; PLD then lowers it, in steps that bracket its own.
    if gap(best, renyi) <= 0:
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
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise PrivacyError(f"needs 0 < epsilon < inf and 0 < delta < 1, not {epsilon}, {delta}")
    from scipy.optimize import brentq
    from scipy.special import erfc, erfcx

    def excess(xi: float) -> float:
        # exp(epsilon) * erfc(sqrt(xi^2 + epsilon)), written so that neither factor leaves float64.
        grown = math.exp(-xi * xi) * float(erfcx(math.sqrt(xi * xi + epsilon)))
        return float(erfc(xi)) - grown - 2 * delta

    # xi may be negative (large delta); erfc(-inf) = 2 bounds the left side.
    xi = brentq(excess, -math.sqrt(epsilon) * 20 - 20, 30.0, xtol=1e-13)
    return float((xi + math.sqrt(xi * xi + epsilon)) * sensitivity / (epsilon * math.sqrt(2)))
