"""Marginals over columns that no clique of a junction tree holds together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.marginals.domain import Array, Clique, Domain, rest, spread
from fedsynth.marginals.junction_tree import JunctionTree

MOST_CELLS = 2**25
"""Cells of a table that a query may build on its way, 256 MB."""

Factor = tuple[Clique, Array]


def marginalize(tree: JunctionTree, marginals: Sequence[Array], columns: Clique) -> Array:
    """Probabilities over the columns, by variable elimination (Koller and Friedman 2009, 9.3).

    The part of the tree between the columns is a product of conditionals, from which every other
    column is summed out, always the one that leaves the smallest table.

    Args:
        marginals: of each clique of the tree.

    Raises:
        ConfigError: a table of more than 2**25 cells on the way.
    """
    domain, factors = tree.domain, _conditionals_between(tree, marginals, columns)
    others = {column for clique, _ in factors for column in clique} - set(columns)
    while others:
        _, column = min((domain.cells(_columns_with(factors, column)), column) for column in others)
        touching = [factor for factor in factors if column in factor[0]]
        factors = [factor for factor in factors if column not in factor[0]]
        clique, table = _multiply(domain, touching, columns)
        left = tuple(k for k in clique if k != column)
        factors.append((left, table.sum(axis=rest(clique, left))))
        others.remove(column)
    return _multiply(domain, factors, columns)[1]


def _conditionals_between(
    tree: JunctionTree, marginals: Sequence[Array], columns: Clique
) -> list[Factor]:
    """Conditionals whose product is the distribution of the cliques between the columns.

    An edge lies between them if each side holds one that the other side does not.
    """
    wanted, below = set(columns), [set(clique) & set(columns) for clique in tree.cliques]
    for parent, child in reversed(tree.edges):
        below[parent] |= below[child]
    kept = [
        number
        for number, (_, child) in enumerate(tree.edges)
        if below[child] - set(tree.separators[number]) and wanted - below[child]
    ]
    root = tree.edges[kept[0]][0]
    factors = [(tree.cliques[root], marginals[root])]
    for number in kept:
        child, separator = tree.edges[number][1], tree.separators[number]
        clique, table = tree.cliques[child], marginals[child]
        mass = spread(tree.domain, table.sum(axis=rest(clique, separator)), separator, clique)
        factors.append((clique, np.divide(table, mass, out=np.zeros_like(table), where=mass > 0)))
    return factors


def _columns_with(factors: Sequence[Factor], column: int) -> Clique:
    """Columns of all factors with ``column``: those of their product."""
    return tuple(sorted({k for clique, _ in factors if column in clique for k in clique}))


def _multiply(domain: Domain, factors: Sequence[Factor], wanted: Clique) -> Factor:
    clique = tuple(sorted({column for own, _ in factors for column in own}))
    if domain.cells(clique) > MOST_CELLS:
        raise ConfigError(
            f"the marginal of columns {list(wanted)} passes through a table of "
            f"{domain.cells(clique):,} cells: ask for fewer columns together"
        )
    table = np.ones(domain.shape(clique))
    for own, values in factors:
        table *= spread(domain, values, own, clique)
    return clique, table
