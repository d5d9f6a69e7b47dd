"""Votes of teachers as they are released, and the terms they are asked on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.request import Released
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.rows.exchanging import exchange
from fedsynth.privacy.terms import Terms
from fedsynth.queries.terms import terms_for_everyone

Floats = NDArray[np.float64]


def vote_terms(
    budget: Budget, noise_multiplier: float, survivors: int, queries: int, noise: str
) -> Terms:
    """Terms of the votes on so many queries, asked of everybody."""
    norm = norm_of(noise)
    length = math.sqrt(queries) if norm == "l2" else float(queries)
    reach = exchange(norm) if budget.protects.per_record else 1.0
    bound = length * reach
    return terms_for_everyone(budget, bound, noise_multiplier, survivors, noise, groups=True)


@dataclass(frozen=True, eq=False)
class Votes:
    """Released votes.

    Attributes:
        counts: noisy votes, [queries, classes].
        sigma: standard deviation of the noise in each.
        teachers: whose votes they are, those that voted for nothing included.
    """

    counts: Floats
    sigma: float
    teachers: int

    @staticmethod
    def of(released: Released, terms: Terms, queries: int, teachers: int) -> Votes:
        """As a round released them.

        Args:
            teachers: of each client; where clients are protected theirs have one vote together.
        """
        each = teachers if terms.protects.per_record else 1
        return Votes(
            released.value.reshape(queries, -1),
            terms.noise.deviation(terms.summed_scale(released.answered)),
            max(1, released.answered * each),
        )

    @property
    def shares(self) -> Floats:
        """Noisy vote shares [queries, classes], each row summing to 1.

        All classes together have one vote a teacher, which is known: so the mean noise of a query's
        classes is, and is taken off. Where some voted for nothing it is as if for all classes.
        """
        classes = self.counts.shape[1]
        centred = self.counts - self.counts.mean(axis=1, keepdims=True)
        return np.asarray(centred / self.teachers + 1 / classes)

    @property
    def share_variance(self) -> float:
        """Variance of the noise in a share."""
        classes = self.counts.shape[1]
        return float((self.sigma / self.teachers) ** 2 * (1 - 1 / classes))
