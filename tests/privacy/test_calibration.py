"""Noise that is just enough: against the closed form, and against what the accountant then says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import PrivacyError
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.calibration import _least, calibrate, optimal_gaussian_sigma
from fedsynth.privacy.sampling import FixedSize, Poisson, Sampling
from tests.privacy.test_accounting import DELTA, delta_of, terms


@pytest.fixture(autouse=True, scope="module")
def _exact_costs():
    """In place of the exact ones: noise is sought by whatever the accountant says."""


@given(
    epsilon=st.floats(0.01, 50),
    delta=st.floats(1e-12, 0.4),
    sensitivity=st.floats(1e-3, 1e3),
)
def test_the_optimal_gaussian_solves_its_defining_equation(
    epsilon: float, delta: float, sensitivity: float
):
    sigma = optimal_gaussian_sigma(epsilon, delta, sensitivity) / sensitivity
    assert delta_of(sigma, epsilon) == pytest.approx(delta, rel=1e-6)
    assert delta_of(sigma * (1 - 1e-4), epsilon) > delta


def test_the_optimal_gaussian_reaches_epsilons_that_overflow():
    for epsilon in (800.0, 1e5):
        assert delta_of(optimal_gaussian_sigma(epsilon, DELTA), epsilon) == pytest.approx(
            DELTA, rel=1e-4
        )


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (math.inf, 0.1), (1, 0), (1, 1)])
def test_the_optimal_gaussian_refuses_what_it_cannot_solve(epsilon: float, delta: float):
    with pytest.raises(PrivacyError):
        optimal_gaussian_sigma(epsilon, delta)


@settings(max_examples=4)
@given(epsilon=st.floats(math.log(0.05), math.log(20)).map(math.exp), count=st.integers(1, 300))
def test_calibrated_noise_is_just_enough(epsilon: float, count: int):
    multiplier = calibrate(lambda m: {terms(m): count}, epsilon, DELTA)
    cost = spent({terms(multiplier): count}, DELTA).epsilon
    assert 0.995 * epsilon <= cost <= epsilon
    exact = optimal_gaussian_sigma(epsilon, DELTA) * math.sqrt(count)
    assert multiplier == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize(
    ("epsilon", "sampling", "count", "fixed"),
    [
        (0.05, Poisson(0.01), 1000, {terms(100): 1}),
        (1.0, Poisson(0.1), 150, {terms(30): 2}),
        (2.0, FixedSize(10, 1000), 100, {}),
    ],
)
def test_calibrated_noise_is_just_enough_for_a_sampled_plan(
    epsilon: float, sampling: Sampling, count: int, fixed: dict
):
    def plan(multiplier: float) -> dict:
        return {terms(multiplier, sampling): count, **fixed}

    cost = spent(plan(calibrate(plan, epsilon, DELTA)), DELTA).epsilon
    assert 0.995 * epsilon <= cost <= epsilon


def test_a_plan_whose_fixed_parts_cost_too_much_is_refused():
    with pytest.raises(PrivacyError, match="no amount of noise"):
        calibrate(lambda m: {terms(1): 1, terms(m): 10}, 1.0, DELTA)


def test_a_plan_that_only_the_tight_bound_admits_is_not_refused():
    fixed = optimal_gaussian_sigma(0.98, DELTA)
    assert spent({terms(fixed): 1}, DELTA).rdp > 1 > spent({terms(fixed): 1}, DELTA).epsilon

    def plan(multiplier: float) -> dict:
        return {terms(fixed): 1, terms(multiplier): 1}

    assert 0.995 <= spent(plan(calibrate(plan, 1.0, DELTA)), DELTA).epsilon <= 1


def test_an_infinite_budget_asks_for_no_noise():
    assert calibrate(lambda m: {terms(m): 1}, math.inf, DELTA) == 0


@given(
    root=st.floats(-4, 13),
    steep=st.floats(0.1, 3),
    bend=st.floats(0, 1),
    start=st.floats(-4.6, 13.8),
    jump=st.sampled_from([0.0, 0.01]),
)
def test_the_point_that_is_sought_is_never_above_and_hardly_below(root, steep, bend, start, jump):
    """Of bent lines, which are soon followed, and of lines that fall at a step."""
    asked = []

    def gap(point):
        asked.append(point)
        line = steep * (root - point)
        return line + bend * max(line, 0) ** 2 / 50 - (jump if point >= root else 0)

    found = _least(gap, start, -4.7, 13.9, 3e-4)
    assert gap(found) <= 0
    assert gap(found) >= -3e-4 or (jump and found - root < 1e-7)
    assert gap(found - 1e-6) > 0 if jump else len(asked) < 30
