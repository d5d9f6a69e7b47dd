"""Rows from class moments, column by column.

A jointly normal vector is a chain of regressions: each column given those before. Here every column
is drawn from its conditional mean and variance given the *decoded* columns before, so that what is
kept of a category is its share, not where a normal score falls: means and covariances of the
indicators are the released ones, as far as probabilities stay within [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.methods.inference.coordinates import (
    CategoryPart,
    Coordinates,
    Floats,
    NumberPart,
    Part,
)
from fedsynth.methods.inference.discriminant import Classes
from fedsynth.methods.sampling.labels import draw_codes

_INSIDE, _LEAST, _MOST_GAPS = 1 - 1e-9, 1e-12, 0.999


@dataclass(frozen=True)
class Link:
    """A column of one class given those before: ``mean + (before - means before) @ slopes``.

    Attributes:
        part: the column's coordinates.
        mean: [width].
        slopes: [coordinates before, width].
        variance: of a number, where there is one, around its conditional mean.
    """

    part: Part
    mean: Floats
    slopes: Floats
    variance: float


@dataclass(frozen=True)
class Generator:
    """Draws rows of each class.

    Attributes:
        coordinates: of the columns.
        chains: of every class, links from the first column to the last.
    """

    coordinates: Coordinates
    chains: tuple[tuple[Link, ...], ...]

    @classmethod
    def of(cls, coordinates: Coordinates, classes: Classes) -> Generator:
        known = [
            _slopes(coordinates, classes.covariance(index), classes.noise(index))
            for index in range(len(classes.covariances))
        ]
        chains = []
        for index, mean in enumerate(classes.means):
            slopes = known[min(index, len(known) - 1)]
            chains.append(_chain(coordinates, mean, classes.covariance(index), slopes))
        return cls(coordinates, tuple(chains))

    def draw(self, labels: NDArray[np.int64], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Columns of one row for each class in ``labels`` [n], as `Conformed.columns`."""
        columns: dict[str, NDArray[Any]] = {
            part.column.name: np.zeros(
                len(labels), np.int64 if isinstance(part, CategoryPart) else np.float64
            )
            for part in self.coordinates.parts
        }
        for index in np.unique(labels):
            at = labels == index
            for name, values in self._sample(self.chains[index], int(at.sum()), rng).items():
                columns[name][at] = values
        return columns

    def _sample(
        self, chain: tuple[Link, ...], rows: int, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {}
        deviations = np.zeros((rows, self.coordinates.width))
        for link in chain:
            part = link.part
            expected = link.mean + deviations[:, : part.start] @ link.slopes
            values = (
                _category(part, expected, rng)
                if isinstance(part, CategoryPart)
                else _number(part, expected, link.variance, rng)
            )
            here = slice(part.start, part.start + part.width)
            deviations[:, here] = part.encode(values) - link.mean
            columns[part.column.name] = values
        return columns


def _slopes(coordinates: Coordinates, covariance: Floats, floor: float) -> list[Floats]:
    """Of every part on the coordinates before it."""
    # Directions of less variance than the noise would be followed without being known.
    shrunk = covariance + max(floor, 1e-9) * np.eye(len(covariance))
    slopes = []
    for part in coordinates.parts:
        here, before = slice(part.start, part.start + part.width), slice(0, part.start)
        slopes.append(np.asarray(np.linalg.solve(shrunk[before, before], covariance[before, here])))
    return slopes


def _chain(
    coordinates: Coordinates, mean: Floats, covariance: Floats, slopes: list[Floats]
) -> tuple[Link, ...]:
    links = []
    for part, slope in zip(coordinates.parts, slopes, strict=True):
        means = mean[part.start : part.start + part.width]
        variance = 0.0
        if isinstance(part, NumberPart) and part.varies:
            whole = float(covariance[part.start, part.start])
            explained = float(covariance[part.start, : part.start] @ slope[:, 0])
            # A gap counts as 0: what that adds to the variance is no variance of values.
            there = 1 - float(np.clip(means[-1], 0, _MOST_GAPS)) if part.column.missing else 1.0
            gaps = (1 - there) * (float(means[0]) ** 2 + explained) / there**2
            variance = max(0.0, (whole - explained) / there - gaps)
        links.append(Link(part, means, slope, variance))
    return tuple(links)


def _category(part: CategoryPart, expected: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Levels with the probabilities that their indicators' means are."""
    chances = np.maximum(1 / part.levels + expected @ part.basis.T, 0.0)
    levels = draw_codes(chances, rng)
    return np.where(levels >= len(part.column.categories), -1, levels).astype(np.int64)


def _number(
    part: NumberPart, expected: Floats, variance: float, rng: np.random.Generator
) -> Floats:
    """Values around their conditional means, and gaps by their probabilities."""
    rows = len(expected)
    values = np.full(rows, part.middle)
    gap = np.clip(expected[:, -1], 0, 1) if part.column.missing else np.zeros(rows)
    if part.varies:
        mean = expected[:, 0] / (1 - np.minimum(gap, _MOST_GAPS))
        values = part.middle + part.half * _sample_bounded(mean, variance, rng)
    return np.where(rng.random(rows) < gap, np.nan, values)


def _sample_bounded(mean: Floats, variance: float, rng: np.random.Generator) -> Floats:
    """Draws from [-1, 1] with given means and variances: beta, close to normal far from the bounds.

    A normal draw clamped to the bounds would have another mean and variance.
    """
    middle = np.clip(mean, -_INSIDE, _INSIDE)
    most = 1 - middle**2
    share = np.clip(variance / most, _LEAST, _INSIDE)
    strength = 1 / share - 1
    draws = rng.beta(strength * (1 + middle) / 2, strength * (1 - middle) / 2)
    return np.asarray(2 * draws - 1)
