"""What released sums say of each class: its share, means to match, a Gaussian to begin with.

All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.methods.embedding.features import Embedding, unflatten
from fedsynth.methods.embedding.messages import Sums
from fedsynth.queries.counting import Counts
from fedsynth.queries.estimates import label_frequencies
from fedsynth.schema.target import conditions

Floats = NDArray[np.float64]

# A class whose count is within so many deviations of the noise has told nothing of its own.
_FAINT = 4.0
# Eigenvalues of a covariance below this share of what noise alone would show are noise.
_EDGE = 0.7


@dataclass(frozen=True)
class Targets:
    """What the generator is to match.

    Attributes:
        frequencies: of the classes [classes], summing to 1; empty without classes.
        moments: mean of each class's second moments, [blocks, k + 1, k + 1].
        fourier: mean of its random features, [blocks, features].
        patches: mean of the patches' over all classes, [shared].
        means, roots: of each class's few coordinates: mean [blocks, k], and the root of the
            covariance without what noise made of it, [blocks, k, k].
    """

    frequencies: Floats
    moments: Floats
    fourier: Floats
    patches: Floats
    means: Floats
    roots: Floats


def targets_of(embedding: Embedding, sums: Sums) -> Targets:
    """Means from sums and the counts among them.

    A class that hardly stands out of the noise is given the means of all classes together.
    """
    moments, fourier, patches = embedding.shares
    constant = embedding.settings.constant_share
    counted = sums.own[:, 0] / (constant * math.sqrt(moments))
    spread = sums.sigma / (constant * math.sqrt(moments))
    frequencies, total = label_frequencies(Counts(counted, spread))
    sums_by_class = sums.own.copy()
    counts = np.maximum(counted, 1e-9)
    faint = counted <= max(_FAINT * spread, 1e-6)
    # The sum over all classes has their noise too.
    sigmas = np.full(len(sums_by_class), sums.sigma)
    sums_by_class[faint], sigmas[faint] = (
        sums_by_class.sum(axis=0),
        sums.sigma * math.sqrt(len(sums_by_class)),
    )
    counts[faint] = max(total, float(counted.sum()))
    means = sums_by_class / counts[:, None]
    size = embedding.components + 1
    matrices = unflatten(means[:, : embedding.moments] / math.sqrt(moments), size)
    centres, roots = _gaussians(matrices, constant, sigmas / counts / math.sqrt(moments))
    return Targets(
        frequencies=frequencies if conditions(embedding.schema) else np.zeros(0),
        moments=matrices,
        fourier=means[:, embedding.moments :] / math.sqrt(fourier),
        patches=sums.shared / max(total, 1.0) / math.sqrt(patches or 1.0),
        means=centres,
        roots=roots,
    )


def _gaussians(matrices: Floats, constant: float, sigmas: Floats) -> tuple[Floats, Floats]:
    """Means [c, k] and roots of covariances [c, k, k] from second moments and their noise.

    Noise of standard deviation s on a symmetric matrix's diagonal, and s / sqrt(2) off it, alone
    has eigenvalues up to ``s sqrt(2 k)`` (Wigner's semicircle): smaller ones are dropped.
    """
    size = matrices.shape[1] - 1
    means = matrices[:, 0, 1:] / math.sqrt(constant * (1 - constant))
    roots = np.zeros((len(matrices), size, size))
    for i, (matrix, mean, sigma) in enumerate(zip(matrices, means, sigmas, strict=True)):
        # The mean is one of vectors of norm at most 1; noise may say otherwise.
        mean /= max(1.0, float(np.linalg.norm(mean)))
        covariance = matrix[1:, 1:] / (1 - constant) - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        edge = _EDGE * sigma / (1 - constant) * math.sqrt(2 * size)
        kept = np.where(values > edge, np.minimum(values, 1.0), 0.0)
        roots[i] = vectors * np.sqrt(kept)
    return means, roots
