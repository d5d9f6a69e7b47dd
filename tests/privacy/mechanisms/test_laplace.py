"""Shares of Laplace noise: differences of Gamma variables, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from fedsynth.privacy.accounting import spent
from fedsynth.privacy.mechanisms.laplace import Laplace, gamma
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.terms import Terms
from tests.federation.vectors import channel, clients, ledger, terms

FALSE_ALARM = 1e-8


@pytest.mark.parametrize("shape", [1.0, 0.5, 0.1, 0.01, 0.001])
def test_gamma_variables_have_their_distribution_however_small_the_shape(shape: float):
    draws = gamma(50_000, shape, NoiseSource(1))
    # Where a draw is too small for a float64, all that is known is that it is below all of them.
    least = 1e-300
    seen = stats.gamma(shape).cdf(np.maximum(draws, least))
    bottom = special.gammainc(shape, least)
    assert stats.binomtest(int((draws <= least).sum()), 50_000, bottom).pvalue > FALSE_ALARM
    above = (seen[draws > least] - bottom) / (1 - bottom)
    assert stats.kstest(above, "uniform").pvalue > FALSE_ALARM
    # Mean and variance are the shape; the fourth cumulant 6 shapes gives the variance's error.
    error = math.sqrt(shape / 50_000)
    assert abs(draws.mean() - shape) < 6 * error
    spread = math.sqrt((6 * shape + 2 * shape**2) / 50_000)
    assert abs(draws.var() - shape) < 6 * spread


def test_the_inverse_distribution_function_alone_would_have_no_digits():
    """Why gammas are not drawn by it: it underflows for half of all uniforms at shape 1/1000."""
    assert special.gammaincinv(0.001, 0.49) < 1e-300
    assert special.gammaincinv(0.001, 0.3) == 0.0
    assert stats.gamma(0.001).cdf(1e-301) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("shares", [2, 10, 200])
def test_one_share_is_a_difference_of_gammas(shares: int):
    """Its variance is 2/n, its fourth cumulant 12/n; its characteristic function (1 + t^2)^(-1/n),
    by cosines, which unlike fourth powers have small errors: their variance is its own too."""
    draws = Laplace().share(50_000, shares, NoiseSource(2)) / math.sqrt(shares)
    variance, fourth = 2 / shares, 12 / shares + 3 * (2 / shares) ** 2
    error = math.sqrt((fourth - variance**2) / 50_000)
    assert abs((draws**2).mean() - variance) < 6 * error
    assert abs(draws.mean()) < 6 * math.sqrt(variance / 50_000)
    for t in (0.5, 1.0, 3.0, 10.0):
        mean, double = ((1 + u**2) ** (-1 / shares) for u in (t, 2 * t))
        error = math.sqrt(((1 + double) / 2 - mean**2) / 50_000)
        assert abs(np.cos(t * draws).mean() - mean) < 6 * error


@pytest.mark.parametrize(("shares", "more"), [(12, 0), (2, 3)])
def test_shares_add_up_to_laplace_noise_and_more_of_them_to_more(shares: int, more: int):
    """By the characteristic function: ``(1 + t^2)^-(answered / shares)``."""
    source, total, count = NoiseSource(3), np.zeros(10_000), 10_000
    for _ in range(shares + more):
        total += Laplace().share(count, shares, source) / math.sqrt(shares)
    t = np.array([0.3, 1.0, 2.0, 5.0])
    seen = np.cos(np.outer(t, total)).mean(axis=1)
    np.testing.assert_allclose(seen, (1 + t**2) ** -(1 + more / shares), atol=6 / math.sqrt(count))
    whole = stats.kstest(total, stats.laplace.cdf).pvalue
    assert (whole > FALSE_ALARM) if not more else True
    assert total.var() == pytest.approx(2 * (1 + more / shares), rel=0.1)


@pytest.mark.parametrize(("trust", "survivors"), [("distributed", 3), ("distributed", 5)])
def test_a_released_sum_carries_laplace_noise_and_costs_what_it_says(trust: str, survivors: int):
    dim = 20_000
    kind = terms(
        norm="l1", mechanism="laplace", trust=trust, survivors=survivors, noise_multiplier=1.5
    )
    account = ledger("client", trust=trust, insecure=True)
    released = channel(clients(5, dim, value=0.0), account, seed=4).sum("test-vectors", kind, dim)
    scaled = released.value / 1.5
    if survivors == 5:
        assert stats.kstest(scaled, stats.laplace.cdf).pvalue > FALSE_ALARM
    assert scaled.std() == pytest.approx(math.sqrt(2 * 5 / survivors), rel=0.05)
    pure = Terms(**{**kind.__dict__, "trust": "central", "survivors": 1})
    assert account.spent().epsilon == spent({pure: 1}, 1e-5).epsilon <= 1 / 1.5 + 1e-3


@pytest.mark.parametrize("word", [0, 1, 2**64 - 2, 2**64 - 1])
@pytest.mark.parametrize("shares", [1, 3, 100_000])
def test_the_most_extreme_words_give_finite_shares(word: int, shares: int, monkeypatch):
    source = NoiseSource()
    monkeypatch.setattr(source, "words", lambda n: np.full(n, word, np.uint64))
    assert np.isfinite(gamma(3, 1 / shares, source)).all()
    assert np.isfinite(Laplace().share(3, shares, source)).all()
