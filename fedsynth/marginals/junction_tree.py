"""Junction trees: the cliques on which inference is exact, and what that takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.marginals.domain import Array, Clique, Domain, rest


@dataclass(frozen=True)
class Pass:
    """What a message along an edge needs: it is worked out once, and sent in every step of a fit.

    Attributes:
        parent, child: positions of the two cliques.
        parent_rest, child_rest: axes of their tables that are not of the separator.
        parent_shape, child_shape: of a table over the separator, to broadcast against theirs.
    """

    parent: int
    child: int
    parent_rest: tuple[int, ...]
    child_rest: tuple[int, ...]
    parent_shape: tuple[int, ...]
    child_shape: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where in a tree a clique lies.

    Attributes:
        home: position of the smallest clique that holds all of its columns.
        rest: axes of the home's table that are not of it.
        shape: of a table over it, to broadcast against the home's.
    """

    home: int
    rest: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """A tree of cliques in which any two that share a column share it all along their path.

    Attributes:
        domain: of the columns.
        cliques: none inside another; together they hold every column.
        edges: (parent, child) positions among the cliques, from the root, clique 0, down: a parent
            stands before its children. Where two parts of the table are independent, the edge
            between them has an empty separator.

    Raises:
        ConfigError: cliques and edges that are no such tree.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self._is_one():
            raise ConfigError(
                "these cliques and edges are no junction tree: build one by JunctionTree.of"
            )

    def _is_one(self) -> bool:
        order = [0, *(child for _, child in self.edges)]
        if sorted(order) != list(range(len(self.cliques))):
            return False
        placed, held = {0}, set(self.cliques[0])
        for parent, child in self.edges:
            clique = set(self.cliques[child])
            if parent not in placed or not clique & held <= set(self.cliques[parent]):
                return False
            placed.add(child)
            held |= clique
        return held == set(range(len(self.domain)))

    @staticmethod
    def of(domain: Domain, cliques: Iterable[Sequence[int]]) -> JunctionTree:
        """A tree in which every one of ``cliques`` lies within a clique.

        Columns are eliminated greedily, always the one whose neighbourhood has the fewest cells;
        the tree is a spanning tree of the largest separators (Koller and Friedman 2009, 10.4).
        """
        graph = neighbours(domain, [domain.check(clique) for clique in cliques])
        maximal = _keep_maximal(_eliminate(domain, graph))
        return JunctionTree(domain, maximal, _spanning_tree(maximal))

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """Columns that the two ends of each edge share."""
        return tuple(
            tuple(sorted(set(self.cliques[a]) & set(self.cliques[b]))) for a, b in self.edges
        )

    @property
    def cells(self) -> int:
        """Entries of all cliques' tables together: what inference takes, in time and memory."""
        return sum(self.domain.cells(clique) for clique in self.cliques)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each clique's table."""
        return tuple(map(self.domain.shape, self.cliques))

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """Of each edge."""
        return tuple(
            Pass(
                *edge,
                *(rest(self.cliques[end], separator) for end in edge),
                *(self._against(separator, end) for end in edge),
            )
            for edge, separator in zip(self.edges, self.separators, strict=True)
        )

    def _against(self, clique: Clique, index: int) -> tuple[int, ...]:
        """Shape of a table over some of a clique's columns, to broadcast against the clique's."""
        return tuple(self.domain.sizes[k] if k in clique else 1 for k in self.cliques[index])

    def home(self, clique: Clique) -> int | None:
        """Position of the smallest clique that holds all of ``clique``'s columns, if one does."""
        place = self.place(clique)
        return None if place is None else place.home

    def place(self, clique: Clique) -> Place | None:
        """Where ``clique`` lies, if a clique holds all of its columns."""
        if clique not in self._places:
            wanted = set(clique)
            home = next((i for i in self._by_size if wanted <= self._sets[i]), None)
            self._places[clique] = (
                None
                if home is None
                else Place(home, rest(self.cliques[home], clique), self._against(clique, home))
            )
        return self._places[clique]

    @cached_property
    def _places(self) -> dict[Clique, Place | None]:
        """Those that were asked for, which every step of a fit asks for again."""
        return {}

    @cached_property
    def _by_size(self) -> list[int]:
        return sorted(range(len(self.cliques)), key=lambda i: self.domain.cells(self.cliques[i]))

    @cached_property
    def _sets(self) -> list[frozenset[int]]:
        return [frozenset(clique) for clique in self.cliques]


def model_cells(domain: Domain, cliques: Iterable[Clique], limit: float = math.inf) -> float:
    """Cells that a junction tree of these cliques has; infinite once it is sure to exceed a limit.

    Counts a clique that lies within another too, so it may exceed :attr:`JunctionTree.cells` a
    little: a quick upper bound for choosing among many candidates.
    """
    total = 0
    for clique in _eliminate(domain, neighbours(domain, cliques)):
        total += domain.cells(clique)
        if total > limit:
            return math.inf
    return total


Graph = dict[int, set[int]]
UNIT = 2.0**32


def neighbours(domain: Domain, cliques: Iterable[Clique]) -> Graph:
    """Each column's neighbours: those that share a clique with it."""
    graph: Graph = {column: set() for column in range(len(domain))}
    for clique in cliques:
        for a, b in itertools.combinations(clique, 2):
            graph[a].add(b)
            graph[b].add(a)
    return graph


def _eliminate(domain: Domain, graph: Graph) -> Iterable[Clique]:
    """Eliminate columns, yielding each with its neighbours at that moment; empties the graph."""
    logs = weights(domain).tolist()
    weight = {v: logs[v] + sum(logs[u] for u in graph[v]) for v in graph}
    while graph:
        column = min(graph, key=lambda v: (weight[v], v))
        neighbours = graph.pop(column)
        yield tuple(sorted(neighbours | {column}))
        for other in neighbours:
            new = neighbours - graph[other] - {other}
            graph[other] |= new
            graph[other].discard(column)
            weight[other] += sum(logs[u] for u in new) - logs[column]


def weights(domain: Domain) -> Array:
    """Logarithms [d] of the columns' sizes to base 2, as whole numbers of ``1 / UNIT``.

    So their sums are exact, and ties between columns do not depend on the order of adding.
    """
    logs: Array = np.rint(np.log2(domain.sizes) * UNIT)
    return logs


def _keep_maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    maximal: list[frozenset[int]] = []
    # An eliminated clique can only lie within one that was made before its columns went.
    for clique in map(frozenset, cliques):
        if not any(clique <= other for other in maximal):
            maximal = [other for other in maximal if not other <= clique] + [clique]
    return tuple(sorted(tuple(sorted(clique)) for clique in maximal))


def _spanning_tree(cliques: tuple[Clique, ...]) -> tuple[tuple[int, int], ...]:
    """Prim's algorithm from clique 0, by the number of shared columns."""
    held = np.zeros((len(cliques), 1 + max(map(max, cliques))), np.int64)
    for index, clique in enumerate(cliques):
        held[index, list(clique)] = 1
    shared = held @ held.T
    best, parent = shared[0].copy(), np.zeros(len(cliques), np.int64)
    outside = np.ones(len(cliques), bool)
    outside[0] = False
    edges = []
    while outside.any():
        child = int(np.argmax(np.where(outside, best, -1)))
        edges.append((int(parent[child]), child))
        outside[child] = False
        nearer = shared[child] > best
        best[nearer], parent[nearer] = shared[child][nearer], child
    return tuple(edges)
