"""Against SciPy where nothing is let pass, a numerical optimum where something is, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, chi2_contingency, ks_2samp

from fedsynth.evaluation.measures.shifts import (
    codes_apart,
    correct_holm,
    find_detectable,
    numbers_apart,
    rows_apart,
)


def samples(n=80, m=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(0.3, 1, size=m)


def test_without_tolerance_numbers_are_told_apart_as_scipy_does():
    first, second = samples()
    expected = ks_2samp(first, second, method="asymp")
    assert numbers_apart(first, second, (80, 120), 0) == pytest.approx(tuple(expected)[:2])


def test_a_gap_is_a_value_below_all_others():
    first, second = np.array([1.0, 2.0, np.nan, np.nan]), np.array([1.0, 2.0, 1.0, 2.0])
    assert numbers_apart(first, second, (4, 4), 0)[0] == 0.5
    gaps = np.full(3, np.nan)
    assert numbers_apart(gaps, gaps, (3, 3), 0) == (0, 1)


def test_without_tolerance_categories_are_told_apart_as_scipy_does():
    table = np.array([[30.0, 50, 20], [60, 60, 80]])
    distance, p = codes_apart(*table, (100, 200), 0)
    assert distance == pytest.approx(0.2)
    assert p == pytest.approx(chi2_contingency(table, correction=False).pvalue)


def test_to_the_test_rare_cells_are_one():
    # The last two are expected 1.5 times and once in each.
    many = codes_apart(np.array([50.0, 48, 1, 1]), np.array([40.0, 57, 2, 1]), (100, 100), 0)
    few = codes_apart(np.array([50.0, 48, 2]), np.array([40.0, 57, 3]), (100, 100), 0)
    assert many == pytest.approx(few)
    assert many[0] == pytest.approx(0.1)
    assert codes_apart(np.array([3.0, 0]), np.array([0.0, 90]), (3, 90), 0) == (1, 1)


def test_what_is_let_pass_is_taken_off_where_that_helps_most():
    first, second = np.array([60.0, 15, 15, 10]), np.array([20.0, 30, 20, 30])
    shares = np.stack([first / 100, second / 100])
    pooled, apart, tolerance = shares.mean(axis=0), shares[0] - shares[1], 0.15
    # The same least by a general optimiser: any change of the shares by so much in all.
    up, down = {"type": "eq", "fun": lambda d: d[:4].sum() - tolerance}, {
        "type": "eq", "fun": lambda d: d[4:].sum() - tolerance,
    }  # fmt: skip
    found = minimize(
        lambda d: (((apart - d[:4] + d[4:]) ** 2) / pooled).sum(),
        np.full(8, tolerance / 4),
        bounds=[(0, 1)] * 8,
        constraints=[up, down],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    _, p = codes_apart(first, second, (100, 100), tolerance)
    assert chi2.isf(p, 3) == pytest.approx(50 * found.fun, rel=1e-4)
    assert codes_apart(first, second, (100, 100), 0.4)[1] == pytest.approx(1)


@pytest.mark.parametrize("rows", [100, 3_000])
def test_what_may_be_let_pass_is_no_finding_however_many_rows(rows):
    """Populations a tolerance apart: no more than alpha of samples are told, of 100."""
    rng, told = np.random.default_rng(0), np.zeros(2)
    shares, tolerance = np.array([0.3, 0.3, 0.2, 0.2]), 0.1
    other = shares + np.array([0.05, 0.05, -0.05, -0.05])
    for _ in range(100):
        first, second = rng.multinomial(rows, shares), rng.multinomial(rows, other)
        told[0] += codes_apart(first * 1.0, second * 1.0, (rows, rows), tolerance)[1] <= 0.05
        if rows == 100:
            numbers = rng.random(rows), rng.random(rows) * 0.9
            told[1] += numbers_apart(*numbers, (rows, rows), tolerance)[1] <= 0.05
    assert (told <= 0.05 * 100).all()
    if rows == 3_000:
        found = codes_apart(first * 1.0, second * 1.0, (rows, rows), 0)
        assert found[1] < 1e-6


def test_a_distance_that_so_many_rows_show_is_one_that_they_just_show():
    sizes = (400, 600)
    least = find_detectable(sizes, 0.01, 0.05)
    first = np.linspace(0, 1, 400)
    second = np.linspace(0, 1, 600) + least + 0.01
    assert numbers_apart(first, second, sizes, 0.05)[1] < 0.01
    assert numbers_apart(first, second - 0.03, sizes, 0.05)[1] > 0.01


def test_whole_rows_that_are_two_points_are_as_far_apart_as_the_kernel_says():
    first, second = np.zeros((15, 2)), np.ones((15, 2))
    distance, p = rows_apart(first, second, 99, 0)
    # The median squared distance is the one that there is, so that the kernel between is 1 / e.
    assert distance == pytest.approx(math.sqrt(2 - 2 / math.e))
    assert p == 0.01


def test_whole_rows_of_one_population_are_not_told_apart():
    rng = np.random.default_rng(1)
    values = [
        rows_apart(rng.normal(size=(40, 3)), rng.normal(size=(40, 3)), 99, seed)[1]
        for seed in range(50)
    ]
    assert np.mean(np.array(values) <= 0.1) < 0.25
    assert rows_apart(np.zeros((5, 2)), np.zeros((5, 2)), 9, 0) == pytest.approx((0, 1), abs=1e-9)


def test_holm_corrects_as_by_hand():
    # 3 x .01; 2 x .03; the last is no less than the one before.
    assert correct_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert correct_holm([0.9, 0.8]) == [1, 1]
