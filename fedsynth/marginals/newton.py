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

import numpy as np

from fedsynth.marginals.domain import Array
from fedsynth.marginals.loss import Factors, Loss, Point
from fedsynth.marginals.propagation import potentials_of

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
    flat, point = losses.flatten(factors), losses.point(factors)
    length, slow = _FIRST, 0
    for _ in range(steps):
        if slow == _PATIENCE or point.loss == 0:
            break
        direction = _direction(losses, point, length)
        share = 1.0
        while True:
            trial = flat + share * direction
            after = losses.point(factors | losses.split(trial))
            if after.loss < point.loss or share < _SHORTEST:
                break
            share /= 2
        slow = slow + 1 if after.loss > (1 - _SLOW) * point.loss else 0
        if after.loss < point.loss:
            flat, point = trial, after
            length *= _GROWTH if share == 1 else share
        else:
            length /= _RETREAT
    return factors | losses.split(flat)


def _direction(losses: Loss, point: Point, length: float) -> Array:
    """The implicit step of a length, by preconditioned conjugate gradients, kept within reason."""
    covariance, weights = Covariance(losses, point.masses), losses.weights
    shift = 1 / (length * weights)
    scale = 1 / (point.marginals + shift)
    solution = np.zeros_like(scale)
    tolerance = _RESIDUAL * point.loss
    residual = -point.gradient / weights
    search = scale * residual
    size = float(np.vdot(residual, search))
    for _ in range(_PASSES):
        # What is left are errors of the marginals after the step.
        if float(np.vdot(weights * residual, residual)) <= tolerance:
            break
        product = covariance.times(search) + shift * search
        curvature = float(np.vdot(search, product))
        # What is left is nothing that a double can tell: a loss next to 0 has no direction.
        if curvature <= 0:
            break
        step = size / curvature
        solution += step * search
        residual -= step * product
        scaled = scale * residual
        size, before = float(np.vdot(residual, scaled)), size
        search = scaled + size / before * search
    return _bound(solution)


def _bound(direction: Array) -> Array:
    """Upwards to where the marginal would be to first order, (1 + d) mu; downwards at most 1.

    A cell that falls too far takes many steps to come back.
    """
    sizes = np.log1p(np.abs(direction))
    return np.where(direction > 0, sizes, -np.minimum(sizes, 1.0))


class Covariance:
    """Covariance matrix of the indicators of all measured cells, without being written out."""

    def __init__(self, losses: Loss, masses: list[Array]) -> None:
        self._losses, self._tree, self._masses = losses, losses.tree, masses
        self._shares = []
        for edge in self._tree.passes:
            mass = np.add.reduce(masses[edge.child], edge.child_rest)
            # The smallest floats have no finite reciprocal.
            held = mass > 1e-300
            self._shares.append(np.divide(1.0, mass, out=np.zeros_like(mass), where=held))

    def times(self, direction: Array) -> Array:
        """The product: the derivative of all marginals along a change of log-factors.

        Args:
            direction: of all measured cells, as is what is returned.
        """
        tables, passes = potentials_of(self._tree, self._losses.split(direction)), self._tree.passes
        means: list[Array] = []
        for edge, share in zip(reversed(passes), reversed(self._shares), strict=True):
            product = tables[edge.child] * self._masses[edge.child]
            mean = np.add.reduce(product, edge.child_rest) * share
            means.append(mean)
            tables[edge.parent] += mean.reshape(edge.parent_shape)
        tables[0] -= float(np.vdot(tables[0], self._masses[0]))
        tables[0] *= self._masses[0]
        for edge, share, mean in zip(passes, self._shares, reversed(means), strict=True):
            change = np.add.reduce(tables[edge.parent], edge.parent_rest) * share - mean
            table = tables[edge.child]
            table += change.reshape(edge.child_shape)
            table *= self._masses[edge.child]
        return self._losses.marginals(tables)
