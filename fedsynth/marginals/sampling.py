"""Rows from a fitted model: as near to its marginals as whole numbers of rows allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals.domain import Array, Clique, Domain, positions
from fedsynth.marginals.junction_tree import JunctionTree

Codes = NDArray[np.int32]
Whole = NDArray[np.int64]


def sample(
    tree: JunctionTree, marginals: Sequence[Array], rows: int, rng: np.random.Generator
) -> Codes:
    """Codes [rows, d] drawn clique by clique from the root down.

    Rows that agree on the separator share out the clique's new cells by systematic sampling in
    random order (Madow 1949): each cell gets its expected number rounded down or up, right on
    average, and which row gets which cell is random. So marginals carry far less sampling noise
    than those of independent draws, and neither columns nor neighbouring rows are coupled.
    """
    # A column lies in one piece, since columns are what is read and written.
    codes = np.zeros((rows, len(tree.domain)), np.int32, order="F")
    drawn: set[int] = set()
    for index in (0, *(child for _, child in tree.edges)):
        clique = tree.cliques[index]
        known = tuple(column for column in clique if column in drawn)
        new = tuple(column for column in clique if column not in drawn)
        if not new:
            continue
        order = [clique.index(column) for column in (*known, *new)]
        table = marginals[index].transpose(order).reshape(tree.domain.cells(known), -1)
        cells = _share_out(table, positions(tree.domain, codes, known), rng)
        write(tree.domain, codes, new, cells)
        drawn |= set(new)
    return codes


def write(domain: Domain, codes: Codes, columns: Clique, cells: Whole) -> None:
    """Set columns of codes [n, d] from places [n] in the flat table over them."""
    for column in reversed(columns):
        cells, codes[:, column] = np.divmod(cells, domain.sizes[column])


def _share_out(table: Array, groups: Whole, rng: np.random.Generator) -> Whole:
    """A cell [n] for each row, by its group's row of ``table`` [groups, cells]."""
    counted = np.bincount(groups, minlength=len(table))
    present = np.flatnonzero(counted)
    sizes = counted[present]
    # Cells take their turns in random order: in a fixed one every second row would get the same
    # code of a column with two.
    turns = np.argsort(rng.random((len(present), table.shape[1])), axis=1)
    sums = np.cumsum(np.take_along_axis(table[present], turns, axis=1), axis=1)
    numbers = _round(sums / sums[:, -1:], sizes, rng)
    shuffled = rng.permutation(len(groups))
    order = shuffled[_sort_positions(groups[shuffled], len(table))]
    cells = np.empty(len(groups), np.int64)
    cells[order] = np.repeat(turns.ravel(), numbers.ravel())
    return cells


def _round(sums: Array, sizes: Whole, rng: np.random.Generator) -> Whole:
    """Whole numbers [groups, cells] that add up to ``sizes``, from cumulative shares up to 1.

    One random offset a group: each expectation is rounded down or up, and right on average.
    """
    upto = np.floor(sums * sizes[:, None] + rng.random((len(sums), 1))).astype(np.int64)
    # An offset next to 1 may round up to a whole row too many.
    np.minimum(upto, sizes[:, None], out=upto)
    return np.diff(upto, axis=1, prepend=0)


def _sort_positions(labels: Whole, kinds: int) -> Whole:
    """Positions in the order of labels below ``kinds``, equal ones as they stand."""
    # NumPy sorts 16-bit numbers by radix, several times as fast.
    short = labels.astype(np.uint16) if kinds <= 2**16 else labels
    return np.argsort(short, kind="stable")


def draw(weights: Array, groups: Whole, rng: np.random.Generator) -> Whole:
    """A cell [n] for each row, independently, by its group's nonnegative ``weights``.

    Args:
        weights: [groups, cells]; those of a group that has rows are not all zero.
        groups: of each row, [n].
    """
    cells = weights.shape[1]
    sums = np.cumsum(weights, axis=1)
    targets = rng.random(len(groups)) * sums[groups, -1]
    # Bisection for all rows at once: how many of its group's sums a row's target has passed.
    passed = np.zeros(len(groups), np.int64)
    for step in (2**power for power in reversed(range(cells.bit_length()))):
        further = np.minimum(passed + step, cells)
        passed = np.where(sums[groups, further - 1] <= targets, further, passed)
    return passed
