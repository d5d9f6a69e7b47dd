"""Several jobs within one budget."""

from __future__ import annotations

import pytest

import fedsynth as fs
from fedsynth.planning.repeating import cost_of, epsilon_of_each, fit_within
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.trail.job import count_terms
from fedsynth.schema import Categorical, Schema

SCHEMA = Schema(columns=[Categorical(name=name, values=list("abc")) for name in "xyz"])


def plan_of(epsilon):
    return fs.MST(SCHEMA).plan(fs.Budget(epsilon=epsilon, delta=1e-5, curious=0), 10)


@pytest.fixture(scope="module")
def one():
    return plan_of(1.0)


@pytest.mark.parametrize(
    ("jobs", "together"), [(2, 1.4648), (3, 1.8346), (5, 2.4415), (7, 2.9524), (8, 3.1851)]
)
def test_gaussian_jobs_of_epsilon_1_together(one, jobs, together):
    """Golden values of AIM, which hold for any job that uses the same budget up."""
    assert cost_of(one, jobs) == pytest.approx(together, abs=2e-4)


def test_as_many_fit_as_cost_no_more_and_an_owner_admits_fewer(one):
    found = fit_within(one, 3.0)
    assert found.jobs == 7 and found.epsilon == cost_of(one, 7)
    # Smith and Thakurta's filter at half of delta, by hand.
    signal = optimal_gaussian_sigma(3.0, 0.5e-5) ** -2
    each = optimal_gaussian_sigma(1.0, 1e-5) ** -2
    assert found.owner == int(signal / each) == 6


def test_nothing_fits_into_less_than_one_costs(one):
    assert fit_within(one, 0.5).jobs == 0


def test_each_of_twelve_within_three():
    each = epsilon_of_each(plan_of, 12, 3.0)
    assert each == pytest.approx(0.7558, abs=3e-4)
    counts = {terms: 12 * k for terms, k in count_terms(plan_of(each).releases).items()}
    assert 0.999 * 3 < spent(counts, 1e-5).epsilon <= 3
