"""Settling: noise is shrunk, signal kept, and what comes out is a correlation matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.methods.copula.settling import nearest_correlation, shrink_correlations


def noisy_matrices(truth, noise, rng):
    """Two classes' correlations of one truth, with independent noise."""
    error = np.triu(rng.normal(scale=noise, size=(2, *truth.shape)), 1)
    return np.clip(truth + error + error.transpose(0, 2, 1), -0.99, 0.99)


def test_noise_alone_makes_hardly_any_correlation():
    raw = noisy_matrices(np.eye(12), 0.3, np.random.default_rng(0))
    shrunk = shrink_correlations(raw, np.full((2, 12), 0.3**-0.5))
    pairs = np.triu_indices(12, 1)
    assert np.abs(raw[:, *pairs]).mean() > 0.2
    assert np.abs(shrunk[:, *pairs]).mean() < 0.06


def test_settling_brings_noisy_correlations_nearer_and_keeps_exact_ones():
    rng = np.random.default_rng(1)
    truth = np.corrcoef(rng.normal(size=(10, 3)) @ rng.normal(size=(3, 50)))
    raw = noisy_matrices(truth, 0.25, rng)
    shrunk = shrink_correlations(raw, np.full((2, 10), 0.25**-0.5))
    assert np.abs(shrunk - truth).mean() < 0.6 * np.abs(raw - truth).mean()
    exact = np.stack([truth, np.eye(10)])
    np.testing.assert_allclose(shrink_correlations(exact, np.full((2, 10), 1e4)), exact, atol=0.02)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 7))
def test_the_nearest_correlation_matrix_is_one_and_leaves_one_alone(seed, width):
    rng = np.random.default_rng(seed)
    noisy = np.clip(rng.normal(scale=0.7, size=(width, width)), -0.99, 0.99)
    noisy = np.triu(noisy, 1) + np.triu(noisy, 1).T + np.eye(width)
    precisions = rng.random(width) + 0.1
    nearest = nearest_correlation(noisy, precisions)
    np.testing.assert_allclose(nearest, nearest.T, atol=1e-12)
    np.testing.assert_array_equal(np.diag(nearest), 1.0)
    assert np.linalg.eigvalsh(nearest)[0] > 5e-5
    assert np.abs(nearest).max() <= 1 + 1e-9
    factors = rng.normal(size=(width, width + 3))
    proper = np.corrcoef(factors) if width > 1 else np.ones((1, 1))
    np.testing.assert_allclose(nearest_correlation(proper, precisions), proper, atol=2e-3)


def test_the_nearest_correlation_matrix_is_highams():
    # Higham 2002, section 4: the published example.
    matrix = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])
    nearest = nearest_correlation(matrix)
    np.testing.assert_allclose(nearest[0, 1], 0.7607, atol=2e-3)
    np.testing.assert_allclose(nearest[0, 2], 0.1573, atol=2e-3)
