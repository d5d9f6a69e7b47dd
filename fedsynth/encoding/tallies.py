"""How many records each code of a column holds: the least squares of all noisy counts, unbiased.

The encoding's frequencies leave out what may be noise, so no deviation is known of them. These are
linear in the counts, and theirs is. What a bin sums is many cells at every level of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.cutting import cell_units
from fedsynth.encoding.grid import BRANCHING, merge
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.histogram import ColumnLayout, HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tree import Estimates, gather

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """Of one column's codes: the records in each [codes], and the deviation of each [codes]."""

    values: Array
    deviations: Array


@dataclass(frozen=True, eq=False)
class _Shares:
    """Which code has what share of each finest cell [entries], and the code of each extra.

    A cell that several codes cut has an entry for each piece, by the units that it has there.
    """

    cells: Whole
    codes: Whole
    shares: Array
    extras: Whole


def tally(encoding: TableEncoding, noisy: Array, sigma: float) -> list[Tally]:
    """A tally for every column.

    A bin that begins within a cell takes of its count by units: there the estimate is as unbiased
    as the cell is even.

    Args:
        noisy: the histogram [dim] that the encoding was learned from.
        sigma: of the noise of each of its counts.
    """
    layout = HistogramLayout.of(encoding.schema)
    slices = layout.slices
    counts = [column.split(noisy[slices[column.name]]) for column in layout.columns]
    trees = [gather(*own) for own in counts]
    certain = np.array([1.0 / tree.total_variance for tree in trees])
    totals = np.array([tree.total for tree in trees])
    tallies = []
    for k, (column, (levels, _), tree) in enumerate(
        zip(layout.columns, counts, trees, strict=True)
    ):
        shares = _share(column, encoding.bins[k], encoding.sizes[k])
        values, covariances, variances = _gather_codes(levels, tree, shares, encoding.sizes[k])
        # All other columns' word on the number of records.
        others = np.delete(certain, k)
        if len(others):
            total = others @ np.delete(totals, k) / others.sum()
            gain = covariances / (tree.total_variance + 1.0 / others.sum())
            values = values + gain * (total - tree.total)
            variances = variances - gain * covariances
        tallies.append(Tally(values, sigma * np.sqrt(np.maximum(variances, 0.0))))
    return tallies


def _share(column: ColumnLayout, choices: Bins | Groups | None, size: int) -> _Shares:
    missing = np.full(int(column.missing), size - 1)
    if column.grid is None:
        cells = np.arange(column.levels[-1])
        codes = cells if choices is None else choices.codes
        return _Shares(cells, codes, np.ones(len(cells)), missing)
    assert isinstance(choices, Bins)
    starts = merge(choices.starts, column.edges)
    cells = np.searchsorted(column.edges, starts, side="right") - 1
    codes = choices.codes[np.searchsorted(choices.starts, starts, side="right") - 1]
    taken = np.bincount(
        np.searchsorted(starts, column.spikes, side="right") - 1, minlength=len(starts)
    )
    units = np.diff(starts, append=column.grid.units) - taken
    # A cell of spikes alone counts nobody.
    room = np.maximum(cell_units(column.grid, column.edges, column.spikes), 1)
    spikes = choices.codes[np.searchsorted(choices.starts, column.spikes, side="right") - 1]
    return _Shares(cells, codes, units / room[cells], np.concatenate((spikes, missing)))


def _gather_codes(
    levels: Sequence[Array], tree: Estimates, of: _Shares, size: int
) -> tuple[Array, Array, Array]:
    """The column's own word: values, covariances with its total, and variances, [size] each.

    Upwards, a node's count tells of what its children sum to, and so of every code that has a part
    of them: its variance falls by the square of their covariance (a Kalman update).
    """
    values = _sum_by(of.codes, of.shares * levels[-1][of.cells], size)
    # A cell of which a code has several pieces tells of them by one count.
    pieces, own = np.unique(of.cells * size + of.codes, return_inverse=True)
    variances = _sum_by(pieces % size, _sum_by(own, of.shares, len(pieces)) ** 2, size)
    if len(levels) > 1:
        nodes = len(levels[-2])
        at = (of.cells // BRANCHING) * size + of.codes
        covariances = _sum_by(at, of.shares, nodes * size).reshape(nodes, size)
        for depth in range(len(levels) - 2, -1, -1):
            if depth < len(levels) - 2:
                firsts = np.arange(0, len(covariances), BRANCHING)
                covariances = np.add.reduceat(covariances, firsts, axis=0)
            firsts = np.arange(0, len(levels[depth + 1]), BRANCHING)
            below = np.add.reduceat(tree.levels[depth + 1], firsts)
            spread = np.add.reduceat(tree.variances[depth + 1], firsts)
            gains = covariances / (spread + 1)[:, None]
            values += (levels[depth] - below) @ gains
            variances -= (gains * covariances).sum(axis=0)
            covariances = covariances - gains * spread[:, None]
        whole = covariances.sum(axis=0)
    else:
        whole = _sum_by(of.codes, of.shares, size)
    extras = _sum_by(of.extras, np.ones(len(of.extras)), size) * tree.extra_variance
    values += _sum_by(of.extras, tree.extras, size)
    return values, whole + extras, variances + extras


def _sum_by(codes: Whole, weights: Array, size: int) -> Array:
    """Sums of the weights by code, [size]."""
    return np.bincount(codes, weights, minlength=size).astype(np.float64)
