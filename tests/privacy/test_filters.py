"""A filter admits nothing past its own bounds, worked out here without the accountants."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedsynth.privacy import filters
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.filters import admits
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify import gaussian
from tests.charges import charges_of

NORMAL = NormalDist()
EPSILONS, DELTAS = st.floats(0.05, 30), st.sampled_from([1e-9, 1e-5, 1e-2])
L1 = {"exponential", "laplace"}


def terms(noise: float, mechanism: str = "gaussian", **changes) -> Terms:
    norm = "l1" if mechanism in L1 else "l2"
    fields = {"unit": "record", "trust": "central", "clip": 1.0, "norm": norm, **changes}
    return Terms(noise_multiplier=noise, mechanism=mechanism, **fields)


def divergence(promised: Terms, order: float) -> float:
    """Renyi divergence of one release of everybody, by its closed form."""
    noise = promised.noise_multiplier
    if promised.mechanism != "laplace":
        return order / (2 * noise**2)
    # Mironov 2017, "Renyi differential privacy", table II.
    first = math.log(order / (2 * order - 1)) + (order - 1) / noise
    second = math.log((order - 1) / (2 * order - 1)) - order / noise
    return float(np.logaddexp(first, second)) / (order - 1)


def within(releases: list[Terms], epsilon: float, delta: float) -> bool:
    """Whether one of the filters bounds these releases."""
    if all(one.mechanism == "gaussian" for one in releases):
        whole = {terms((sum(one.noise_multiplier**-2 for one in releases)) ** -0.5): 1}
        cost = gaussian.epsilon(charges_of(whole), delta / 2)
        if cost is not None and cost <= epsilon * (1 + 1e-9):
            return True
    for order, share in filters._filters(epsilon, delta):
        at = min((known for known in filters.orders() if known >= order), default=math.inf)
        if math.isfinite(at):
            total = sum(divergence(one, at) for one in releases)
            # P(loss > epsilon + x) <= e^((order-1)(total - epsilon - x)), with the worst x.
            log_delta = (at - 1) * (total - epsilon + math.log1p(-1 / at)) - math.log(at)
            if log_delta <= math.log(share) + 1e-9:
                return True
    return False


@settings(max_examples=40)
@given(
    wanted=st.lists(
        st.tuples(st.floats(0.4, 60), st.sampled_from(["gaussian", "exponential", "laplace"])),
        max_size=12,
    ),
    epsilon=EPSILONS,
    delta=DELTAS,
)
def test_no_sequence_that_an_account_across_jobs_admits_exceeds_all_filters(wanted, epsilon, delta):
    budget = Budget(epsilon=epsilon, delta=delta, trust="central")
    account = Ledger.create(Job(budget=budget))
    admitted: list[Terms] = []
    for number, (noise, mechanism) in enumerate(wanted):
        promised = terms(noise, mechanism)
        if account.would_exceed(promised):
            assert not within([*admitted, promised], epsilon, delta * (1 - 1e-6))
        else:
            account.charge(Event("x", number, promised))
            admitted.append(promised)
            assert within(admitted, epsilon, delta)


@given(epsilon=EPSILONS, delta=DELTAS)
def test_the_filters_share_delta_and_the_best_order_is_among_them(epsilon, delta):
    found = filters._filters(epsilon, delta)
    assert sum(share for _, share in found) + filters._GAUSSIAN * delta == pytest.approx(delta)
    orders, shares = zip(*found, strict=True)
    assert len(set(orders)) == 7 and min(orders) > 1
    best = [filters._signal(order, epsilon, shares[0]) for order in orders]
    assert best[0] == max(best)


@given(epsilon=EPSILONS, delta=DELTAS, counts=st.lists(st.integers(1, 50), min_size=1, max_size=3))
def test_gaussian_releases_that_are_admitted_cost_no_more_than_the_budget(epsilon, delta, counts):
    noise = optimal_gaussian_sigma(epsilon, delta)
    admitted = 0
    for count in counts:
        # Each ten or so of these are the budget.
        if admits({terms(noise * 3.2): admitted + count}, epsilon, delta):
            admitted += count
    assume(admitted)
    cost = gaussian.epsilon(charges_of({terms(noise * 3.2): admitted}), delta)
    assert cost is not None and cost <= epsilon


def test_what_choosing_as_one_goes_costs_an_owner():
    """Releases of epsilon 1 in a budget of 3, of which 7.2 fit if they are fixed in advance."""
    single = terms(optimal_gaussian_sigma(1.0, 1e-5))
    assert gaussian.epsilon(charges_of({single: 7}), 1e-5) <= 3.0
    assert gaussian.epsilon(charges_of({single: 8}), 1e-5) > 3.0
    assert admits({single: 6}, 3.0, 1e-5) and not admits({single: 7}, 3.0, 1e-5)
    # The smallest sample makes it no sum of everybody: Renyi alone bounds it.
    mixed = {single: 5, terms(50.0, sampling=Poisson(0.01)): 1}
    assert admits(mixed, 3.0, 1e-5) and not admits({**mixed, single: 6}, 3.0, 1e-5)


def test_records_drawn_rarely_with_little_noise_are_bounded_by_a_lower_order():
    """At the order that is best for Gaussian noise a twentieth of these would be admitted."""
    rare = terms(0.8, sampling=Poisson(0.004))
    assert admits({rare: 2000}, 3.0, 1e-5)
    assert not admits({rare: 6000}, 3.0, 1e-5)


def test_no_noise_is_admitted_nowhere():
    assert not admits({terms(0.0): 1}, 1e6, 1e-2)
    assert admits({terms(0.0): 0}, 0.1, 1e-9) and admits({}, 0.1, 1e-9)


@pytest.mark.parametrize("noises", [[3.0], [3.0, 3.0], [2.0, 5.0, 9.0]])
def test_the_least_epsilon_of_gaussian_releases_is_that_of_one_with_their_signal(noises):
    counts: dict[Terms, int] = {}
    for noise in noises:
        counts[terms(noise)] = counts.get(terms(noise), 0) + 1
    found = filters.least_epsilon(counts, 1e-5)
    mu = math.sqrt(sum(noise**-2 for noise in noises))

    # Balle, Wang 2018, theorem 8.
    def delta(epsilon: float) -> float:
        low, high = -epsilon / mu - mu / 2, mu / 2 - epsilon / mu
        return NORMAL.cdf(high) - math.exp(epsilon) * NORMAL.cdf(low)

    # Half of delta is the Gaussian filter's, and no other does better here.
    assert delta(found) <= 0.5e-5 < delta(found * 0.999)


def test_no_epsilon_admits_a_release_without_noise():
    assert filters.least_epsilon({terms(0.0): 1}, 1e-5) == math.inf
