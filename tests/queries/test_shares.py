"""A budget shared out: nothing left over, nothing overspent, shares as asked."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.privacy.accounting import spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.queries.shares import Stage, share_out
from fedsynth.queries.tables import table_terms


def stages(budget, *shares, mechanism="gaussian"):
    def terms(kind):
        return lambda multiplier: table_terms(budget, multiplier, 1, kind)

    planned_stages = [
        Stage(f"s{i}", share, terms("gaussian"), i + 1) for i, share in enumerate(shares)
    ]
    return (
        [*planned_stages, Stage("choices", 0.1, terms("exponential"), 3)]
        if mechanism != "gaussian"
        else planned_stages
    )


def cost(plan, delta):
    counts = {}
    for planned in plan:
        counts[planned.terms] = counts.get(planned.terms, 0) + planned.count
    return spent(counts, delta).epsilon


@given(
    st.sampled_from([0.01, 0.3, 1.0, 3.0, 20.0, 50.0]),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=3),
)
@settings(max_examples=10, deadline=None)
def test_the_whole_budget_is_used_and_no_more(epsilon, shares):
    budget = Budget(epsilon=epsilon, delta=1e-5, trust="distributed")
    spent = cost(share_out(stages(budget, *shares), budget), 1e-5)
    assert 0.96 * epsilon < spent <= epsilon


def test_gaussian_releases_equal_the_closed_form_of_one():
    """mu^2 = sum of 1/sigma^2 is that of the optimal single release (Balle and Wang 2018)."""
    budget = Budget(epsilon=1.0, delta=1e-5)
    plan = share_out(stages(budget, 0.2, 0.8), budget)
    whole = sum(p.count / p.terms.noise_multiplier**2 for p in plan)
    assert 1 / math.sqrt(whole) == pytest.approx(optimal_gaussian_sigma(1.0, 1e-5), rel=1e-3)
    first = plan[0].count / plan[0].terms.noise_multiplier ** 2
    assert first / whole == pytest.approx(0.2)


def test_choices_and_sums_share_one_budget():
    budget = Budget(epsilon=1.0, delta=1e-5, trust="central")
    plan = share_out(stages(budget, 0.3, 0.6, mechanism="exponential"), budget)
    assert 0.99 < cost(plan, 1e-5) <= 1.0
    assert {p.terms.mechanism for p in plan} == {"gaussian", "exponential"}


def test_without_privacy_there_is_no_noise():
    budget = Budget(epsilon=math.inf)
    assert all(p.terms.noise_multiplier == 0 for p in share_out(stages(budget, 1.0), budget))
