"""Rank agreement against SciPy's, worked orders, and the coverage of its interval."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedsynth.evaluation.measures.agreement import SETTINGS, agreement


def names(n):
    return [f"model {i}" for i in range(n)]


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda p: (p[0] / 7, p[1] / 7)),
        min_size=3,
        max_size=14,
    )
)
def test_the_correlation_is_scipys_with_ties_at_mid_ranks(pairs):
    left, right = zip(*pairs, strict=True)
    found = agreement(names(len(pairs)), left, right)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = stats.spearmanr(left, right).statistic
    if np.isnan(expected):
        assert (found.spearman, found.low, found.high) == (None, None, None)
        assert "no order" in found.note
        return
    assert found.note is None
    assert found.spearman == pytest.approx(expected, abs=1e-12)
    assert -1 <= found.low <= found.spearman <= found.high <= 1
    assert found.low < found.high


def test_worked_orders():
    # One swap of neighbours among five: 1 - 6 * 2 / (5 * 24).
    found = agreement(names(5), [1, 2, 3, 4, 5], [0.1, 0.3, 0.2, 0.4, 0.5])
    assert found.spearman == pytest.approx(0.9)
    # z(.9) = 1.472, its deviation sqrt((1 + .405) / 2) = .838.
    assert found.low == pytest.approx(np.tanh(1.47222 - 1.959964 * 0.838153), abs=1e-5)
    assert found.high == pytest.approx(np.tanh(1.47222 + 1.959964 * 0.838153), abs=1e-5)
    turned = agreement(names(5), [5, 4, 3, 2, 1], [1, 2, 3, 4, 5])
    assert (turned.spearman, turned.low) == (-1, -1)
    assert turned.high > -0.8


def test_full_agreement_of_few_is_no_certainty():
    three = agreement(names(3), [1, 2, 3], [4, 5, 6])
    assert (three.spearman, three.low, three.high) == (1, -1, 1)
    lows = [agreement(names(n), range(n), range(n)).low for n in (4, 6, 9, 14)]
    assert lows == sorted(lows)
    assert 0 < lows[1] < 0.8
    assert lows[-1] < 1


def test_candidates_without_a_score_are_left_out():
    left, right = [0.5, None, 0.7, 0.9, 0.2], [0.4, 0.6, 0.8, None, 0.1]
    found = agreement(names(5), left, right)
    assert (found.spearman, found.n) == (1, 3)
    assert found.synthetic == tuple(left)
    assert found.real == tuple(right)
    short = agreement(names(5), [None, None, None, 0.1, 0.2], right)
    assert (short.spearman, short.n) == (None, 1)
    assert "there are 1" in short.note


@pytest.mark.parametrize(("n", "rho"), [(6, 0.0), (6, 0.8), (12, 0.5), (12, 0.9)])
def test_the_interval_covers_the_populations_correlation(n, rho):
    rng = np.random.default_rng(3)
    truth = 6 / np.pi * np.arcsin(rho / 2)  # Spearman's of two normal variables
    covered = 0
    for _ in range(200):
        pair = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
        found = agreement(names(n), pair[:, 0], pair[:, 1])
        covered += found.low <= truth <= found.high
    # Roughly 95 %; the method is known to be a little off at so few.
    assert covered / 200 > 0.91


def test_settings_are_many_and_named_apart():
    assert 8 <= len(SETTINGS) <= 12
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)


def test_scores_apart_by_rounding_are_one():
    found = agreement(names(4), [0.5, 0.5 + 1e-15, 0.5 - 1e-15, 0.5], [0.1, 0.2, 0.3, 0.4])
    assert found.spearman is None
    assert found.synthetic[1] > 0.5
