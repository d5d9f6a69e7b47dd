"""What an attacker reads from a release about rows that interest him."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.attacks.scoring import agreement, mean_log
from fedsynth.evaluation.reading.features import Features, nearest
from fedsynth.evaluation.reading.rows import Rows

_MOST_PAIRS = 300
_K = 8


@dataclass(frozen=True, eq=False)
class Reading:
    """Reads releases about t targets; scales, cuts and frequencies are those of `pool`.

    values [t, d] and vectors [t, p]: the targets. cuts: of each column, what parts its values into
    categories or tenths. pairs: of columns whose marginal is read.
    """

    pool: Rows
    values: NDArray[np.float64]
    features: Features
    vectors: NDArray[np.float32]
    cuts: tuple[NDArray[np.float64], ...]
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, pool: Rows, targets: Rows, rng: np.random.Generator) -> Reading:
        features = Features.of(pool)
        cuts = tuple(
            np.arange(0.5, size - 1) if size else _tenths(column)
            for column, size in zip(pool.values.T, pool.sizes, strict=True)
        )
        pairs = list(itertools.combinations(range(len(cuts)), 2))
        kept = np.sort(rng.permutation(len(pairs))[:_MOST_PAIRS])
        vectors = features.matrix(targets)
        return cls(pool, targets.values, features, vectors, cuts, tuple(pairs[i] for i in kept))

    def statistics(self, release: Rows) -> NDArray[np.float64]:
        """[t, 6], each higher the nearer the release seems to the target.

        Minus the log distance to the nearest row and its mean over the 8 nearest; the most
        surprising agreement with one of these, and the mean; log likelihoods of the target under
        the release's one-way marginals and under its two-way marginals.
        """
        nearest_distances, places = nearest(self.vectors, self.features.matrix(release), _K)
        alike = agreement(self.values, release.values[places], self.pool)
        mine, theirs = self._codes(self.values), self._codes(release.values)
        single, double = np.zeros(len(mine)), np.zeros(len(mine))
        for j in range(len(self.cuts)):
            single += _log_share(mine[:, j], theirs[:, j])
        for a, b in self.pairs:
            width = len(self.cuts[b]) + 2
            double += _log_share(*(codes[:, a] * width + codes[:, b] for codes in (mine, theirs)))
        distances = (-mean_log(nearest_distances[:, :1]), -mean_log(nearest_distances))
        return np.column_stack([*distances, alike[:, 0], alike.mean(axis=1), single, double])

    def _codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Codes [n, d] of values [n, d]: parts from 1, gaps 0."""
        codes = np.zeros(values.shape, np.int64)
        for j, cuts in enumerate(self.cuts):
            parts = 1 + np.searchsorted(cuts, values[:, j], side="right")
            codes[:, j] = np.where(np.isnan(values[:, j]), 0, parts)
        return codes


def _tenths(column: NDArray[np.float64]) -> NDArray[np.float64]:
    known = column[~np.isnan(column)]
    return np.unique(np.quantile(known, np.arange(1, 10) / 10)) if len(known) else known


def _log_share(mine: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log share of `theirs` equal to each of `mine`, where no count is below one half."""
    values, counts = np.unique(theirs, return_counts=True)
    places = np.minimum(np.searchsorted(values, mine), len(values) - 1)
    hits = np.where(values[places] == mine, counts[places], 0)
    logs: NDArray[np.float64] = np.log(np.maximum(hits, 0.5) / len(theirs))
    return logs
