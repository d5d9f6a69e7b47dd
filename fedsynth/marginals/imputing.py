"""Unknown cells of given rows, drawn from the model's distribution given the row's known cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import DataError
from fedsynth.marginals.domain import Array, Clique, positions
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.sampling import Codes, Whole, draw, write

# Numbers that stand in memory at once, for all cliques together.
_FLOATS = 2**24


def impute(
    tree: JunctionTree, potentials: Sequence[Array], codes: Codes, rng: np.random.Generator
) -> Codes:
    """Codes [n, d] without gaps: exact, independent draws given each row's known cells.

    Rows that miss the same columns are done together, by belief propagation in which every table
    is cut down to the known cells; rows that agree in these share it.

    Args:
        codes: int32 [n, d], -1 where unknown.

    Raises:
        DataError: codes that are none of the model's, or known cells that leave an unknown one
            nothing that is possible.
    """
    sizes = tree.domain.sizes
    if (
        codes.ndim != 2
        or codes.shape[1] != len(sizes)
        or not ((codes >= -1) & (codes < sizes)).all()
    ):
        raise DataError(f"rows to complete need {len(sizes)} codes each, -1 where unknown")
    completed = codes.copy()
    packed = np.packbits(codes < 0, axis=1)
    _, which, numbers = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(which.ravel(), kind="stable")
    for rows in np.split(order, np.cumsum(numbers)[:-1]) if len(codes) else ():
        unknown = codes[rows[0]] < 0
        for part in _parts(tree, unknown):
            _fill(part, potentials, completed, rows, rng)
    return completed


@dataclass(frozen=True)
class _Part:
    """Cliques joined by unknown columns; given the known ones no other clique tells of these.

    Attributes:
        unknown: True for a column without a value, [d].
        cliques: positions in the tree, a parent before its children.
        edges: position of the edge to the parent, for each clique but the first.
    """

    tree: JunctionTree
    unknown: NDArray[np.bool_]
    cliques: tuple[int, ...]
    edges: tuple[int, ...]

    def known(self, clique: Clique) -> Clique:
        return tuple(column for column in clique if not self.unknown[column])

    def missing(self, clique: Clique) -> Clique:
        return tuple(column for column in clique if self.unknown[column])

    @cached_property
    def children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {index: [] for index in self.cliques}
        for number in self.edges:
            parent, child = self.tree.edges[number]
            children[parent].append(child)
        return children

    def table(self, index: int, potential: Array, codes: Codes) -> Array:
        """A clique's log-potential at each row's known cells, [n, *shape of the unknown]."""
        clique, domain = self.tree.cliques[index], self.tree.domain
        known, missing = self.known(clique), self.missing(clique)
        order = [clique.index(column) for column in (*known, *missing)]
        flat = potential.transpose(order).reshape(domain.cells(known), -1)
        rows = flat[positions(domain, codes, known)]
        return rows.reshape(len(codes), *domain.shape(missing))


def _parts(tree: JunctionTree, unknown: NDArray[np.bool_]) -> Iterator[_Part]:
    """Parts that have an unknown column."""
    root = list(range(len(tree.cliques)))
    cliques = {index: [index] for index in root}
    edges: dict[int, list[int]] = {index: [] for index in root}
    for number, (parent, child) in enumerate(tree.edges):
        if any(unknown[column] for column in tree.separators[number]):
            root[child] = root[parent]
            cliques[root[child]].append(child)
            edges[root[child]].append(number)
    for index in range(len(tree.cliques)):
        if root[index] == index and any(unknown[column] for column in tree.cliques[index]):
            yield _Part(tree, unknown, tuple(cliques[index]), tuple(edges[index]))


@dataclass(frozen=True)
class _Kinds:
    """Rows that agree on the known cells of a clique and of all below it.

    Attributes:
        of: kind [n] of each row.
        example: a row [kinds] of each kind.
    """

    of: Whole
    example: Whole


def _find_kinds(part: _Part, codes: Codes) -> dict[int, _Kinds]:
    by_clique: dict[int, _Kinds] = {}
    for index in reversed(part.cliques):
        known = part.known(part.tree.cliques[index])
        kinds = _number_kinds(positions(part.tree.domain, codes, known))
        for child in part.children[index]:
            below = by_clique[child]
            if len(below.example) > 1:
                kinds = _number_kinds(kinds.of * len(below.example) + below.of)
        by_clique[index] = kinds
    return by_clique


def _number_kinds(keys: Whole) -> _Kinds:
    if len(keys) and (keys == keys[0]).all():
        return _Kinds(np.zeros(len(keys), np.int64), np.zeros(1, np.int64))
    _, example, of = np.unique(keys, return_index=True, return_inverse=True)
    return _Kinds(of.ravel(), example)


def _fill(
    part: _Part, potentials: Sequence[Array], codes: Codes, rows: Whole, rng: np.random.Generator
) -> None:
    """Draw a part's unknown columns for some rows of ``codes``, in place."""
    kinds = _find_kinds(part, codes[rows])
    domain, cliques = part.tree.domain, part.tree.cliques
    floats = sum(len(kinds[i].example) * domain.cells(part.missing(cliques[i])) for i in kinds)
    first = kinds[part.cliques[0]]
    if floats > _FLOATS and len(first.example) > 1:
        half = first.of < len(first.example) // 2
        _fill(part, potentials, codes, rows[half], rng)
        _fill(part, potentials, codes, rows[~half], rng)
        return
    logs = _pass_upwards(part, potentials, codes[rows], kinds)
    impossible = np.isneginf(logs[part.cliques[0]].reshape(len(first.example), -1).max(axis=1))
    if impossible.any():
        stuck = rows[impossible[first.of]].min()
        raise DataError(
            f"row {stuck} to complete holds values beside which nothing is possible in its gaps: "
            "leave more of it unknown"
        )
    codes[rows] = _draw_downwards(part, logs, codes[rows], kinds, rng)


