"""The exact epsilon of Gaussian releases, against its definition."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from fedsynth.privacy.accounting import spent
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.verify import gaussian
from fedsynth.privacy.verify.charges import Charge
from tests.charges import charges_of


@settings(max_examples=30)
@given(noise=st.floats(0.3, 100), more=st.floats(0.3, 100), count=st.integers(1, 50))
def test_the_hockey_stick_divergence_at_epsilon_is_delta(noise: float, more: float, count: int):
    """Between N(0, 1) and N(mu, 1) by quadrature, both ways the same."""
    delta = 1e-5
    counts = Counter({Charge("gaussian", noise): count})
    counts[Charge("gaussian", more)] += 1
    found = gaussian.epsilon(counts, delta)
    assert found is not None
    mu = math.sqrt(sum(n / charge.noise**2 for charge, n in counts.items()))
    start = found / mu + mu / 2

    def lost(x: float) -> float:
        # Densities by hand: SciPy's take most of a quadrature.
        return (math.exp(-((x - mu) ** 2) / 2) - math.exp(found - x**2 / 2)) / math.sqrt(math.tau)

    divergence, _ = quad(lost, start, max(start, mu) + 12, epsabs=1e-12)
    if found > 0:
        assert divergence == pytest.approx(delta, rel=1e-3)
    else:
        assert divergence <= delta * (1 + 1e-3)


@pytest.mark.parametrize("noise", [0.6, 1.0, 5.0, 40.0])
def test_the_loss_distribution_finds_the_same(noise: float):
    def terms(multiplier: float) -> Terms:
        return Terms(unit="client", trust="central", clip=1.0, noise_multiplier=multiplier)

    counts = {terms(noise): 3, terms(2 * noise): 1}
    found = gaussian.epsilon(charges_of(counts), 1e-5)
    assert found == pytest.approx(spent(counts, 1e-5).pld, abs=1e-3)


@pytest.mark.parametrize(
    "other",
    [
        Charge("gaussian", 1.0, sampling="poisson", rate=0.5),
        Charge("gaussian", 1.0, sampling="fixed-size"),
        Charge("laplace", 1.0),
        Charge("gaussian", 0.0),
    ],
)
def test_samples_and_other_noise_are_left_to_others(other: Charge):
    assert gaussian.epsilon({Charge("gaussian", 1.0): 1, other: 1}, 1e-5) is None
