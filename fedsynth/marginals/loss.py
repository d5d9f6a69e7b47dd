"""How far a model is from noisy marginals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedsynth.marginals.domain import Array, Clique, rest
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.propagation import potentials_of, propagate

Factors = dict[Clique, Array]
Gradients = dict[Clique, tuple[Array, Array]]


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
        gradients: of each measured clique the marginal, and the loss's gradient in it.
        loss: half the weighted squared distance.
    """

    masses: list[Array]
    gradients: Gradients
    loss: float


class Loss:
    """The loss of a tree's models.

    Everything is divided by the total and by the largest weight, so that a step of 1 is of the
    right order whatever the units.

    Attributes:
        weights: of each measured clique, or of each of its cells, at most 1.
    """

    def __init__(self, tree: JunctionTree, tables: Mapping[Clique, Table], total: float) -> None:
        self.tree = tree
        self.measured = {
            clique: (home, rest(tree.cliques[home], clique), table.values / total)
            for clique, table in tables.items()
            if (home := tree.home(clique)) is not None
        }
        least = min((float(table.deviations.min()) for table in tables.values()), default=1.0)
        self.weights = {c: (least / tables[c].deviations) ** 2 for c in self.measured}

    def point(self, factors: Mapping[Clique, Array]) -> Point:
        masses, _ = propagate(self.tree, potentials_of(self.tree, factors))
        loss, gradients = 0.0, Gradients()
        for clique, (home, axes, target) in self.measured.items():
            marginal = masses[home].sum(axis=axes)
            error = marginal - target
            gradient = self.weights[clique] * error
            loss += 0.5 * float(np.vdot(gradient, error))
            gradients[clique] = (marginal, gradient)
        return Point(masses, gradients, loss)

    def evaluate(self, factors: Mapping[Clique, Array]) -> tuple[float, Gradients]:
        """The loss, and for each measured clique its marginal and the loss's gradient in it."""
        point = self.point(factors)
        return point.loss, point.gradients
