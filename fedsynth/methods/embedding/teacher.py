"""Which class an image is of, by the released Gaussians: what drawn images are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.methods.embedding.generator import Generator

Floats = NDArray[np.float64]

# Variance of a coordinate where a class's moments did not stand out of their noise.
_FLOOR = 0.002
# Draws of a Gaussian are more alike than what it was fitted to: noise of more than its own spread
# reaches images that a classifier would otherwise never see.
_SPREADS = (1.0, 1.5, 1.9)
_AGAIN = 6


@dataclass(frozen=True)
class Teacher:
    """A quadratic discriminant of few coordinates.

    Attributes:
        means: of each class, [c, k].
        directions: unit vectors of each class's variances, [c, k, k], 0 where nothing was told.
        variances: along them, [c, k], at least the floor.
        priors: shares of the classes, [c].
    """

    means: Floats
    directions: Floats
    variances: Floats
    priors: Floats

    @staticmethod
    def of(
        means: NDArray[np.floating[Any]],
        roots: NDArray[np.floating[Any]],
        priors: NDArray[np.floating[Any]],
    ) -> Teacher:
        """From means [c, k] and roots of covariances with orthogonal columns [c, k, k]."""
        sizes = np.sqrt((roots.astype(np.float64) ** 2).sum(axis=1))
        told = sizes > 0
        scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=told)
        return Teacher(
            means=means.astype(np.float64),
            directions=roots * scale[:, None, :],
            variances=np.maximum(sizes**2, _FLOOR),
            priors=priors.astype(np.float64),
        )

    def scores(self, vectors: Floats) -> Floats:
        """Log densities and priors [n, c] of few coordinates [n, k], up to a constant."""
        scores = np.zeros((len(vectors), len(self.means)))
        with np.errstate(divide="ignore"):
            logs = np.log(self.priors)
        for code, mean in enumerate(self.means):
            apart = vectors - mean
            along = (apart @ self.directions[code]) ** 2
            variances = self.variances[code]
            # What stands across all directions has the floor's variance.
            distance = (apart**2).sum(axis=1) / _FLOOR + along @ (1 / variances - 1 / _FLOOR)
            scores[:, code] = logs[code] - (distance + np.log(variances).sum()) / 2
        return scores

    def classes_of(self, vectors: Floats) -> NDArray[np.int64]:
        """The likeliest class [n] of few coordinates [n, k]."""
        return np.asarray(self.scores(vectors).argmax(axis=1), np.int64)


def draw_spreads(
    generator: Generator, classes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Factors at least 1 of the noise of draws, float32 [n], of classes [n].

    Coordinates have norm below 1, so a class's variance and its mean's square sum to less than 1.
    Released ones may exceed that by their noise, and draws are then wide already: the factors are
    lower by as much.
    """
    squares = (generator.means.double() ** 2).sum(dim=1).numpy()
    told = (generator.roots.double() ** 2).sum(dim=(1, 2)).numpy()
    room = np.sqrt(np.maximum(1 - squares, 0.0) / np.maximum(told, 1e-9)).clip(max=1)
    spreads = rng.choice(np.array(_SPREADS), len(classes))
    widened: NDArray[np.float32] = np.maximum(1, spreads * room[classes]).astype(np.float32)
    return widened


def draw_told(
    generator: Generator, teacher: Teacher, classes: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Records [n, width] of classes [n]; those that the teacher takes for another are drawn again.

    At most `_AGAIN` times: a class that told nothing of its own may never be taken for itself.
    """
    embedding = generator.embedding
    spreads = draw_spreads(generator, classes, rng)
    records = generator.draw(classes, int(rng.integers(2**62)), spreads)
    doubtful = np.arange(len(classes))
    for _ in range(_AGAIN):
        drawn = torch.from_numpy(records[doubtful])
        said = teacher.classes_of(embedding.coordinates(embedding.vectors(drawn).numpy()))
        doubtful = doubtful[said != classes[doubtful]]
        if not len(doubtful):
            break
        seed = int(rng.integers(2**62))
        records[doubtful] = generator.draw(classes[doubtful], seed, spreads[doubtful])
    return records
