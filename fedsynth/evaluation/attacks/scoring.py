"""How much rows look like those that a release was learned from: scores of membership attacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.reading.features import Features, nearest
from fedsynth.evaluation.reading.rows import Rows

NEIGHBOURS = 16
"""Neighbours of a row that the attacks look at."""

_FLOOR, _EQUAL = 0.06, 1e-3
"""What is added to distances before their logarithm, and the distance of equal rows. The 5 to 95 %
range of a number is 1 and two different categories are 1 apart: far below the floor, nearness is
chance, but equality is not."""


@dataclass(frozen=True, eq=False)
class Scoring:
    """The attacker's sample and the rows [q] to score, members first, as vectors and as values.

    distances: [q, k] to the nearest of the attacker's own rows. agreement: [q, k], falling.
    """

    own: Rows
    values: NDArray[np.float64]
    features: Features
    vectors: NDArray[np.float32]
    distances: NDArray[np.float64]
    agreement: NDArray[np.float64]

    @classmethod
    def of(cls, members: Rows, others: Rows, own: Rows) -> Scoring:
        features = Features.of(own)
        vectors = np.concatenate([features.matrix(members), features.matrix(others)])
        values = np.concatenate([members.values, others.values])
        distances, places = nearest(vectors, features.matrix(own), NEIGHBOURS)
        alike = agreement(values, own.values[places], own)
        return cls(own, values, features, vectors, distances, alike)

    def scores(self, synthetic: Rows) -> dict[str, NDArray[np.float64]]:
        """Of each attack, the scores [q]."""
        distances, places = nearest(self.vectors, self.features.matrix(synthetic), NEIGHBOURS)
        alike = agreement(self.values, synthetic.values[places], self.own)
        around = distances[:, 1:9] if distances.shape[1] > 1 else distances
        density = mean_log(self.distances[:, :8]) + mean_log(around)
        return {
            "density ratio": density - 2 * mean_log(distances[:, :1]),
            "nearest row": -distances[:, 0],
            "matching cells": alike[:, 0] - self.agreement[:, :3].mean(axis=1),
        }


def mean_log(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean logarithm [q] of distances [q, k], finite also for equal rows."""
    softened = np.where(distances == 0, _EQUAL, distances + _FLOOR)
    logs: NDArray[np.float64] = np.log(softened).mean(axis=1)
    return logs


def agreement(
    rows: NDArray[np.float64], candidates: NDArray[np.float64], own: Rows
) -> NDArray[np.float64]:
    """How surprisingly candidates [q, k, d] agree with rows [q, d]: [q, k], the highest first."""
    total = np.zeros(candidates.shape[:2])
    for j, size in enumerate(own.sizes):
        column = own.values[:, j]
        known = np.sort(column[~np.isnan(column)])
        x, y = rows[:, None, j], candidates[:, :, j]
        gap, either = np.isnan(x) & np.isnan(y), np.isnan(x) | np.isnan(y)
        reach = np.where(x == y, 0, np.inf) if size else np.abs(x - y)
        alike = np.searchsorted(known, x + reach, "right") - np.searchsorted(known, x - reach)
        alike = np.where(gap, len(column) - len(known), np.where(either, len(column), alike))
        total -= np.log((alike + 1) / (len(column) + 1))
    return -np.sort(-total, axis=1)
