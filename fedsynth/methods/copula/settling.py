"""Noisy correlations settled: shrunk by what noise explains, and made correlation matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The smallest eigenvalue that is kept of a noisy correlation matrix, and projections at the most.
_LEAST = 1e-4
_PROJECTIONS = 60
_ROUNDS = 8


def shrink_correlations(raw: Floats, precisions: Floats) -> Floats:
    """Correlation matrices [classes, columns, columns] from noisy ones.

    All classes together are brought to the nearest correlation matrix, which takes away part of the
    noise, and shrunk towards 0 by what is left of it; each class is then shrunk towards all
    together, by as much as the noise explains of what sets them apart (empirical Bayes).
    """
    columns = raw.shape[1]
    i, j = np.triu_indices(columns, 1)
    variances = 1 / (precisions[:, i] * precisions[:, j]) ** 2
    pairs = raw[:, i, j]
    noise = 1 / (1 / variances).sum(axis=0)
    pooled = noise * (pairs / variances).sum(axis=0)
    together = (precisions**4).sum(axis=0) ** 0.25
    signal = _excess_variance(pooled**2, noise)
    near = nearest_correlation(_symmetric(pooled, columns), together)[i, j]
    # About half of the noise is gone.
    near = near * signal / (signal + 0.5 * noise + 1e-12)
    apart = _excess_variance((pairs - near) ** 2, variances)
    shrunk = near + (pairs - near) * apart / (apart + variances + 1e-12)
    return np.stack(
        [
            nearest_correlation(_symmetric(matrix, columns), precision)
            for matrix, precision in zip(shrunk, precisions, strict=True)
        ]
    )


def _symmetric(pairs: Floats, columns: int) -> Floats:
    """The matrix of unit diagonal with these numbers above and below it."""
    i, j = np.triu_indices(columns, 1)
    matrix = np.eye(columns)
    matrix[i, j] = matrix[j, i] = pairs
    return matrix


def _excess_variance(squares: Floats, variances: Floats) -> float:
    """Mean square beyond the noise, precise pairs weighing more (DerSimonian and Laird 1986)."""
    excess = float(np.mean(squares)) if squares.size else 0.0
    for _ in range(_ROUNDS):
        if excess > 0:
            weights = 1 / (variances + excess) ** 2
            excess = max(0.0, float((weights * (squares - variances)).sum() / weights.sum()))
    return excess


def nearest_correlation(matrix: Floats, precisions: Floats | None = None) -> Floats:
    """A positive definite correlation matrix near a symmetric one of unit diagonal.

    By alternating projections with Dykstra's correction (Higham 2002, Algorithm 3.3), the distance
    weighted by ``precisions`` of rows and columns; then eigenvalues below a small positive one are
    raised to it and the diagonal is scaled to 1.
    """
    scale = np.ones(len(matrix)) if precisions is None else precisions
    scale = np.maximum(scale / max(scale.max(initial=0.0), 1e-300), 1e-3)
    weights = np.outer(scale, scale)
    near, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(_PROJECTIONS):
        if np.linalg.eigvalsh(near)[0] >= _LEAST:
            break
        target = near - correction
        positive = _raise_eigenvalues(target * weights, 0.0) / weights
        correction, near = positive - target, positive.copy()
        np.fill_diagonal(near, 1.0)
    raised = _raise_eigenvalues(near, _LEAST)
    root = np.sqrt(np.diag(raised))
    correlation: Floats = raised / np.outer(root, root)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _raise_eigenvalues(matrix: Floats, least: float) -> Floats:
    """The symmetric matrix with its eigenvalues below ``least`` raised to it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return raised
