"""Noise has the promised distribution, is never the same twice, and hides its low bits.

Every statistical check below fails for a correct source with probability at most 1e-8, so that all
thirteen together raise a false alarm with probability below 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.privacy.integers import SIGMAS, WIDER, count_digits
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.mechanisms.laplace import Laplace
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import FixedSize, Poisson
from fedsynth.privacy.terms import Terms

pytestmark = pytest.mark.fresh_noise
FALSE_ALARM = 1e-8
DRAWS = 200_000


def promised(mechanism: str, scale: float = 1.0) -> Terms:
    norm = norm_of(mechanism)
    kind = {"mechanism": mechanism, "norm": norm, "clip": 1.0, "noise_multiplier": scale}
    return Terms(unit="record", trust="central", **kind)


def noised(values, scale: float, mechanism: str = "gaussian", seed: int | None = None):
    return promised(mechanism, scale).noised(np.asarray(values), NoiseSource(seed))


def normal(count: int, seed: int | None = None):
    return noised(np.zeros(count), 1.0, seed=seed)


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_noise_has_the_distribution_of_its_mechanism(mechanism: str, seed: int | None):
    scale = 3.7
    noisy = noised(np.zeros(DRAWS), scale, mechanism, seed)
    law = stats.norm(scale=scale) if mechanism == "gaussian" else stats.laplace(scale=scale)
    assert stats.kstest(noisy, law.cdf).pvalue > FALSE_ALARM


def test_gaussian_noise_has_the_promised_variance():
    noisy = noised(np.full(DRAWS, 5.0), 0.3)
    statistic = float(((noisy - 5) ** 2).sum()) / (0.3 * WIDER) ** 2
    low, high = stats.chi2(DRAWS).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low < statistic < high


def test_laplace_noise_has_the_promised_scale():
    noisy = noised(np.full(DRAWS, 5.0), 0.3, "laplace")
    # Magnitudes over the scale are exponential, so twice their sum is chi-square.
    statistic = 2 * float(np.abs(noisy - 5).sum()) / 0.3
    low, high = stats.chi2(2 * DRAWS).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low < statistic < high


def test_draws_are_independent_of_their_neighbours_and_of_their_own_sign():
    draws = normal(DRAWS)
    bound = stats.norm.isf(FALSE_ALARM / 4) / math.sqrt(DRAWS)
    assert abs(np.mean(draws[1:] * draws[:-1])) < bound
    assert abs(np.mean(np.sign(draws) * (np.abs(draws) - np.abs(draws).mean()))) < bound


def test_uniforms_are_uniform():
    uniform = NoiseSource().uniform(DRAWS)
    assert stats.kstest(uniform, "uniform").pvalue > FALSE_ALARM
    assert uniform.min() > 0 and uniform.max() < 1


@pytest.mark.parametrize("word", [0, 1, 2**64 - 2, 2**64 - 1])
def test_the_most_extreme_words_give_finite_noise(word: int, monkeypatch: pytest.MonkeyPatch):
    source = NoiseSource()
    monkeypatch.setattr(source, "words", lambda n: np.full(n, word, np.uint64))
    draw = Laplace().draw(1, source)[0]
    assert np.isfinite(draw) and np.sign(draw) in (0, -1 if word & 1 else 1)
    assert abs(promised("gaussian").noised(np.zeros(1), source)[0]) < 14


def test_a_seeded_source_repeats_and_says_that_it_is_insecure():
    source = NoiseSource(7)
    assert source.insecure
    again, later = (promised("gaussian").noised(np.zeros(50), source) for _ in range(2))
    np.testing.assert_array_equal(normal(50, 7), again)
    assert not np.array_equal(again, later)
    assert not np.array_equal(normal(50, 1), normal(50, 2))


def test_the_default_source_never_repeats_whatever_numpy_is_seeded_with():
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn += [noised(np.zeros(100), 1.0, "laplace"), NoiseSource().uniform(100)]
    assert not NoiseSource().insecure
    # On a grid of a millionth of the noise single draws meet by chance; a hundred never do.
    for first, second in (drawn[::2], drawn[1::2]):
        assert np.count_nonzero(first == second) < 10


@given(scale=st.floats(1e-12, 1e12), value=st.floats(-1e3, 1e3))
def test_what_is_released_lies_on_a_public_grid_far_below_the_noise(scale: float, value: float):
    noisy = noised(np.full(20, value * scale), scale, "laplace", 0)
    grid = 2.0 ** (math.floor(math.log2(scale)) - 20)
    assert scale * 2.0**-21 < grid <= scale * 2.0**-20
    np.testing.assert_array_equal(np.remainder(noisy, grid), 0)


@given(scale=st.floats(1e-6, 1e6), value=st.floats(-100, 100))
def test_gaussian_noise_makes_whole_steps_of_a_grid_far_below_it(scale: float, value: float):
    noisy = noised(np.full(20, value * scale), scale, "gaussian", 0)
    step = promised("gaussian", scale).scale / SIGMAS[count_digits(20, scale * WIDER, 1.0) - 1]
    assert step <= scale / 500
    np.testing.assert_array_equal(noisy, np.rint(noisy / step) * step)


@given(st.lists(st.floats(-1e300, 1e300), max_size=5))
def test_no_noise_changes_nothing(values: list):
    array = np.array(values, np.float64)
    np.testing.assert_array_equal(noised(array, 0.0), array)


def test_poisson_samples_are_independent_coin_flips():
    source, rate, units, samples = NoiseSource(), 0.3, 40, 5000
    taken = np.zeros((samples, units))
    for sample in taken:
        sample[Poisson(rate).draw(units, source)] = 1
    # Each unit's own rate, all at once: sum of squared standardised counts.
    counts = taken.sum(axis=0)
    fit = float(((counts - samples * rate) ** 2).sum() / (samples * rate * (1 - rate)))
    assert fit < stats.chi2(units).isf(FALSE_ALARM)
    # Sample sizes are binomial: their variance is what independence makes it.
    sizes = taken.sum(axis=1)
    expected = stats.binom(units, rate).pmf(np.arange(units + 1)) * samples
    common = expected > 20
    observed = np.bincount(sizes.astype(int), minlength=units + 1)
    statistic = ((observed - expected)[common] ** 2 / expected[common]).sum()
    assert statistic < stats.chi2(common.sum()).isf(FALSE_ALARM)


def test_a_rate_of_one_takes_everybody():
    np.testing.assert_array_equal(Poisson(1.0).draw(1000, NoiseSource()), np.arange(1000))


def test_fixed_samples_have_their_size_and_favour_nobody():
    source, units, size, samples = NoiseSource(), 12, 5, 4000
    counts = np.zeros(units)
    for _ in range(samples):
        drawn = FixedSize(size, units).draw(units, source)
        assert len(np.unique(drawn)) == size and (np.diff(drawn) > 0).all()
        counts[drawn] += 1
    share = size / units
    # Counts of a fixed-size sample are negatively correlated: (n-1) degrees of freedom.
    variance = samples * share * (1 - share) * units / (units - 1)
    statistic = float(((counts - samples * share) ** 2).sum()) / variance
    assert statistic < stats.chi2(units - 1).isf(FALSE_ALARM)
