"""What noisy histograms of the classes say: shares of classes and of every column's cells.

All of it is post-processing of released counts and of their known noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.methods.copula.cells import ColumnCells
from fedsynth.methods.copula.question import Statistics
from fedsynth.queries.estimates import to_simplex

Floats = NDArray[np.float64]

# What stands out from its expectation by fewer standard deviations of the noise counts as noise.
_CUT = 1.5


@dataclass(frozen=True, eq=False)
class Profiles:
    """Estimates of one group.

    Attributes:
        records: of each class, at least a positive trifle, [classes].
        shares: of every column's cells in every class, [classes, cells], each column's sum to 1.
    """

    records: Floats
    shares: Floats

    @property
    def frequencies(self) -> Floats:
        """Shares of the classes, [classes]."""
        return np.asarray(self.records / self.records.sum())


def estimate(statistics: Statistics, group: int) -> Profiles:
    """Classes and cells of a group from its noisy counts."""
    cells = statistics.question.cells
    counts = statistics.counts[group]
    records = class_records(statistics, group)
    shares = np.zeros_like(counts)
    for column, at in zip(cells.columns, cells.slices(), strict=True):
        shares[:, at] = column_shares(column, counts[:, at], records, statistics.sigma)
    return Profiles(records, shares)


def class_records(statistics: Statistics, group: int) -> Floats:
    """Records of each class, [classes]: every column's counts sum to them, weighted by precision.

    At least as many as make every class possible: a thousandth of the noise of one count.
    """
    question = statistics.question
    counts = statistics.counts[group]
    sums = np.stack([counts[:, at].sum(axis=1) for at in question.cells.slices()])
    weights = 1.0 / np.array(question.cells.sizes)
    records = np.average(sums, axis=0, weights=weights)
    total = max(float(records.sum()), 1e-9)
    return np.maximum(to_simplex(records, total), max(1e-3 * statistics.sigma, 1e-9 * total))


def column_shares(column: ColumnCells, counts: Floats, records: Floats, sigma: float) -> Floats:
    """Shares [classes, size] of a column's cells.

    All classes together are shrunk towards the public measure of the cells, then each class towards
    all together, by what the noise explains.
    """
    classes = len(counts)
    shrink: Callable[..., Floats] = _tree if column.grid is not None else _flat
    measure = column.measure
    total = float(records.sum())
    together = shrink(counts.sum(axis=0), total, measure, sigma * classes**0.5)
    # Nothing is impossible.
    together = together / together.sum() + 1e-4 * sigma / max(total, sigma, 1e-9) * measure
    together /= together.sum()
    if classes == 1:
        return np.asarray(together[None])
    shrunk = [shrink(c, float(n), together, sigma) for c, n in zip(counts, records, strict=True)]
    own_shares = np.stack(shrunk) + 1e-3 * (sigma + 1e-9) * together
    normed: Floats = own_shares / own_shares.sum(axis=1, keepdims=True)
    return normed


def _garrote(differences: Floats, deviations: Floats) -> Floats:
    """Differences less what noise explains (Breiman 1995's nonnegative garrote)."""
    squares = np.maximum(differences**2, 1e-300)
    kept: Floats = differences * np.maximum(0.0, 1.0 - (_CUT * deviations) ** 2 / squares)
    return kept


def _flat(counts: Floats, total: float, expected: Floats, sigma: float) -> Floats:
    """Counts of categories shrunk towards their expected shares of ``total``, nonnegative."""
    prior = total * expected
    return to_simplex(prior + _garrote(counts - prior, np.full(len(counts), sigma)), total)


def _tree(counts: Floats, total: float, expected: Floats, sigma: float) -> Floats:
    """Counts of neighbouring cells, nonnegative, with detail only where it stands out.

    From all cells down to one, a stretch's count goes to its two halves as expected, but for the
    difference that noise does not explain: Haar wavelet shrinkage about a prior shape.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    mass = np.concatenate([[0.0], np.cumsum(expected)])
    estimates = np.zeros(len(counts))
    stretches = [(0, len(counts), max(total, 0.0))]
    while stretches:
        start, stop, held = stretches.pop()
        if stop - start == 1 or held <= 0:
            estimates[start:stop] += held if stop - start == 1 else 0.0
            continue
        middle = (start + stop) // 2
        m, n = middle - start, stop - start
        gap = held - (sums[stop] - sums[start])
        noisy = sums[middle] - sums[start] + gap * m / n
        room = mass[stop] - mass[start]
        prior = held * ((mass[middle] - mass[start]) / room if room > 0 else m / n)
        deviation = sigma * (m * (n - m) / n) ** 0.5
        left = prior + float(_garrote(np.array(noisy - prior), np.array(deviation)))
        left = min(max(left, 0.0), held)
        stretches += [(start, middle, left), (middle, stop, held - left)]
    return estimates
