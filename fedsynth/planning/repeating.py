"""Several jobs alike within one budget: how many, or how much each may cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedsynth.errors import ConfigError
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.filters import admits
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import count_terms
from fedsynth.queries.plan import Plan

_MOST = 2**20


@dataclass(frozen=True)
class Together:
    """Jobs alike, one after the other.

    Attributes:
        jobs: how many fit when all are fixed in advance, and ``epsilon`` of them together.
        owner: how many an owner's own account admits, whose jobs may be chosen by what earlier
            ones released.
    """

    jobs: int
    epsilon: float
    owner: int


def cost_of(plan: Plan, jobs: int, delta: float | None = None) -> float:
    """Epsilon of so many such jobs together, at the plan's delta."""
    delta = plan.budget.resolved_delta if delta is None else delta
    return spent(_counts(plan, jobs), delta).epsilon


def fit_within(plan: Plan, epsilon: float) -> Together:
    """How many such jobs cost at most ``epsilon`` together, at the delta of one."""
    delta = plan.budget.resolved_delta
    jobs = _most(lambda k: cost_of(plan, k) <= epsilon)
    owner = _most(lambda k: admits(_counts(plan, k), epsilon, delta))
    return Together(jobs, cost_of(plan, jobs) if jobs else 0.0, owner)


def epsilon_of_each(make: Callable[[float], Plan], jobs: int, epsilon: float) -> float:
    """The most that each of so many jobs may cost for all to cost ``epsilon`` together.

    Args:
        make: the plan of a job of an epsilon.

    Returns:
        To one in 50,000 of all, and never more.
    """
    from scipy.optimize import brentq

    if jobs < 1:
        raise ConfigError(f"releases must be at least 1, not {jobs}")
    if jobs == 1:
        return epsilon

    def excess(each: float) -> float:
        return cost_of(make(each), jobs) - epsilon

    # Together they cost at most what each does times their number, and more than one of them.
    each = float(brentq(excess, epsilon / jobs * 0.99, epsilon, xtol=2e-5 * epsilon))
    while excess(each) > 0:
        each -= 2e-5 * epsilon
    return each


def _counts(plan: Plan, jobs: int) -> dict[Terms, int]:
    one = charged(count_terms(plan.releases), plan.participations, plan.budget.unit)
    return {terms: jobs * count for terms, count in one.items()}


def _most(fits: Callable[[int], bool]) -> int:
    """The largest number that fits; of more, never sooner."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high < _MOST and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
