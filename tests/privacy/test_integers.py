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
from fedsynth.privacy import integers
from fedsynth.privacy.integers import (
    SIGMA,
    add_noise,
    demand_room,
    discrete_gaussian,
    from_residues,
    to_residues,
    to_steps,
    widened,
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


@pytest.mark.parametrize("sigma", [1.0, 40.0, 512.0])
def test_looking_up_by_the_first_bits_finds_what_a_search_finds(sigma):
    table = discrete_gaussian(sigma)
    ends = table.high[:: max(1, len(table.high) // 500)]
    near = np.concatenate([ends, ends - np.uint64(1), ends + np.uint64(1)])
    upper = np.concatenate([near[near < 2**63], NoiseSource(1).words(5_000) >> np.uint64(1)])
    assert (table._find(upper) == np.searchsorted(table.high, upper, side="left")).all()


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


def test_a_draw_of_two_tables_is_one_of_the_whole():
    """256 a + b as :func:`add_noise` has it, made small: 6 a + b, whose s_a s_b / s is 2 too."""
    fine, stride = 12.0, 6
    whole = fine * 6.0
    coarse = math.sqrt(whole**2 - fine**2) / stride
    assert coarse * fine / whole == pytest.approx(2, abs=0.03)
    reach = int(12 * coarse)
    spread = np.zeros(2 * reach * stride + 1)
    spread[::stride] = probabilities(coarse, reach)
    made = np.convolve(spread, probabilities(fine, int(12 * fine)))
    true = probabilities(whole, len(made) // 2)
    seen = true > 1e-10
    assert np.abs(made[seen] / true[seen] - 1).max() < 1e-12


def test_the_parts_of_a_draw_make_up_its_variance_and_overlap_enough():
    assert (integers._STRIDE * integers._COARSE) ** 2 + integers._FINE**2 == SIGMA**2
    assert integers._COARSE * integers._FINE / SIGMA >= 1.9999


def test_noise_is_as_wide_as_it_says_and_lands_on_every_step():
    drawn = add_noise(np.zeros(400_000, np.int64), NoiseSource(6))
    assert drawn.std() / SIGMA == pytest.approx(1, abs=0.005)
    assert abs(drawn.mean()) / SIGMA < 0.007
    assert stats.kstest(drawn / SIGMA, "norm").pvalue > 1e-3
    last = np.bincount(drawn % 256, minlength=256)
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


@given(st.floats(0.01, 1e4), st.integers(1, 1000), st.integers(1, 10**8))
def test_widened_noise_is_worth_what_the_accountant_was_told(noise, shares, touched):
    """Steps of the sum's noise, less 4 in variance, over steps of the clip once it is rounded."""
    try:
        wide = widened(noise, shares, touched)
    except PrivacyError:
        # All of the noise that there is, infinitely many clips, would not do.
        assert SIGMA * math.sqrt(shares / touched) <= noise * (1 + 1e-9)
        return
    clip = SIGMA * math.sqrt(shares) / wide
    worth = math.sqrt(shares * SIGMA**2 - 4) / (clip + math.sqrt(touched))
    assert wide > noise and noise * (1 - 1e-9) <= worth <= noise * (1 + 1e-9)


def test_colluding_owners_are_left_with_no_less_than_their_part_of_the_worth():
    """Others than one of three: sqrt(2/3) of the multiplier, whatever the grid."""
    noise, shares, touched = 3.0, 3, 500
    clip = SIGMA * math.sqrt(shares) / widened(noise, shares, touched)
    for others in (1, 2):
        worth = math.sqrt(others * SIGMA**2 - 4) / (clip + math.sqrt(touched))
        assert worth >= noise * math.sqrt(others / shares) * (1 - 1e-12)


def test_rounding_costs_what_was_measured():
    """105 coordinates, three owners, multiplier 10: 0.1 % at 65,536 steps; 1.2 % for 65 thousand
    coordinates of ten owners."""
    assert widened(10, 3, 105) / 10 - 1 == pytest.approx(0.0009, abs=1e-4)
    assert widened(10, 10, 65_000) / 10 - 1 == pytest.approx(0.0125, abs=1e-4)


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
    demand_room(1e6, 1e-3, 100)
    with pytest.raises(PrivacyError, match="may exceed 64 bits"):
        demand_room(1e16, 1e-3, 1)
