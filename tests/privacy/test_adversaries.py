"""Epsilon for each adversary: closed forms, and what the noise that is really drawn leaves."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.adversaries import ALL, HOLDER, SERVER, adversaries, known_to
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger

DELTA = 1e-5


def exact(noise: float) -> float:
    """Epsilon of one Gaussian sum (Balle and Wang 2018), by the normal distribution alone."""

    def excess(epsilon: float) -> float:
        low, high = 0.5 / noise - epsilon * noise, -0.5 / noise - epsilon * noise
        return norm.cdf(low) - math.exp(epsilon + norm.logcdf(high)) - DELTA

    return brentq(excess, 0, 60)


def terms(noise: float = 2.0, **changes) -> Terms:
    fields = {"unit": "record", "trust": "distributed", "clip": 1.0, **changes}
    return Terms(noise_multiplier=noise, **fields)


def calibrated(epsilon: float, clients: int, curious: int) -> Terms:
    def one(noise: float) -> Terms:
        return terms(noise, survivors=clients, curious=curious)

    return one(calibrate(lambda noise: {one(noise): 1}, epsilon, DELTA))


def told(counts, clients: int, budget: Budget) -> dict[str, float]:
    return {one.who: one.epsilon for one in adversaries(counts, budget, clients, None)}


@pytest.mark.parametrize(("clients", "fellow"), [(2, 1.465), (3, 1.25), (5, 1.13), (10, 1.06)])
def test_shares_for_all_promise_less_to_a_fellow_owner(clients: int, fellow: float):
    budget = Budget(epsilon=1.0, delta=DELTA, curious=0)
    found = told({calibrated(1.0, clients, 0): 1}, clients, budget)
    assert found[HOLDER] == found[SERVER] == pytest.approx(1.0, abs=2e-3)
    assert found["one owner"] == pytest.approx(fellow, abs=0.006)


def test_two_of_three_see_what_the_third_alone_adds():
    found = known_to({calibrated(1.0, 3, 0): 1}, 2)
    assert exact(next(iter(found)).noise_multiplier) == pytest.approx(1.835, abs=0.005)


@pytest.mark.parametrize(("clients", "curious"), [(2, 1), (3, 2), (5, 1), (10, 2)])
def test_shares_for_the_honest_keep_the_promise_to_the_curious(clients: int, curious: int):
    made = calibrated(1.0, clients, curious)
    budget = Budget(epsilon=1.0, delta=DELTA, curious=curious)
    found = adversaries({made: 1}, budget, clients, None)
    worst = max(one.epsilon for one in found if one.promised)
    assert worst == pytest.approx(exact(made.noise_multiplier), abs=2e-3) and worst <= 1.0
    root = math.sqrt(clients / (clients - curious))
    assert found[0].epsilon == pytest.approx(exact(made.noise_multiplier * root), abs=2e-3)
    for one in found:
        assert one.promised is (one.epsilon <= worst)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "stable"])
def test_the_noise_of_the_honest_is_the_whole(mechanism: str):
    """As it is drawn: what five owners add, without what two of them added, is the whole noise."""
    alpha, clip = (1.5, 1.0) if mechanism == "stable" else (None, 1.0)
    made = terms(
        3.0,
        mechanism=mechanism,
        alpha=alpha,
        norm="l2" if mechanism == "gaussian" else "l1",
        survivors=5,
        curious=2,
        clip=clip,
    )
    source, zeros = NoiseSource(1), np.zeros(60_000)
    honest = sum(made.client_noised(zeros, source) for _ in range(3))
    whole = made.noised(zeros, source)
    quantiles = np.quantile(np.abs(honest), [0.3, 0.5, 0.7, 0.9])
    np.testing.assert_allclose(
        quantiles, np.quantile(np.abs(whole), [0.3, 0.5, 0.7, 0.9]), rtol=0.04
    )


def test_fewer_laplace_shares_than_the_whole_protect_nobody_and_more_no_less():
    made = terms(2.0, mechanism="laplace", norm="l1", survivors=4, curious=1)
    noise = [next(iter(known_to({made: 1}, n))).noise_multiplier for n in range(5)]
    assert noise == [2.0, 2.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("trust", ["central", "local"])
def test_where_owners_add_no_shares_they_know_no_more_than_anybody(trust: str):
    budget = Budget(epsilon=1.0, delta=DELTA, trust=trust)
    counts = Counter({terms(5.0, trust=trust): 3})
    found = told(counts, 4, budget)
    assert known_to(counts, 3) == counts
    assert found[HOLDER] == found[ALL] == pytest.approx(exact(5.0 / math.sqrt(3)), abs=2e-3)
    assert math.isinf(found[SERVER]) is (trust == "central")


def test_all_rounds_count_whatever_their_noise():
    counts = {terms(4.0, survivors=3): 2, terms(6.0, survivors=3): 1, terms(5.0, trust="local"): 1}
    owner = told(counts, 3, Budget(epsilon=9.0, delta=DELTA, curious=0))["one owner"]
    precision = (2 / 4.0**2 + 1 / 6.0**2) * 3 / 2 + 1 / 5.0**2
    assert owner == pytest.approx(exact(precision**-0.5), abs=3e-3)


@pytest.mark.parametrize(
    ("clients", "given", "found"),
    [(1, None, 0), (3, None, 1), (9, None, 1), (2, 1, 1), (2, 0, 0), (9, 4, 4)],
)
def test_how_many_are_curious_by_default(clients: int, given: int | None, found: int):
    assert Budget(epsilon=1.0, curious=given).for_clients(clients).curious == found


def test_two_owners_must_choose_and_are_told_what_either_costs():
    with pytest.raises(ConfigError, match=r"curious: 1 .*\.005.*\.004.*curious: 0 .*1\.47"):
        Budget(epsilon=1.0).for_clients(2)
    for trust in ("central", "local"):
        assert not Budget(epsilon=1.0, trust=trust).for_clients(2).curious
    assert not Budget(epsilon=math.inf).for_clients(2).curious


@pytest.mark.parametrize(("clients", "curious"), [(1, 1), (2, 2), (3, 7)])
def test_somebody_must_be_left_to_protect(clients: int, curious: int):
    with pytest.raises(ConfigError, match="at most"):
        Budget(epsilon=1.0, curious=curious).for_clients(clients)


@pytest.mark.parametrize("wrong", [-1, 0.5, True, "1"])
def test_a_number_of_curious_owners_is_a_whole_number(wrong):
    with pytest.raises(ConfigError, match="curious"):
        Budget(epsilon=1.0, curious=wrong)


@pytest.mark.parametrize(("survivors", "curious"), [(3, 3), (3, 4), (3, -1), (1, 1)])
def test_terms_leave_somebody_to_carry_the_noise(survivors: int, curious: int):
    with pytest.raises(ConfigError, match="curious"):
        terms(survivors=survivors, curious=curious)


def test_curious_owners_belong_to_shares():
    with pytest.raises(ConfigError, match="curious"):
        terms(trust="local", survivors=3, curious=1)


def test_a_ledger_lets_no_release_past_that_counts_on_fewer_curious_than_it_promises():
    budget = Budget(epsilon=5.0, delta=DELTA, curious=2)
    ledger = Ledger.create(Job(budget=budget, clients=5))
    with pytest.raises(PrivacyError, match="2 owners"):
        ledger.charge(Event("t", 0, terms(5.0, survivors=5, curious=1)))
    ledger.charge(Event("t", 0, terms(5.0, survivors=5, curious=2)))
    ledger.charge(Event("t", 1, terms(5.0, trust="local")))


@pytest.mark.parametrize(
    ("survivors", "curious", "noise", "fewest"),
    [(5, 1, 2.0, 5), (3, 2, 2.0, 1), (5, 0, 0.0, 1), (1, 0, 2.0, 1)],
)
def test_a_round_needs_as_many_answers_as_an_honest_one_needs_beside_it(
    survivors: int, curious: int, noise: float, fewest: int
):
    assert terms(noise, survivors=survivors, curious=curious).fewest == fewest
