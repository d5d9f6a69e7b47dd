"""Whole-number noise against sums in exact arithmetic, other accountants and the proofs' claims."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import PrivacyError
from fedsynth.privacy import integers
from fedsynth.privacy.aliases import discrete_gaussian
from fedsynth.privacy.integers import (
    SIGMAS,
    WIDER,
    add_noise,
    count_digits,
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


def outcomes(table) -> list[int]:
    """How many of 2**127 uniform numbers give each size."""
    parts = [int(a) << 64 | int(b) for a, b in zip(table.high, table.low, strict=True)]
    found = list(parts)
    for part, other in zip(parts, table.alias.tolist(), strict=True):
        found[other] += 2**114 - part
    return found


@pytest.mark.parametrize("sigma", [1, 512])
def test_every_size_has_its_probability_to_37_digits(sigma):
    """Against exponentials of 45 digits, each taken by itself."""
    found = outcomes(discrete_gaussian(sigma))
    assert sum(found) == 2**127
    with localcontext(prec=45):
        width = 2 * Decimal(sigma) ** 2
        weights = [(-(Decimal(k) ** 2) / width).exp() for k in range(len(found))]
        weights = [weights[0], *(2 * one for one in weights[1:])]
        total = sum(weights)
        for size, (count, weight) in enumerate(zip(found, weights, strict=True)):
            # What rounding down leaves over goes to nothing.
            assert abs(count - weight / total * 2**127) < (2 if size else len(found))
    # Beyond the slots lies less than a draw can tell.
    assert stats.norm.sf(len(found) / sigma) < 2.0**-127


def draw_at(table, slot: int, place: int, *, negative: bool = False) -> int:
    """What a uniform number of 114 bits gives in a slot."""
    word = slot | negative << 13 | place >> 64 << 14
    tied = place >> 64 == int(table.high[slot])
    return int(table.draw(1, Given([word], [place % WORD] if tied else []))[0])


@given(st.sampled_from([1.0, 512.0]), st.integers(0, 2**13 - 1), st.data(), st.booleans())
def test_a_uniform_number_is_held_against_a_threshold_to_its_last_bit(sigma, slot, data, negative):
    table = discrete_gaussian(sigma)
    threshold = int(table.high[slot]) << 64 | int(table.low[slot])
    near = [place for place in (threshold - 1, threshold, threshold + 1) if 0 <= place < 2**114]
    place = data.draw(st.sampled_from(near) | st.integers(0, 2**114 - 1))
    size = slot if place < threshold else int(table.alias[slot])
    assert draw_at(table, slot, place, negative=negative) == (-size if negative else size)


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


def test_a_draw_of_two_digits_is_one_of_the_whole():
    """255 a + b as :func:`add_noise` has it, made small: 5 a + b, of 10 steps each, s_a s_b / s of
    1.96 and less than there."""
    sigma, stride = 10.0, 5
    reach = int(12 * sigma)
    spread = np.zeros(2 * reach * stride + 1)
    spread[::stride] = probabilities(sigma, reach)
    made = np.convolve(spread, probabilities(sigma, reach))
    true = probabilities(math.hypot(stride * sigma, sigma), len(made) // 2)
    seen = true > 1e-10
    assert np.abs(made[seen] / true[seen] - 1).max() < 1e-12


def test_digits_make_up_their_variance_and_overlap_enough():
    for before, after in itertools.pairwise(SIGMAS):
        assert after**2 == pytest.approx((integers._STRIDE * before) ** 2 + SIGMAS[0] ** 2)
        assert before * SIGMAS[0] / after >= 2


@pytest.mark.parametrize(("count", "scale", "digits"), [(20_000, 1e-3, 1), (40_000, 30.0, 3)])
def test_noise_is_as_wide_as_it_says_and_lands_on_every_step(count, scale, digits):
    clip, source, several = 7.0, NoiseSource(6), 200_000 // count
    assert count_digits(count, scale, clip) == digits
    drawn = np.concatenate(
        [add_noise(np.zeros(count), scale, clip, source) for _ in range(several)]
    )
    sigma = SIGMAS[digits - 1]
    steps = drawn / scale * sigma
    assert np.abs(steps - np.rint(steps)).max() < 1e-6
    assert drawn.std() / scale == pytest.approx(1, abs=0.007)
    assert stats.kstest(drawn / scale, "norm").pvalue > 1e-3
    last = np.bincount(np.rint(steps).astype(int) % 16, minlength=16)
    assert stats.chisquare(last).pvalue > 1e-3


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


@given(st.floats(1e-3, 1e3), st.integers(1, 1000), st.integers(1, 10**8), st.floats(1e-6, 1e6))
def test_noise_is_worth_at_least_what_its_multiplier_says(noise, shares, count, clip):
    """Steps of the noise that all shares make up, less 4 in variance, over steps of the clip once
    it is rounded: by a step in every number, and a quarter of one for a quotient in floating point.
    Of two parts that are noised apart, too."""
    share = noise * clip * WIDER / math.sqrt(shares)
    sigma = SIGMAS[count_digits(count, share, clip) - 1]
    for parts in (1, 2):
        moved = clip / share * sigma + 1.25 * math.sqrt(parts * count)
        assert math.sqrt(shares * sigma**2 - 4) / moved >= noise


@given(st.floats(1e-3, 1e3), st.integers(2, 30), st.integers(1, 10**6))
def test_colluding_owners_are_left_with_at_least_their_part_of_the_worth(noise, shares, count):
    share = noise * WIDER / math.sqrt(shares)
    sigma = SIGMAS[count_digits(count, share, 1.0) - 1]
    for others in {1, shares - 1}:
        worth = math.sqrt(others * sigma**2 - 4) / (sigma / share + 1.25 * math.sqrt(count))
        assert worth >= noise * math.sqrt(others / shares)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**31))
def test_rounded_neighbours_differ_by_no_more_than_a_step_in_each_number_more(
    touched, others, seed
):
    generator = np.random.default_rng(seed)
    for _ in range(20):
        total = generator.normal(size=touched) * others
        row = generator.normal(size=touched)
        apart = np.linalg.norm(np.rint((total + row) / 0.37) - np.rint(total / 0.37))
        assert apart <= np.linalg.norm(row) / 0.37 + math.sqrt(touched)


def test_a_sum_beyond_the_grid_is_held_at_its_end_whether_it_is_there_being_secret():
    ends = add_noise(np.array([1e30, -1e300, 1e30]), 1.0, 1.0, NoiseSource(0))
    step = 1.0 / SIGMAS[count_digits(3, 1.0, 1.0) - 1]
    np.testing.assert_allclose(ends / step, np.array([1, -1, 1]) * 2.0**50, rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_sum_that_is_no_number_is_refused(value):
    with pytest.raises(PrivacyError, match="not finite"):
        add_noise(np.array([0.0, value]), 1.0, 1.0, NoiseSource(0))


def test_noise_for_which_no_grid_is_fine_enough_is_refused():
    with pytest.raises(PrivacyError, match="too much"):
        add_noise(np.zeros(10_000), 1e9, 1.0, NoiseSource(0))
