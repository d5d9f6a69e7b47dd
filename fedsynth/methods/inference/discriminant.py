"""Class moments as a classifier (Fisher's linear discriminant) and as a generator's profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedsynth.methods.inference.coordinates import Floats
from fedsynth.methods.inference.statistic import Statistic
from fedsynth.queries.counting import Counts
from fedsynth.queries.estimates import label_frequencies

_FLOOR = 0.25
"""Least variance that a classifier counts on, of the noise's norm: shrinkage has dealt with the
rest. Of .1 to 2 it is among the best on wdbc and iris at epsilon .5 to 15."""


@dataclass(frozen=True)
class Classes:
    """Moments of the coordinates within classes; one class where there are none to tell apart.

    Attributes:
        frequencies: [classes], summing to 1.
        means: [classes, width], in [-1, 1].
        covariances: positive semidefinite, [classes or 1, width, width].
        floor: what the norm of the noise in a covariance hardly exceeds, [classes or 1].
    """

    frequencies: Floats
    means: Floats
    covariances: Floats
    floor: Floats

    def covariance(self, index: int) -> Floats:
        return np.asarray(self.covariances[min(index, len(self.covariances) - 1)])

    def noise(self, index: int) -> float:
        return float(self.floor[min(index, len(self.floor) - 1)])


def classes_of(statistic: Statistic, values: Floats, sigma: float) -> Classes:
    """From the released values ``[dim]`` with noise ``sigma`` in each.

    A class smaller than its noise is shrunk towards all together, by as many records as one
    standard deviation of the noise in a count.
    """
    counts, sums = statistic.first(values)
    deviation = sigma * float(np.sqrt(statistic.noise_variances()[0, 0] / len(counts)))
    frequencies, records = label_frequencies(Counts(counts, deviation))
    held = frequencies * records
    together = np.clip(sums.sum(axis=0) / records, -1, 1)
    means = (sums + deviation * together) / np.maximum(held + deviation, 1e-9)[:, None]
    means = np.where(held[:, None] > 0, np.clip(means, -1, 1), together)
    second = statistic.second(values)
    each = sigma * statistic.clip**2
    if not statistic.by_class:
        within = second[0] - (means * held[:, None]).T @ means
        covariances, sizes = within[None] / records, np.array([records])
    else:
        within = second - held[:, None, None] * means[:, :, None] * means[:, None, :]
        sizes = np.maximum(held, max(1.0, deviation))
        scatter = within / sizes[:, None, None]
        covariances = _shrink(scatter, within.sum(axis=0) / records, each / sizes)
    floors = each * np.sqrt(2 * statistic.width) / sizes
    cleared = [_denoise(c, each / size) for c, size in zip(covariances, sizes, strict=True)]
    return Classes(frequencies, means, np.stack(cleared), floors)


def _shrink(covariances: Floats, pooled: Floats, deviations: Floats) -> Floats:
    """Each class's covariance [classes, width, width], shrunk towards the pooled one.

    By the share that noise has in their squared distance (James and Stein 1961).

    Args:
        deviations: of the noise in a cell of the diagonal, [classes].
    """
    width = pooled.shape[0]
    noise = deviations**2 * width * (width + 1) / 2
    distances = ((covariances - pooled) ** 2).sum(axis=(1, 2))
    share = np.minimum(1.0, noise / np.maximum(distances, 1e-300))
    return np.asarray(covariances + share[:, None, None] * (pooled - covariances))


def _denoise(covariance: Floats, deviation: float) -> Floats:
    """The positive semidefinite matrix that symmetric noise has most likely hidden.

    Noise alone has eigenvalues up to an edge e, and lengthens those beyond it while it turns their
    vectors, so that ``sqrt(l^2 - e^2)`` loses least of what is there (optimal shrinkage; Donoho,
    Gavish, Johnstone 2018). What is left of each coordinate's variance is given back, shrunk
    towards what is left of all. Without noise nothing changes.

    Args:
        deviation: of the noise in a cell of the diagonal.
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    edge = deviation * np.sqrt(2 * len(values))
    shrunk = np.sqrt(np.maximum(np.maximum(values, 0) ** 2 - edge**2, 0))
    denoised = (vectors * shrunk) @ vectors.T
    left = np.diag(covariance) - np.diag(denoised)
    if len(left):
        spread = float(((left - left.mean()) ** 2).mean())
        left = left + min(1.0, deviation**2 / max(spread, 1e-300)) * (left.mean() - left)
    return np.asarray(denoised + np.diag(np.maximum(left, 0)))


def discriminate(classes: Classes, v: Floats) -> Floats:
    """Probabilities of the classes [n, classes] of coordinates [n, width].

    Linear discriminant analysis: one covariance for all, the classes' mean one. Directions whose
    variance the noise may have made up are given part of its size. That hides how far apart the
    classes are, so it is measured again in the few directions in which they differ, where noise
    adds up less.
    """
    weights = classes.frequencies if len(classes.covariances) > 1 else np.ones(1)
    pooled = np.tensordot(weights, classes.covariances, axes=1)
    floor = _FLOOR * float(weights @ classes.floor)
    middle = classes.frequencies @ classes.means
    apart = classes.means - middle
    directions, sizes, _ = np.linalg.svd(_inverse(pooled, floor) @ apart.T, full_matrices=False)
    axes = directions[:, sizes > 1e-10 * sizes.max(initial=0.0)]
    share = np.sqrt(max(1, axes.shape[1]) / max(1, len(pooled)))
    apart = apart @ axes
    slopes = apart @ _inverse(axes.T @ pooled @ axes, floor * share)
    priors = np.log(np.maximum(classes.frequencies, 1e-300))
    scores = (v - middle) @ axes @ slopes.T - 0.5 * (slopes * apart).sum(axis=1) + priors
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _inverse(covariance: Floats, floor: float) -> Floats:
    """With every variance at least the floor; directions of none are left out."""
    values, vectors = np.linalg.eigh(covariance)
    held = np.maximum(values, floor)
    kept = held > 1e-12 * held.max(initial=0.0)
    return np.asarray((vectors[:, kept] / held[kept]) @ vectors[:, kept].T)