def _pass_upwards(
    part: _Part, potentials: Sequence[Array], codes: Codes, kinds: dict[int, _Kinds]
) -> dict[int, Array]:
    """Each clique's log-table [kinds, *shape of the unknown], messages from below included."""
    cliques, domain = part.tree.cliques, part.tree.domain
    logs: dict[int, Array] = {}
    for index in reversed(part.cliques):
        example, columns = kinds[index].example, part.missing(cliques[index])
        table = part.table(index, potentials[index], codes[example])
        for child in part.children[index]:
            theirs = part.missing(cliques[child])
            axes = tuple(1 + a for a, k in enumerate(theirs) if k not in columns)
            message = _log_sum_exp(logs[child], axes)[kinds[child].of[example]]
            shape = [domain.sizes[k] if k in theirs else 1 for k in columns]
            table += message.reshape(len(example), *shape)
        logs[index] = table
    return logs


def _draw_downwards(
    part: _Part,
    logs: dict[int, Array],
    codes: Codes,
    kinds: dict[int, _Kinds],
    rng: np.random.Generator,
) -> Codes:
    """Codes with the part's unknown columns drawn clique by clique from the root."""
    domain = part.tree.domain
    drawn: set[int] = set()
    for index in part.cliques:
        columns = part.missing(part.tree.cliques[index])
        given = tuple(k for k in columns if k in drawn)
        new = tuple(k for k in columns if k not in drawn)
        if not new:
            continue
        order = [0, *(1 + columns.index(k) for k in (*given, *new))]
        table = logs[index].transpose(order).reshape(-1, domain.cells(new))
        peak = table.max(axis=1, keepdims=True)
        weights = np.exp(table - np.where(np.isneginf(peak), 0.0, peak))
        groups = kinds[index].of * domain.cells(given) + positions(domain, codes, given)
        write(domain, codes, new, draw(weights, groups, rng))
        drawn |= set(new)
    return codes


def _log_sum_exp(logs: Array, axes: tuple[int, ...]) -> Array:
    """Logarithm of the sum of exponentials along ``axes``."""
    if not axes:
        return logs
    peaks = logs.max(axis=axes, keepdims=True)
    peaks = np.where(np.isneginf(peaks), 0.0, peaks)
    with np.errstate(divide="ignore"):
        sums: Array = np.log(np.exp(logs - peaks).sum(axis=axes)) + peaks.squeeze(axes)
    return sums
