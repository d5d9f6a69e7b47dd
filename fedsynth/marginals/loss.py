"""How far a model is from noisy marginals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedsynth.marginals.domain import Array, Clique
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.propagation import potentials_of, propagate

Factors = dict[Clique, Array]


class Table(Protocol):
    """Values over a clique's columns, and the noise's deviation > 0 in each cell, or in all."""

    @property
    def values(self) -> Array: ...
    @property
    def deviations(self) -> Array: ...


@dataclass(frozen=True, eq=False)
class Point:
    """A model beside the measurements.

    Attributes:
        masses: marginal of each clique of the tree.
        marginals, gradient: of all measured cells, the cliques' tables one behind another, the
            model's probabilities, and the loss's gradient in them.
        loss: half the weighted squared distance.
    """

    masses: list[Array]
    marginals: Array
    gradient: Array
    loss: float


class Loss:
    """The loss of a tree's models.

    Everything is divided by the total and by the largest weight, so that a step of 1 is of the
    right order whatever the units. What is said of all measured cells is one array, the cliques'
    tables one behind another: many small tables take their time by the number of operations.

    Attributes:
        places: of each measured clique, where in the tree its marginal is.
        weights: of each measured cell, at most 1.
    """

    def __init__(self, tree: JunctionTree, tables: Mapping[Clique, Table], total: float) -> None:
        self.tree = tree
        self.places = {c: place for c in tables if (place := tree.place(c)) is not None}
        least = min((float(table.deviations.min()) for table in tables.values()), default=1.0)
        self._shapes = {c: tree.domain.shape(c) for c in self.places}
        ends = np.cumsum([0, *map(math.prod, self._shapes.values())]).tolist()
        self._spans = dict(zip(self.places, map(slice, ends, ends[1:]), strict=True))
        self._targets = self.flatten({c: tables[c].values / total for c in self.places})
        weights = {c: (least / tables[c].deviations) ** 2 for c in self.places}
        self.weights = self.flatten(
            {c: np.broadcast_to(w, self._shapes[c]) for c, w in weights.items()}
        )

    def flatten(self, tables: Mapping[Clique, Array]) -> Array:
        """Tables of the measured cliques, among others, one behind another."""
        return np.concatenate([np.empty(0), *(tables[c].ravel() for c in self.places)])

    def split(self, flat: Array) -> Factors:
        """The tables again, as views."""
        return {c: flat[self._spans[c]].reshape(shape) for c, shape in self._shapes.items()}

    def point(self, factors: Mapping[Clique, Array]) -> Point:
        masses, _ = propagate(self.tree, potentials_of(self.tree, factors))
        marginals = self.marginals(masses)
        error = marginals - self._targets
        gradient = self.weights * error
        return Point(masses, marginals, gradient, 0.5 * float(np.vdot(gradient, error)))

    def marginals(self, tables: list[Array]) -> Array:
        """Of tables over the tree's cliques the sums over each measured one."""
        return np.concatenate(
            [
                np.empty(0),
                *(np.add.reduce(tables[p.home], p.rest).ravel() for p in self.places.values()),
            ]
        )
