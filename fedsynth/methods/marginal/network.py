"""A Bayesian network over a table's columns, chosen by scores of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import Clique, Domain

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A column and those that its distribution depends on."""

    child: int
    parents: Clique

    @property
    def clique(self) -> Clique:
        return tuple(sorted((self.child, *self.parents)))


def network(scores: Array, domain: Domain, degree: int, first: int, limit: float) -> list[Family]:
    """A Bayesian network, greedily: the column next that its best parents tell most about.

    Args:
        scores: [d, d], how far each pair is from independence, symmetric.
        degree: parents at the most.
        first: the column without parents.
        limit: entries that a table of a column and its parents may have.
    """
    families = [Family(first, ())]
    placed, waiting = [first], [k for k in range(len(domain)) if k != first]
    while waiting:
        best, highest = waiting[0], -math.inf
        parents: dict[int, Clique] = {}
        for child in waiting:
            chosen: list[int] = []
            for parent in sorted(placed, key=lambda k: (-scores[child, k], k)):
                fits = domain.cells((child, *chosen, parent)) <= limit
                if len(chosen) < degree and scores[child, parent] > 0 and fits:
                    chosen.append(parent)
            parents[child] = tuple(sorted(chosen))
            score = sum(scores[child, parent] for parent in chosen)
            if score > highest:
                best, highest = child, score
        families.append(Family(best, parents[best]))
        placed.append(best)
        waiting.remove(best)
    return families
