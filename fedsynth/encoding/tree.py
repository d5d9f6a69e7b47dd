"""A noisy tree of counts made consistent, then refined only where there is signal.

All counts carry independent noise of one standard deviation, so variances are in units of its
square until a threshold is needed. Levels run coarse to fine; node i of a level has the children
BRANCHING * i .. BRANCHING * i + BRANCHING - 1 of the next. *Extras* are categories beside the tree
(a missing value, a spike) that are counted once at every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.grid import BRANCHING

Array = NDArray[np.float64]

# A count stands on its own when it is this many standard deviations away from what its
# neighbours predict for it; see `pool`.
SIGNIFICANT = 2.0


@dataclass(frozen=True)
class Estimates:
    """The upward half of the least squares solution: each node from itself and its descendants.

    `levels` and `variances` are per level; `extras` has one entry a category, all of variance
    `extra_variance`; `total` is what the whole column knows of the number of records.
    """

    levels: tuple[Array, ...]
    variances: tuple[Array, ...]
    extras: Array
    extra_variance: float

    @property
    def total(self) -> float:
        return float(self.levels[0].sum() + self.extras.sum())

    @property
    def total_variance(self) -> float:
        return float(self.variances[0].sum() + self.extra_variance * len(self.extras))


def _sum_children(values: Array) -> Array:
    return np.add.reduceat(values, np.arange(0, len(values), BRANCHING))


def gather(levels: Sequence[Array], extras: Array) -> Estimates:
    """Upward pass of Hay et al. (2010), "Boosting the accuracy of differentially private histograms
    through consistency", section 4.1, weighted for nodes with different numbers of children.

    `levels`: noisy counts per level, coarse to fine; `extras`: noisy counts [levels, categories].
    """
    estimates = [np.asarray(levels[-1], np.float64)]
    variances = [np.ones(len(levels[-1]))]
    for own in reversed(levels[:-1]):
        below, spread = _sum_children(estimates[0]), _sum_children(variances[0])
        estimates.insert(0, (own * spread + below) / (spread + 1))
        variances.insert(0, spread / (spread + 1))
    return Estimates(tuple(estimates), tuple(variances), extras.mean(axis=0), 1.0 / extras.shape[0])


def shared_total(columns: Sequence[Estimates]) -> float:
    """The number of records by least squares from every column's own estimate of it."""
    weights = np.array([1.0 / column.total_variance for column in columns])
    return float(weights @ np.array([column.total for column in columns]) / weights.sum())


def make_consistent(column: Estimates, total: float) -> Estimates:
    """Downward pass of Hay et al. (2010): every node's children sum to it, the column to `total`.

    With the total from `shared_total` this is the least squares solution over all columns.
    """
    gap = (total - column.total) / column.total_variance
    levels = [column.levels[0] + gap * column.variances[0]]
    for estimate, variance in zip(column.levels[1:], column.variances[1:], strict=True):
        gaps = (levels[-1] - _sum_children(estimate)) / _sum_children(variance)
        levels.append(estimate + variance * np.repeat(gaps, BRANCHING)[: len(estimate)])
    extras = column.extras + gap * column.extra_variance
    return Estimates(tuple(levels), column.variances, extras, column.extra_variance)


def pool(parents: Array, children: Array, cuts: Array, units: Array) -> Array:
    """Nonnegative counts of children [m, b] that sum to `parents` [m] and follow only the signal.

    Children that do not stand out share what the others leave, in proportion to their units: those
    more than `cuts` [m, b] above the shared rate are set apart until none is left, then those more
    than `cuts` below it. A child without units gets nothing.
    """
    shared = units > 0
    children = np.where(shared, children, 0.0)
    for sign in (1.0, -1.0):
        while True:
            expected = _rate(parents, children, shared, units) * units
            apart = shared & (sign * (children - expected) > cuts)
            if not apart.any():
                break
            shared = shared & ~apart
    counts = np.where(shared, expected, np.maximum(children, 0.0))
    sums = counts.sum(axis=1, keepdims=True)
    even = parents[:, None] * units / np.maximum(units.sum(axis=1, keepdims=True), 1)
    shares = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
    result: Array = np.where(sums > 0, shares * parents[:, None], even)
    return result


def _rate(parents: Array, children: Array, shared: NDArray[np.bool_], units: Array) -> Array:
    """Count per unit [m, 1] left to the shared children of each parent."""
    apart = np.where(shared, 0.0, np.maximum(children, 0.0)).sum(axis=1)
    room = np.where(shared, units, 0.0).sum(axis=1)
    left = np.maximum(parents - apart, 0.0)
    rate: Array = np.divide(left, room, out=np.zeros_like(left), where=room > 0)
    return rate[:, None]


def refine(column: Estimates, present: float, units: Array, sigma: float) -> Array:
    """Nonnegative counts of the finest level's nodes, summing to `present`.

    From the coarsest level down, a node's count goes to its children evenly (by `units` [cells],
    the values each cell holds) except where a child's consistent count stands out from the noise,
    so spikes and tails keep their place and noise makes no detail. `sigma`: noise of one count.
    """
    room = [units]
    for _ in column.levels[1:]:
        room.insert(0, _sum_children(room[0]))
    counts = np.array([present])
    branching = len(column.levels[0])
    for estimate, variance, space in zip(column.levels, column.variances, room, strict=True):
        gaps = (counts - _reshape(estimate, branching).sum(axis=1)) / _reshape(
            variance, branching
        ).sum(axis=1)
        shifted = estimate + variance * np.repeat(gaps, branching)[: len(estimate)]
        cuts = _reshape(SIGNIFICANT * sigma * np.sqrt(variance) + 1e-12 * present, branching)
        # A child holds no more than its parent, so a parent within the noise has no detail to show.
        cuts = np.where(counts[:, None] > cuts, cuts, np.inf)
        pooled = pool(counts, _reshape(shifted, branching), cuts, _reshape(space, branching))
        counts, branching = pooled.ravel()[: len(estimate)], BRANCHING
    return counts


def _reshape(values: Array, branching: int) -> Array:
    """Nodes of a level as one row a parent, the last row filled with zeros."""
    rows = -(-len(values) // branching)
    whole = np.zeros(rows * branching, values.dtype)
    whole[: len(values)] = values
    return whole.reshape(rows, branching)
