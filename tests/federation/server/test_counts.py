"""Sums of counts: honest ones always pass, and bounds are where normal tails put them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.federation.server.counts import FALSE_ALARM, Blocks, Total, look, most_units
from tests.federation.vectors import terms

LEVEL = FALSE_ALARM / 3


@given(
    seed=st.integers(0, 2**32 - 1),
    records=st.integers(0, 10**7),
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    scale=st.sampled_from([0.0, 0.01, 1.0, 50.0, 1e5]),
    weighted=st.booleans(),
    known=st.booleans(),
)
def test_honest_counts_have_no_fault(seed, records, widths, scale, weighted, known):
    """However few or many, of any shape: all records, and no more, are all that is allowed."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.05, 1, len(widths)) if weighted else np.ones(len(widths))
    exact = [
        rng.multinomial(records, rng.dirichlet(np.ones(n))) * w
        for n, w in zip(widths, weights, strict=True)
    ]
    values = np.concatenate(exact) + scale * rng.standard_normal(sum(widths))
    blocks = Blocks(np.cumsum([0, *widths[:-1]]), weights)
    earlier = None
    if known:
        earlier = Total(
            records + scale * rng.standard_normal(), max(scale**2, 1e-12 * (1 + records) ** 2)
        )
    total, reason = look(values, blocks, scale, records, earlier)
    assert reason is None
    assert abs(total.value - records) < 7 * math.sqrt(total.variance)


def test_a_total_is_the_inverse_variance_mean_of_the_blocks():
    # Blocks of 1 and 3 numbers: variances 4 and 12, so weights 3/4 and 1/4.
    total, _ = look(np.array([10.0, 2, 2, 2]), Blocks.of_ones(np.array([0, 1])), 2.0, math.inf)
    assert total.value == pytest.approx(0.75 * 10 + 0.25 * 6, rel=1e-6)
    assert total.variance == pytest.approx(3.0, rel=1e-6)
    both = total.with_(Total(5.0, 6.0))
    assert (both.value, both.variance) == (
        pytest.approx((9 / 3 + 5 / 6) / (1 / 3 + 1 / 6), rel=1e-6),
        pytest.approx(2.0, rel=1e-6),
    )


@pytest.mark.parametrize(("share", "found"), [(0.999, False), (1.001, True)])
def test_two_tables_may_differ_as_far_as_a_normal_difference_does(share, found):
    # The difference of the two totals has variance 100 (2 + 3), and is one normal variable.
    apart = share * stats.norm.isf(LEVEL / 2) * math.sqrt(500)
    values = np.array([500.0, 500.0, 400.0, 300.0, 300.0 + apart])
    _, reason = look(values, Blocks.of_ones(np.array([0, 2])), 10.0, math.inf)
    assert (reason is not None and "disagree" in reason) is found
    # So too where the other sum came before.
    earlier = Total(1000.0, 200.0)
    _, reason = look(values[2:], Blocks.of_ones(np.array([0])), 10.0, math.inf, earlier)
    assert (reason is not None) is found


@pytest.mark.parametrize(("share", "found"), [(0.999, False), (1.001, True)])
def test_counts_totals_and_caps_have_the_margins_of_normal_tails(share, found):
    blocks = Blocks.of_ones(np.array([0]))
    low = -share * stats.norm.isf(LEVEL / 2) * 10.0
    _, reason = look(np.array([low, 1000.0]), blocks, 10.0, math.inf)
    assert (reason == "a count is below zero") is found
    margin = share * stats.norm.isf(LEVEL / 2) * 10 * math.sqrt(2)
    _, reason = look(np.full(2, (600 + margin) / 2), blocks, 10.0, 600)
    assert (reason is not None and "more than" in reason) is found
    _, reason = look(np.full(4, -share * stats.norm.isf(LEVEL / 2) * 10 / 2), blocks, 10.0, 600)
    assert (reason is not None and "fewer than none" in reason) is found


def test_without_noise_a_single_unit_too_many_is_found():
    values = np.array([3.0, 4.0, 5.0, 3.0])
    _, reason = look(values, Blocks.of_ones(np.array([0, 2])), 0.0, math.inf)
    assert reason is not None
    _, reason = look(values[:2], Blocks.of_ones(np.array([0])), 0.0, 6)
    assert reason is not None


def test_a_client_counts_once_and_its_records_as_agreed():
    assert most_units(terms(), 4, None) == 4
    assert most_units(terms(unit="record"), 4, None) == math.inf
    assert most_units(terms(unit="record"), 4, 30) == 120
