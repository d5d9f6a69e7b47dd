"""A fitted graphical model: marginals, conditions, rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.marginals.domain import Array, Clique, Domain, rest, spread
from fedsynth.marginals.imputing import impute
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.propagation import potentials_of, propagate
from fedsynth.marginals.sampling import Codes, sample

MOST_CELLS = 2**25
"""Cells of a table that a query may build on its way, 256 MB."""


@dataclass(frozen=True, eq=False)
class Model:
    """The distribution proportional to the product of factors, on a junction tree.

    Attributes:
        tree: in which every factor's columns lie within a clique.
        factors: logarithms, by clique, of shape [sizes of its columns]; minus infinity is a
            structural zero.
        total: number of records that the distribution stands for.
        step: size of the last step that fitted it, for a fit that continues from here.
    """

    tree: JunctionTree
    factors: Mapping[Clique, Array]
    total: float
    step: float = 1.0

    @property
    def domain(self) -> Domain:
        return self.tree.domain

    @cached_property
    def _propagated(self) -> tuple[list[Array], float]:
        return propagate(self.tree, potentials_of(self.tree, self.factors))

    @property
    def marginals(self) -> list[Array]:
        """Probabilities of each clique of the tree."""
        return self._propagated[0]

    @property
    def log_partition(self) -> float:
        """Logarithm of the sum over all combinations of the product of the factors."""
        return self._propagated[1]

    def marginal(self, columns: Clique) -> Array:
        """Probabilities over any columns, of shape [sizes of the columns], with sum 1.

        Columns that share no clique are joined along the tree (variable elimination).

        Raises:
            ConfigError: no such columns, or a table of more than 2**25 cells on the way.
        """
        columns = self.domain.check(columns)
        home = self.tree.home(columns)
        if home is not None:
            found, table = self.tree.cliques[home], self.marginals[home]
        else:
            found, table = _joined(self, frozenset(columns))
        wanted: Array = table.sum(axis=rest(found, columns))
        return wanted

    def given(self, evidence: Mapping[int, Array]) -> Model:
        """The distribution under conditions, exactly.

        Args:
            evidence: by column, the probability [size] that a row with each code meets the
                condition on it: zeros and ones, or anything between.

        Raises:
            ConfigError: weights of another length, negative ones, or conditions that no row meets.
        """
        factors = dict(self.factors)
        for column, weights in evidence.items():
            if weights.shape != (self.domain.sizes[column],) or not (weights >= 0).all():
                raise ConfigError(f"column {column} needs a weight of at least 0 for each code")
            with np.errstate(divide="ignore"):
                logs = np.log(weights)
            factors[(column,)] = factors.get((column,), np.zeros(len(weights))) + logs
        found = Model(self.tree, factors, self.total)
        chance = found.log_partition - self.log_partition
        return Model(self.tree, factors, self.total * float(np.exp(chance)))

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Codes int32 [rows, d]: see :func:`fedsynth.marginals.sampling.sample`."""
        return sample(self.tree, self.marginals, rows, rng)

    def impute(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Codes without gaps (-1): see :func:`fedsynth.marginals.imputing.impute`."""
        return impute(self.tree, potentials_of(self.tree, self.factors), codes, rng)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and JSON-able values, from which :meth:`from_arrays` builds an equal."""
        arrays = {"factor " + " ".join(map(str, c)): f for c, f in self.factors.items()}
        cliques = [list(clique) for clique in self.tree.cliques]
        return arrays, {"sizes": list(self.domain.sizes), "cliques": cliques, "total": self.total}

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Model:
        """Raises ReleaseError where the parts do not fit together."""
        try:
            domain = Domain(tuple(int(size) for size in meta["sizes"]))
            tree = JunctionTree.of(domain, meta["cliques"])
            factors = {
                domain.check(name.split()[1:]): np.asarray(array, np.float64)  # type: ignore[arg-type]
                for name, array in arrays.items()
                if name.startswith("factor ")
            }
            fitting = all(
                f.shape == domain.shape(c) and tree.home(c) is not None for c, f in factors.items()
            )
            total = float(meta["total"])
        except (KeyError, TypeError, ValueError, ConfigError):
            fitting = False
        if not fitting:
            raise ReleaseError("the model's factors do not fit its columns")
        return Model(tree, factors, total)


def _joined(model: Model, wanted: frozenset[int]) -> tuple[Clique, Array]:
    """A table over at least the wanted columns, by passing them up the tree."""
    tree, domain, marginals = model.tree, model.domain, model.marginals
    tables = {i: (clique, marginals[i]) for i, clique in enumerate(tree.cliques)}
    for number in range(len(tree.edges) - 1, -1, -1):
        parent, child = tree.edges[number]
        separator = tree.separators[number]
        columns, table = tables.pop(child)
        kept = tuple(k for k in columns if k in separator or k in wanted)
        above, upper = tables[parent]
        if set(kept) <= set(above):
            continue
        table = table.sum(axis=rest(columns, kept))
        below = table.sum(axis=rest(kept, separator))
        shares = np.divide(
            table,
            spread(domain, below, separator, kept),
            out=np.zeros_like(table),
            where=spread(domain, below, separator, kept) > 0,
        )
        union = tuple(sorted({*above, *kept}))
        if domain.cells(union) > MOST_CELLS:
            raise ConfigError(
                f"the marginal of columns {sorted(wanted)} passes through a table of "
                f"{domain.cells(union):,} cells: ask for fewer columns together"
            )
        joined = spread(domain, upper, above, union) * spread(domain, shares, kept, union)
        tables[parent] = (union, joined)
    return tables[0]
