"""What is left of class moments under noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from fedsynth.data.tables import conform
from fedsynth.methods.inference.discriminant import _denoise, _shrink
from fedsynth.methods.inference.generator import _sample_bounded
from fedsynth.methods.inference.synthesizer import FedInfer
from fedsynth.privacy.budget import Budget
from tests.methods.inference.clinics import EXACT, SCHEMA, owners, table


def symmetric_noise(rng, width, deviation):
    """A square of independent cells, its mirror image averaged in: as the released blocks have."""
    square = deviation * rng.standard_normal((width, width))
    return (square + square.T) / 2


def spiked(rng, width):
    """A covariance of two strong directions above a small variance of each coordinate."""
    strong = rng.normal(0, 1, (width, 2))
    return strong @ strong.T / width + np.diag(rng.uniform(0, 0.05, width))


def test_a_covariance_without_noise_is_left_as_it_is():
    covariance = spiked(np.random.default_rng(0), 12)
    np.testing.assert_allclose(_denoise(covariance, 0.0), covariance, atol=1e-12)


@pytest.mark.parametrize("deviation", [0.02, 0.1, 0.4])
def test_clearing_brings_a_noisy_covariance_nearer_to_the_true_one(deviation):
    rng = np.random.default_rng(1)
    before, after = [], []
    for _ in range(20):
        true = spiked(rng, 30)
        noisy = true + symmetric_noise(rng, 30, deviation)
        cleared = _denoise(noisy, deviation)
        assert np.linalg.eigvalsh(cleared)[0] > -1e-12
        before.append(np.linalg.norm(noisy - true))
        after.append(np.linalg.norm(cleared - true))
    assert np.mean(after) < 0.75 * np.mean(before)
    sums = [np.trace(_denoise(true + symmetric_noise(rng, 30, 0.1), 0.1)) for _ in range(20)]
    assert np.mean(sums) == pytest.approx(np.trace(true), rel=0.15)


def test_classes_that_differ_by_noise_alone_share_a_covariance():
    rng = np.random.default_rng(2)
    pooled = spiked(rng, 10)
    alike = np.stack([pooled + symmetric_noise(rng, 10, 0.1) for _ in range(2)])
    unlike = np.stack([pooled, 5 * pooled])
    deviations = np.full(2, 0.1)
    drawn = _shrink(alike, pooled, deviations) - pooled
    assert np.abs(drawn).max() < 0.5 * np.abs(alike - pooled).max()
    np.testing.assert_allclose(_shrink(unlike, 3 * pooled, deviations), unlike, rtol=0.2, atol=0.1)
    np.testing.assert_allclose(_shrink(unlike, 3 * pooled, 0 * deviations), unlike)


def test_noise_blurs_a_classifier_and_does_not_blind_it():
    tables, test = owners(1000, 1000), table(500, seed=9)
    truth = (test["outcome"] == "ill").to_numpy()
    scores = []
    for seed in range(5):
        budget = Budget(epsilon=1.0, delta=1e-5, trust="central")
        synth = FedInfer(SCHEMA).fit(tables, budget, insecure_noise_seed=seed)
        chances = synth.probabilities(test)[:, 1]
        assert ((chances >= 0) & (chances <= 1)).all()
        scores.append(((chances > 0.5) == truth).mean())
    # The larger class alone would give .7.
    assert np.mean(scores) > 0.97


def test_records_to_classify_are_shortened_as_those_learned_from():
    pooled = table(200)
    synth = FedInfer(SCHEMA, clip=0.3).fit([pooled], EXACT)
    conformed = conform(pooled, SCHEMA, "t")
    v = synth.statistic.coordinates.matrix(conformed.columns, 200)
    norms = np.linalg.norm(v, axis=1, keepdims=True)
    short = v * np.minimum(1, synth.statistic.clip / norms)
    assert (norms > synth.statistic.clip).any()
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(short, conformed.columns["outcome"])
    probabilities = synth.probabilities(pooled)
    np.testing.assert_allclose(probabilities, peer.predict_proba(short), atol=1e-6)


@pytest.mark.parametrize(
    ("mean", "variance"), [(0.0, 0.01), (0.3, 0.2), (-0.95, 0.05), (0.999, 1e-4)]
)
def test_bounded_draws_have_their_mean_and_variance(mean, variance):
    draws = _sample_bounded(np.full(200_000, mean), variance, np.random.default_rng(0))
    assert np.abs(draws).max() <= 1
    assert draws.mean() == pytest.approx(mean, abs=4 * math.sqrt(variance / 200_000))
    assert draws.var() == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("mean", [-3.0, -1.0, 0.0, 1.0, 7.0])
@pytest.mark.parametrize("variance", [0.0, 1e-20, 0.5, 1.0, 40.0])
def test_any_mean_and_variance_can_be_drawn_from(mean, variance):
    draws = _sample_bounded(np.full(50, mean), variance, np.random.default_rng(0))
    assert (np.abs(draws) <= 1).all()
