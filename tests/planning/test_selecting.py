"""Trials of which the best alone is released: dp-accounting's own events, and numbers drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event, rdp

import fedsynth as fs
from fedsynth.errors import ConfigError
from fedsynth.planning.selecting import cost_of_best, epsilon_of_trial, price_selection
from fedsynth.privacy import accounting
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.adversaries import HOLDER
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import count_terms
from fedsynth.privacy.trials import KINDS, Trials
from fedsynth.schema import Categorical, Schema

SCHEMA = Schema(columns=[Categorical(name=name, values=list("abc")) for name in "xyz"])
SHAPES = {"logarithmic": 0, "geometric": 1, "poisson": math.inf}


def plan_of(epsilon, trust="central", clients=10):
    return fs.MST(SCHEMA).plan(fs.Budget(epsilon=epsilon, delta=1e-5, trust=trust), clients)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mean", [1.0, 3.0, 40.0])
def test_the_best_alone_costs_what_dp_accounting_says(kind, mean):
    noises = [(5.0, 2), (9.0, 3)]
    counts = {
        Terms(unit="record", trust="central", clip=1.0, noise_multiplier=z): k for z, k in noises
    }
    events = [dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(z), k) for z, k in noises]
    accountant = rdp.RdpAccountant(accounting.orders().tolist())
    one = dp_event.ComposedDpEvent(events)
    accountant.compose(dp_event.RepeatAndSelectDpEvent(one, mean, SHAPES[kind]))
    expected = accountant.get_epsilon(1e-5)
    assert cost_of_best(counts, Trials(mean, kind), 1e-5) == pytest.approx(expected, rel=1e-9)


def test_theorem_2_by_hand():
    """A Gaussian release at order a costs a/(2 z^2); ten trials, geometric: gamma .1, shape 1."""
    z, delta = 4.0, 1e-6
    order = accounting.orders()
    constant = 2 * min((1 - 1 / b) * b / (2 * z**2) + math.log(10) / b for b in order)
    chosen = order / (2 * z**2) + constant + math.log(10) / (order - 1)
    by_hand = min(
        e + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
        for a, e in zip(order, chosen, strict=True)
    )
    one = Terms(unit="record", trust="central", clip=1.0, noise_multiplier=z)
    found = cost_of_best({one: 1}, Trials(10, "geometric"), delta)
    assert found == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_trials_have_the_mean_and_the_chances_that_are_told(kind):
    trials = Trials(7.0, kind)
    at = 1 - 1e-6
    assert (1 - trials.generate(at)) / 1e-6 == pytest.approx(7.0, rel=1e-3)  # the slope at 1
    assert trials.generate(1.0) == pytest.approx(1.0)
    drawn = {
        "poisson": lambda rng: rng.poisson(7.0, 200_000),
        "geometric": lambda rng: rng.geometric(1 / 7, 200_000),
        "logarithmic": lambda rng: rng.logseries(1 - trials.gamma, 200_000),
    }[kind](np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(7.0, rel=0.02)
    assert 1 - (0.9**drawn).mean() == pytest.approx(trials.finds(0.1), abs=0.005)
    assert (drawn > trials.most).mean() == pytest.approx(0.001, abs=0.0005)


def test_the_best_of_ten_costs_more_than_one_and_less_than_all_ten():
    made = plan_of(1.0)
    found = price_selection(made, 10)
    ten = {terms: 10 * count for terms, count in count_terms(made.releases).items()}
    assert found.one < found.epsilon < spent(ten, 1e-5).epsilon
    assert found.kind == "logarithmic" and found.most > 10


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_only_whoever_holds_the_best_alone_is_promised_anything(trust):
    found = price_selection(plan_of(1.0, trust), 5)
    holder, *others = found.adversaries
    assert holder.who == HOLDER and holder.promised and holder.epsilon == found.epsilon
    assert others and not any(who.promised for who in others)
    assert all(who.epsilon > found.epsilon for who in others)


def test_a_trial_gets_what_makes_the_best_cost_the_budget_and_hardly_less():
    each = epsilon_of_trial(plan_of, 10, 2.0)
    assert 0.98 * 2 < price_selection(plan_of(each), 10).epsilon <= 2


@pytest.mark.parametrize("mean", [0, 0.5, math.nan, math.inf])
def test_a_number_of_trials_that_cannot_be_is_refused(mean):
    with pytest.raises(ConfigError, match="trials must be"):
        Trials(mean, "poisson")
