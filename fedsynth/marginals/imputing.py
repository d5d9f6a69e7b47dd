"""Unknown cells of given rows, drawn from the model's distribution given the row's known cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals.domain import Array, Clique, positions
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.sampling import Codes, draw, write

# Numbers that stand in memory at once, for all cliques together.
_FLOATS = 2**24


def impute(
    tree: JunctionTree, potentials: Sequence[Array], codes: Codes, rng: np.random.Generator
) -> Codes:
    """Codes [n, d] without gaps: exact draws given each row's known cells.

    Rows that miss the same columns are done together: belief propagation in which every table is
    cut down to a row's known cells, so it is far smaller than the model's.

    Args:
        codes: int32 [n, d], -1 where unknown; the known ones must have positive probability.
    """
    found = codes.copy()
    patterns, which = np.unique(codes < 0, axis=0, return_inverse=True)
    for number, unknown in enumerate(patterns):
        if not unknown.any():
            continue
        rows = np.flatnonzero(which.ravel() == number)
        cut = _Cut.of(tree, unknown)
        chunk = max(1, _FLOATS // max(1, cut.width))
        for start in range(0, len(rows), chunk):
            some = rows[start : start + chunk]
            found[some] = _completed(cut, potentials, found[some], rng)
    return found


@dataclass(frozen=True)
class _Cut:
    """A tree whose cliques are split into known and unknown columns."""

    tree: JunctionTree
    known: tuple[Clique, ...]
    unknown: tuple[Clique, ...]

    @staticmethod
    def of(tree: JunctionTree, unknown: NDArray[np.bool_]) -> _Cut:
        return _Cut(
            tree,
            tuple(tuple(k for k in clique if not unknown[k]) for clique in tree.cliques),
            tuple(tuple(k for k in clique if unknown[k]) for clique in tree.cliques),
        )

    @property
    def width(self) -> int:
        """Numbers that a row takes."""
        return sum(self.tree.domain.cells(columns) for columns in self.unknown)

    def table(self, index: int, potential: Array, codes: Codes) -> Array:
        """A clique's log-potential at each row's known cells, [n, *shape of the unknown]."""
        clique, domain = self.tree.cliques[index], self.tree.domain
        known, unknown = self.known[index], self.unknown[index]
        order = [clique.index(column) for column in (*known, *unknown)]
        flat = potential.transpose(order).reshape(domain.cells(known), -1)
        rows = flat[positions(domain, codes, known)]
        return rows.reshape(len(codes), *domain.shape(unknown))


def _completed(
    cut: _Cut, potentials: Sequence[Array], codes: Codes, rng: np.random.Generator
) -> Codes:
    tree, domain = cut.tree, cut.tree.domain
    logs = [cut.table(i, potential, codes) for i, potential in enumerate(potentials)]
    for number in range(len(tree.edges) - 1, -1, -1):
        parent, child = tree.edges[number]
        shared = tuple(k for k in cut.unknown[child] if k in tree.separators[number])
        axes = tuple(1 + a for a, k in enumerate(cut.unknown[child]) if k not in shared)
        message = _summed(logs[child], axes)
        shape = [domain.sizes[k] if k in shared else 1 for k in cut.unknown[parent]]
        logs[parent] = logs[parent] + message.reshape(len(codes), *shape)
    codes = codes.copy()
    drawn: set[int] = set()
    for index in (0, *(child for _, child in tree.edges)):
        columns = cut.unknown[index]
        given = tuple(k for k in columns if k in drawn)
        new = tuple(k for k in columns if k not in drawn)
        if not new:
            continue
        order = [0, *(1 + columns.index(k) for k in (*given, *new))]
        table = logs[index].transpose(order).reshape(len(codes), domain.cells(given), -1)
        chosen = table[np.arange(len(codes)), positions(domain, codes, given)]
        peak = chosen.max(axis=1, keepdims=True)
        weights = np.exp(chosen - np.where(np.isneginf(peak), 0.0, peak))
        write(domain, codes, new, draw(weights, rng))
        drawn |= set(new)
    return codes


def _summed(logs: Array, axes: tuple[int, ...]) -> Array:
    """Logarithm of the sum of exponentials along ``axes``."""
    if not axes:
        return logs
    peaks = logs.max(axis=axes, keepdims=True)
    peaks = np.where(np.isneginf(peaks), 0.0, peaks)
    with np.errstate(divide="ignore"):
        found: Array = np.log(np.exp(logs - peaks).sum(axis=axes)) + peaks.squeeze(axes)
    return found
