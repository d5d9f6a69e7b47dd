"""Newton's method for a model of noisy marginals: few, long steps, from anywhere.

Mirror descent moves a log-factor by the gradient in its marginal, ``theta - step W (mu - y)``. That
is slow where marginals are small or weights differ. The implicit step of the same kind,
``theta' = theta - step W (mu(theta') - y)`` (Bregman's proximal point), may be far longer. To first
order it is the solution d of

    (C + (step W)^-1) d = y - mu,

C being the covariance of the measured cells' indicators under the model: what moves marginals when
log-factors move. A product with C takes one pass up and down the tree, so conjugate gradients
solve it without a matrix (Nocedal and Wright 2006, 7.1).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fedsynth.marginals.domain import Array, Clique, rest, spread
from fedsynth.marginals.loss import Factors, Loss, Point

# The first step's length and how it grows after a full one, shrinks after one that failed.
_FIRST, _GROWTH, _RETREAT = 100.0, 4.0, 10.0
# A direction is found in so many passes, or once its own error accounts for a quarter of the loss:
# better ones ask more of cells that are next to empty than a linear model knows.
_PASSES, _RESIDUAL = 20, 0.5
_SHORTEST = 0.05
# A step that lowers the loss by less than this share is slow, and two of them are the end.
_SLOW, _PATIENCE = 0.03, 2


def approach(losses: Loss, factors: Factors, steps: int) -> Factors:
    """Factors with a lower loss, by at most ``steps`` steps; ends where others do better."""
    point, length, slow = losses.point(factors), _FIRST, 0
    for _ in range(steps):
        if slow == _PATIENCE or point.loss == 0:
            break
        direction = _direction(losses, point, length)
        share = 1.0
        while True:
            trial = factors | {c: factors[c] + share * d for c, d in direction.items()}
            after = losses.point(trial)
            if after.loss < point.loss or share < _SHORTEST:
                break
            share /= 2
        slow = slow + 1 if after.loss > (1 - _SLOW) * point.loss else 0
        if after.loss < point.loss:
            factors, point = trial, after
            length *= _GROWTH if share == 1 else share
        else:
            length /= _RETREAT
    return factors


def _direction(losses: Loss, point: Point, length: float) -> Factors:
    """The implicit step of a length, by preconditioned conjugate gradients, kept within reason."""
    covariance = Covariance(losses, point.masses)
    shift = {c: 1 / (length * weight) for c, weight in losses.weights.items()}
    scale = {c: 1 / (point.gradients[c][0] + shift[c]) for c in shift}
    solution = {c: np.zeros_like(s) for c, s in scale.items()}
    tolerance = _RESIDUAL * point.loss
    residual = {c: -gradient / losses.weights[c] for c, (_, gradient) in point.gradients.items()}
    search = {c: scale[c] * residual[c] for c in residual}
    size = _dot(residual, search)
    for _ in range(_PASSES):
        # What is left are errors of the marginals after the step.
        if (
            sum(float(np.vdot(w * residual[c], residual[c])) for c, w in losses.weights.items())
            <= tolerance
        ):
            break
        moved = covariance.times(search)
        product = {c: moved[c] + shift[c] * search[c] for c in search}
        curvature = _dot(search, product)
        # What is left is nothing that a double can tell: a loss next to 0 has no direction.
        if curvature <= 0:
            break
        step = size / curvature
        for c in solution:
            solution[c] += step * search[c]
            residual[c] -= step * product[c]
        scaled = {c: scale[c] * residual[c] for c in residual}
        size, before = _dot(residual, scaled), size
        search = {c: scaled[c] + size / before * search[c] for c in search}
    return {c: _bound(direction) for c, direction in solution.items()}


def _dot(one: Mapping[Clique, Array], other: Mapping[Clique, Array]) -> float:
    return sum(float(np.vdot(one[c], other[c])) for c in one)


def _bound(direction: Array) -> Array:
    """Upwards to where the marginal would be to first order, (1 + d) mu; downwards at most 1.

    A cell that falls too far takes many steps to come back.
    """
    sizes = np.log1p(np.abs(direction))
    return np.where(direction > 0, sizes, -np.minimum(sizes, 1.0))


class Covariance:
    """Covariance matrix of the indicators of all measured cells, without being written out."""

    def __init__(self, losses: Loss, masses: list[Array]) -> None:
        self._measured, self._tree, self._masses = losses.measured, losses.tree, masses
        self._shares = []
        for separator, (_, child) in zip(self._tree.separators, self._tree.edges, strict=True):
            mass = masses[child].sum(axis=rest(self._tree.cliques[child], separator))
            # The smallest floats have no finite reciprocal.
            held = mass > 1e-300
            self._shares.append(np.divide(1.0, mass, out=np.zeros_like(mass), where=held))

    def times(self, direction: Mapping[Clique, Array]) -> Factors:
        """The product: the derivative of all marginals along a change of log-factors.

        Args:
            direction: a table for each measured clique, as is what is returned.
        """
        tree, domain = self._tree, self._tree.domain
        tables = [np.zeros(domain.shape(clique)) for clique in tree.cliques]
        for clique, values in direction.items():
            home = self._measured[clique][0]
            tables[home] += spread(domain, values, clique, tree.cliques[home])
        means: list[Array] = [np.empty(0)] * len(tree.edges)
        for number in range(len(tree.edges) - 1, -1, -1):
            parent, child = tree.edges[number]
            means[number] = self._mean(child, tables[child] * self._masses[child], number)
            separator = tree.separators[number]
            tables[parent] += spread(domain, means[number], separator, tree.cliques[parent])
        tables[0] -= float(np.vdot(tables[0], self._masses[0]))
        tables[0] *= self._masses[0]
        for number, (parent, child) in enumerate(tree.edges):
            change = self._mean(parent, tables[parent], number) - means[number]
            tables[child] += spread(domain, change, tree.separators[number], tree.cliques[child])
            tables[child] *= self._masses[child]
        return {c: tables[home].sum(axis=axes) for c, (home, axes, _) in self._measured.items()}

    def _mean(self, index: int, product: Array, number: int) -> Array:
        """Mean of a table given an edge's separator, from the table times its clique's masses."""
        axes = rest(self._tree.cliques[index], self._tree.separators[number])
        mean: Array = product.sum(axis=axes) * self._shares[number]
        return mean
