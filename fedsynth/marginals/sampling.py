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

    Rows that agree on the separator share out the clique's new cells by systematic sampling: each
    cell gets its expected number rounded down or up, unbiased, and which row gets which cell is
    random. So marginals carry far less sampling noise than those of independent draws.
    """
    codes = np.zeros((rows, len(tree.domain)), np.int32)
    drawn: set[int] = set()
    for index in (0, *(child for _, child in tree.edges)):
        clique = tree.cliques[index]
        known = tuple(column for column in clique if column in drawn)
        new = tuple(column for column in clique if column not in drawn)
        if not new:
            continue
        order = [clique.index(column) for column in (*known, *new)]
        table = marginals[index].transpose(order).reshape(tree.domain.cells(known), -1)
        cells = _shared_out(table, positions(tree.domain, codes, known), rng)
        write(tree.domain, codes, new, cells)
        drawn |= set(new)
    return codes


def write(domain: Domain, codes: Codes, columns: Clique, cells: Whole) -> None:
    """Set columns of codes [n, d] from places [n] in the flat table over them."""
    for column in reversed(columns):
        cells, codes[:, column] = np.divmod(cells, domain.sizes[column])


def _shared_out(table: Array, groups: Whole, rng: np.random.Generator) -> Whole:
    """A cell [n] for each row, by its group's row of ``table`` [groups, cells]."""
    shuffled = rng.permutation(len(groups))
    order = shuffled[np.argsort(groups[shuffled], kind="stable")]
    sizes = np.bincount(groups, minlength=len(table))
    starts = np.cumsum(sizes) - sizes
    ordered = groups[order]
    rank = np.arange(len(order)) - starts[ordered]
    target = (rank + rng.random(len(table))[ordered]) / sizes[ordered]
    cells = np.empty(len(groups), np.int64)
    cells[order] = _found(table, ordered, target)
    return cells


def _found(table: Array, groups: Whole, target: Array) -> Whole:
    """The cell in which ``target`` [n] in [0, 1) of each row's group's mass lies.

    A group whose mass is all rounding error is taken as even.
    """
    sums = np.cumsum(table, axis=1)
    lost = sums[:, -1] <= 0
    if lost.any():
        sums[lost] = np.arange(1, table.shape[1] + 1)
    sums /= sums[:, -1:]
    # One search for all groups: group g's sums lie in (g, g + 1].
    flat = (sums + np.arange(len(table))[:, None]).ravel()
    inside = np.minimum(target, 1 - 1e-9)
    found: Whole = np.searchsorted(flat, groups + inside, side="right") - groups * table.shape[1]
    return found


def draw(weights: Array, rng: np.random.Generator) -> Whole:
    """A cell [n] for each row of nonnegative ``weights`` [n, cells], independently."""
    target = rng.random(len(weights))
    return _found(weights, np.arange(len(weights)), target)
