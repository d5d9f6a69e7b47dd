"""Owners that are late, leave or come late: what is charged covers what was released, always."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fedsynth.errors import FederationError
from fedsynth.federation.request import Incident
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import channel, clients, ledger, terms

TASK, OWNERS, ROUNDS, DELTA = "test-vectors", 5, 4, 1e-5
NOISE = 4.0


class Unsteady(LocalRuntime):
    """Owners of whom some are not there in some rounds."""

    def __init__(self, owners, there):
        super().__init__(owners)
        self.there = there

    def _ask(self, request, cohort):
        here = [name for name in cohort if self.there[request.round][self.clients.index(name)]]
        yield from super()._ask(request, here)
        for name in cohort:
            if name not in here:
                yield Incident(name, request.round, "did not answer")


def gaussian_epsilon(mu: float) -> float:
    """Epsilon of a mu-Gaussian mechanism at DELTA, by Balle and Wang's (2018) formula."""
    low, high = 0.0, 100.0
    for _ in range(100):
        epsilon = (low + high) / 2
        delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
            -mu / 2 - epsilon / mu
        )
        low, high = (epsilon, high) if delta > DELTA else (low, epsilon)
    return high


def run(there, trust, survivors=1, curious=0, owners=None, dim=3):
    """The ledger, the sums that came, and how many answered each."""
    asked = terms(
        unit="record",
        trust=trust,
        noise_multiplier=NOISE,
        survivors=survivors,
        curious=curious,
    )
    account = ledger("record", trust=trust, insecure=True)
    house = channel(Unsteady(owners or clients(OWNERS, dim), there), account, seed=0, quorum=0.2)
    sums, answered = [], []
    for _ in there:
        try:
            released = house.sum(TASK, asked, dim)
        except FederationError:
            continue
        sums.append(released.value)
        answered.append(released.answered)
    return account, sums, answered


def counted(account):
    return Counter(event.terms for event in account.events)


@dataclass
class Charged:
    counts: Counter
    epsilon: float


@cache
def charged_of(trust, survivors, curious):
    """What is charged where everybody comes."""
    account, *_ = run([[True] * OWNERS] * ROUNDS, trust, survivors, curious)
    return Charged(counted(account), account.spent().epsilon)


schedules = st.lists(
    st.lists(st.booleans(), min_size=OWNERS, max_size=OWNERS), min_size=ROUNDS, max_size=ROUNDS
)


@settings(max_examples=15, deadline=None)
@given(
    schedules, st.sampled_from([("central", 1, 0), ("distributed", 3, 1), ("distributed", 2, 0)])
)
def test_epsilon_is_that_of_the_noise_that_was_there_at_the_least_whoever_came(there, how):
    """Computed a second time, from the shares of those who answered, less what is curious."""
    trust, survivors, curious = how
    account, _, answered = run(there, trust, survivors, curious)
    assert len(account.events) == ROUNDS
    inverse = 0.0
    for came in answered:
        share = NOISE / math.sqrt(survivors - curious)
        left = NOISE if trust == "central" else share * math.sqrt(came - curious)
        inverse += 1 / left**2
    told = charged_of(trust, survivors, curious)
    # As if nobody had been missing.
    assert counted(account) == told.counts
    assert told.epsilon >= gaussian_epsilon(math.sqrt(inverse) or 1e-9) * (1 - 1e-6)


@pytest.mark.parametrize("came", [3, 4, 5])
def test_a_sum_of_those_who_came_has_the_whole_noise_and_nothing_of_others(came):
    there, dim = [[place < came for place in range(OWNERS)]], 20_000
    owners = clients(OWNERS, dim, value=0.0)
    _, sums, answered = run(there, "distributed", 3, 1, owners, dim)
    assert answered == [came]
    # Shares for two, of whom `came` answered; a known seed, so that this cannot fail by chance.
    assert np.std(sums[0]) == pytest.approx(NOISE * math.sqrt(came / 2), rel=0.03)


def test_a_sum_of_too_few_is_opened_to_nobody_and_stays_charged():
    account, sums, _ = run([[True, True, False, False, False]], "distributed", 3, 1)
    assert sums == [] and len(account.events) == 1


def test_an_owner_pays_for_the_rounds_in_which_it_answered_and_no_other():
    """One leaves, one comes late: their own accounts have fewer rounds than the job's."""
    owners = clients(OWNERS)
    for owner in owners:
        budget = Budget(epsilon=math.inf, delta=DELTA, unit="record", trust="distributed")
        owner.ledger = Ledger.create(Job(budget=budget, insecure=True))
    there = [[number < 1, number >= 3, True, True, True] for number in range(ROUNDS)]
    account, _, answered = run(there, "distributed", 3, 1, owners)
    assert answered == [4, 3, 3, 4]
    left, late, steady = (owner.ledger for owner in owners[:3])
    assert [len(one.events) for one in (left, late, steady)] == [1, 1, ROUNDS]
    assert left.spent().epsilon == late.spent().epsilon
    assert left.spent().epsilon < steady.spent().epsilon <= account.spent().epsilon
