"""Whole-number noise against sums in exact arithmetic, other accountants and the proofs' claims."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import PrivacyError
from fedsynth.privacy.integers import (
    COARSE,
    FINE,
    demand_room,
    discrete_gaussian,
    effective_multiplier,
    from_residues,
    needed_multiplier,
    to_residues,
    to_steps,
)
from fedsynth.privacy.noise import NoiseSource

WORD = 2**64


class Given(NoiseSource):
    """A source whose words are given."""

    def __init__(self, *words: list[int]) -> None:
        super().__init__(0)
        self._words = list(words)

    def words(self, count: int):
        found = np.array(self._words.pop(0), np.uint64)
        assert len(found) == count
        return found


def probabilities(sigma: float, reach: int) -> np.ndarray:
    """Of -reach..reach, as float64."""
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-(places.astype(float) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def thresholds(table) -> list[int]:
    return [int(a) << 64 | int(b) for a, b in zip(table.high, table.low, strict=True)]


@pytest.mark.parametrize("sigma", [1, 2.5, 16, 100])
def test_thresholds_are_the_distribution_to_37_digits(sigma):
    """Against exponentials of 60 digits, each taken by itself."""
    found = thresholds(discrete_gaussian(sigma))
    with localcontext(prec=60):
        weights = [
            (-(Decimal(k) ** 2) / (2 * Decimal(sigma) ** 2)).exp() for k in range(len(found) + 50)
        ]
        weights = [weights[0], *(2 * one for one in weights[1:])]
        total, below = sum(weights), Decimal(0)
        for threshold, weight in zip(found, weights, strict=False):
            below += weight
            assert abs(threshold - below / total * 2**127) < 2
    assert 2**127 - found[-1] < 16, "what is cut off is less than a draw can tell"
    assert len(found) < 14 * sigma + 4


@given(st.sampled_from([1.0, 3.0, 40.0]), st.integers(0, 2**127 - 1), st.booleans())
def test_a_uniform_number_is_looked_up_to_its_last_bit(sigma, place, negative):
    table = discrete_gaussian(sigma)
    size = sum(one <= place for one in thresholds(table))
    tied = (place >> 64) in set(table.high.tolist())
    words = [[(place >> 64) << 1 | negative], [place % WORD] if tied else []]
    assert table.draw(1, Given(*words)).tolist() == [-size if negative else size]


@given(st.sampled_from([1.0, 3.0, 40.0]), st.data())
def test_the_lower_bits_decide_where_thresholds_share_the_upper(sigma, data):
    table = discrete_gaussian(sigma)
    exact = thresholds(table)
    place = data.draw(st.sampled_from(exact)) + data.draw(st.sampled_from([-1, 0, 1]))
    place = min(place, 2**127 - 1)
    tied = (place >> 64) in set(table.high.tolist())
    found = table.draw(1, Given([(place >> 64) << 1], [place % WORD] if tied else []))
    assert found.tolist() == [sum(one <= place for one in exact)]


@pytest.mark.parametrize("sigma", [1.0, 7.0])
def test_draws_have_the_distribution(sigma):
    drawn = discrete_gaussian(sigma).draw(200_000, NoiseSource(5))
    reach = int(4 * sigma)
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)
    expected = probabilities(sigma, int(14 * sigma))
    middle = len(expected) // 2
    inner = expected[middle - reach : middle + reach + 1].copy()
    inner[[0, -1]] += (1 - inner.sum()) / 2
    assert stats.chisquare(counts, inner * len(drawn)).pvalue > 1e-3


def test_noise_of_4096_steps_is_drawn_as_wide_as_it_says():
    drawn = discrete_gaussian(2.0**COARSE).draw(200_000, NoiseSource(6))
    assert drawn.std() / 2.0**COARSE == pytest.approx(1, abs=0.008)
    assert abs(drawn.mean()) / 2.0**COARSE < 0.01


@pytest.mark.parametrize(("shares", "sigma"), [(2, 4.0), (10, 4.0), (10, 2.0)])
def test_shares_add_up_to_one_draw_of_the_whole(shares, sigma):
    """By convolving exact distributions; 2 steps are too few, and 4 are enough."""
    one = probabilities(sigma, int(12 * sigma))
    several = one
    for _ in range(shares - 1):
        several = np.convolve(several, one)
    whole = probabilities(sigma * math.sqrt(shares), len(several) // 2)
    seen = whole > 1e-9
    apart = np.abs(several[seen] / whole[seen] - 1).max()
    assert apart < (1e-12 if sigma >= 4 else 1e-9)


def test_too_few_steps_do_not_add_up():
    one = probabilities(0.7, 12)
    assert np.abs(np.convolve(one, one) - probabilities(0.7 * math.sqrt(2), 24)).max() > 1e-4


@pytest.mark.parametrize("sigma", [2.5, 3.0])
def test_discrete_noise_is_a_rounding_of_real_noise_four_narrower(sigma):
    """The convolution lemma, by integrating over the real draw: the same to 1e-12."""
    reals, gap = np.linspace(-14 * sigma, 14 * sigma, 60_001, retstep=True)
    density = stats.norm.pdf(reals, scale=math.sqrt(sigma**2 - 4)) * gap
    reach = int(10 * sigma)
    places = np.arange(-reach - 40, reach + 41)
    kernel = np.exp(-((places[:, None] - reals) ** 2) / 8)
    made = (kernel / kernel.sum(axis=0)) @ density
    assert np.abs(made - probabilities(sigma, reach + 40)).max() < 1e-12


@pytest.mark.parametrize(("sigma", "moved", "count"), [(64, 16, 1), (64, 8, 50)])
def test_the_accountants_figure_is_no_less_than_the_loss_distribution_of_one_number(
    sigma, moved, count
):
    mesh = {"value_discretization_interval": 1e-4}
    exact = pld.from_discrete_gaussian_mechanism(sigma, sensitivity=moved, **mesh)
    claimed = pld.from_gaussian_mechanism(math.sqrt(sigma**2 - 4), sensitivity=moved, **mesh)
    epsilons = [one.self_compose(count).get_epsilon_for_delta(1e-5) for one in (exact, claimed)]
    # Both are rounded up to their mesh.
    assert epsilons[0] == pytest.approx(epsilons[1], rel=2e-3)


@given(
    st.floats(0.05, 200),
    st.integers(1, 1000),
    st.integers(1, 10**6),
    st.sampled_from([FINE, COARSE]),
)
def test_the_needed_multiplier_has_the_effect_asked_for(effective, shares, touched, digits):
    try:
        noise = needed_multiplier(effective, shares, touched, digits)
    except PrivacyError:
        # All of the noise that there is, infinitely many clips, is no more.
        assert math.sqrt(shares * 4.0**digits - 4) / math.sqrt(touched) <= effective
        return
    assert noise > effective
    assert effective_multiplier(noise, shares, touched, digits) == pytest.approx(effective)


def test_rounding_costs_what_was_measured():
    """105 coordinates, three owners, multiplier 10: 0.1 % at 65,536 steps; 1.2 % for 65 thousand
    coordinates of ten owners."""
    assert 10 / effective_multiplier(10, 3, 105) - 1 == pytest.approx(0.0009, abs=1e-4)
    assert 10 / effective_multiplier(10, 10, 65_000) - 1 == pytest.approx(0.0123, abs=1e-4)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**31))
def test_rounded_neighbours_differ_by_no_more_than_the_widened_clip(touched, others, seed):
    """The largest that is found stays below S + sqrt(k), and goes beyond S."""
    generator = np.random.default_rng(seed)
    step = 0.37
    for _ in range(20):
        total = generator.normal(size=touched) * others
        row = generator.normal(size=touched)
        moved = np.linalg.norm(row) / step
        apart = np.linalg.norm(to_steps(total + row, step) - to_steps(total, step))
        assert apart <= moved + math.sqrt(touched)


@given(
    st.lists(st.lists(st.integers(-(2**60), 2**60), min_size=3, max_size=3), min_size=1, max_size=3)
)
def test_sums_modulo_two_to_the_64_are_the_sums(rows):
    total = sum(to_residues(np.array(row, np.int64)) for row in rows)
    assert from_residues(total, 1.0).tolist() == np.sum(rows, axis=0).astype(float).tolist()


def test_masks_that_cancel_leave_the_sum():
    generator = np.random.default_rng(2)
    steps = generator.integers(-1000, 1000, (2, 50))
    mask = generator.integers(0, WORD, 50, np.uint64, endpoint=False)
    total = (to_residues(steps[0]) + mask) + (to_residues(steps[1]) - mask)
    assert (from_residues(total, 0.5) == steps.sum(axis=0) / 2).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_a_sum_that_is_no_number_of_steps_is_refused(value):
    with pytest.raises(PrivacyError, match="too large for its grid"):
        to_steps(np.array([0.0, value]), 1e-3)


def test_sums_that_may_wrap_are_refused_before_anybody_is_asked():
    demand_room(1e6, 1e-3, 100, 2.0**FINE)
    with pytest.raises(PrivacyError, match="may exceed 64 bits"):
        demand_room(1e16, 1e-3, 1, 2.0**FINE)


@pytest.mark.parametrize("sigma", [0.5, 2.0**21, math.nan, math.inf])
def test_noise_that_does_not_add_up_or_fit_is_refused(sigma):
    with pytest.raises(PrivacyError, match="whole numbers"):
        discrete_gaussian(sigma)
