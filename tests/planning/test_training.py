"""Trainings by themselves: golden values, what is solved for, and curves."""

from __future__ import annotations

import math

import pytest

from fedsynth.errors import ConfigError
from fedsynth.planning.training import LABEL, Training, average_cost, clients_for, curves
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms

FREE = Budget(epsilon=math.inf, unit="client", trust="central")


def test_the_papers_image_training_scaled_up():
    """30,000 clients, 100 a round, 1,500 rounds, z 1."""
    plan = Training(1500, per_round=100, noise_multiplier=1.0).plan(FREE, 30_000)
    assert plan.epsilon() == pytest.approx(0.6748089568306472, rel=5e-3)
    terms = plan.terms(LABEL)
    assert plan.epsilon() == spent({terms: 1500}, plan.budget.resolved_delta).epsilon


def test_noise_that_is_solved_for_costs_the_budget_and_hardly_less():
    budget = Budget(epsilon=2.0, delta=1e-5, unit="client", trust="local")
    plan = Training(20, rate=1.0).plan(budget, 500)
    assert 0.99 * 2 < plan.epsilon() <= 2


def test_a_server_that_knows_whom_it_drew_pays_for_every_round_a_client_may_join():
    local = Budget(epsilon=math.inf, unit="client", trust="local")
    plan = Training(1500, per_round=100, noise_multiplier=1.0).plan(local, 30_000)
    assert plan.participations == 19


def test_a_small_federation_scaled_up_keeps_the_noise_in_the_mean():
    """Paper 001's image trainings: 10 of 20 clients, z .1 and .05."""
    for z, per_round in ((0.1, 100), (0.05, 200)):
        small = Training(1500, per_round=10, noise_multiplier=z)
        assert small.scaled() == Training(1500, per_round=per_round, noise_multiplier=1.0)
        assert z / small.per_round == pytest.approx(1 / per_round)
    assert small.scaled().scaled() == small.scaled()


def test_a_client_that_takes_part_as_often_as_on_average_pays_less_than_the_worst():
    local = Budget(epsilon=math.inf, delta=1e-5, unit="client", trust="local")
    plan = Training(1500, per_round=100, noise_multiplier=4.0).plan(local, 30_000)
    often, epsilon = average_cost(plan)
    one = Terms(unit="client", trust="local", clip=1.0, noise_multiplier=4.0 / math.sqrt(5))
    assert often == 5 and epsilon == pytest.approx(spent({one: 1}, 1e-5).epsilon, rel=1e-3)
    assert epsilon < plan.epsilon()
    assert average_cost(Training(9, rate=0.5, noise_multiplier=1.0).plan(FREE, 100)) is None


def test_the_fewest_clients_are_enough_and_one_in_a_hundred_less_is_not():
    training = Training(30, per_round=20, noise_multiplier=1.5)
    budget = Budget(epsilon=1.0, unit="client", trust="central")
    clients = clients_for(training, budget)

    def cost(number):
        return training.plan(FREE, number).epsilon()

    assert cost(clients) <= 1 < cost(int(0.99 * clients))


def test_no_number_of_clients_helps_where_who_takes_part_shows():
    """A client takes part once at least, at the noise of one release."""
    local = Budget(epsilon=0.5, unit="client", trust="local")
    with pytest.raises(ConfigError, match="no number of clients"):
        clients_for(Training(10, per_round=10, noise_multiplier=1.0), local)


def test_central_epsilon_falls_with_clients_and_local_takes_ten_thousand_times_as_many():
    drawn = curves(100, 50, (1_000, 10_000, 10**8))
    assert list(drawn.central) == sorted(drawn.central, reverse=True)
    assert all(a > b for a, b in zip(drawn.local, drawn.central, strict=True))
    assert all(a > b for a, b in zip(drawn.worst, drawn.local, strict=True))
    # The last: noise of sqrt(.5 1e8) / 100 = 70.7 clips in each of 25 rounds.
    assert drawn.local[-1] == pytest.approx(math.sqrt(25) / 70.7 * 4.05, rel=0.3)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rounds": 0, "rate": 0.1}, "rounds"),
        ({"rounds": 5, "rate": 0.1, "per_round": 3}, "not both"),
        ({"rounds": 5, "rate": 1.5}, "rate"),
        ({"rounds": 5, "per_round": 50}, "more than the 10"),
        ({"rounds": 5, "rate": 0.1}, "one follows from the other"),
    ],
)
def test_what_does_not_go_together_is_refused(fields, said):
    with pytest.raises(ConfigError, match=said):
        Training(**fields).plan(FREE, 10)
