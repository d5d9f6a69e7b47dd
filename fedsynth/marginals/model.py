"""A fitted graphical model: marginals, conditions, rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.marginals.domain import Array, Clique, Domain, rest
from fedsynth.marginals.imputing import impute
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.propagation import potentials_of, propagate
from fedsynth.marginals.queries import marginalize
from fedsynth.marginals.sampling import Codes, sample

_PREFIX = "factor "


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
    def _propagation(self) -> tuple[list[Array], float]:
        return propagate(self.tree, potentials_of(self.tree, self.factors))

    @property
    def marginals(self) -> list[Array]:
        """Probabilities of each clique of the tree."""
        return self._propagation[0]

    @property
    def log_partition(self) -> float:
        """Logarithm of the sum over all combinations of the product of the factors."""
        return self._propagation[1]

    def marginal(self, columns: Clique) -> Array:
        """Probabilities over any columns, of shape [sizes of the columns], with sum 1.

        Columns that share no clique are joined along the tree (variable elimination).

        Raises:
            ConfigError: no such columns, or a table of more than 2**25 cells on the way.
        """
        columns = self.domain.check(columns)
        home = self.tree.home(columns)
        if home is None:
            return marginalize(self.tree, self.marginals, columns)
        marginal: Array = self.marginals[home].sum(axis=rest(self.tree.cliques[home], columns))
        return marginal

    def condition(self, evidence: Mapping[int, Array]) -> Model:
        """The distribution under conditions, exactly.

        Its total is the number of records that meet the conditions.

        Args:
            evidence: by column, the probability [size] that a row with each code meets the
                condition on it: zeros and ones, or anything between.

        Raises:
            ConfigError: weights of another length, negative ones, or conditions that together have
                probability zero.
        """
        factors = dict(self.factors)
        for column, weights in evidence.items():
            (column,) = self.domain.check((column,))
            size = self.domain.sizes[column]
            if weights.shape != (size,) or not ((weights >= 0) & (weights < np.inf)).all():
                raise ConfigError(
                    f"column {column} needs a weight of at least 0 for each of its {size} codes"
                )
            with np.errstate(divide="ignore"):
                logs = np.log(weights)
            factors[(column,)] = factors.get((column,), np.zeros(size)) + logs
        unscaled = Model(self.tree, factors, self.total)
        chance = unscaled.log_partition - self.log_partition
        return Model(self.tree, factors, self.total * float(np.exp(chance)))

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Codes int32 [rows, d]: see :func:`fedsynth.marginals.sampling.sample`."""
        return sample(self.tree, self.marginals, rows, rng)

    def impute(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Codes without gaps (-1): see :func:`fedsynth.marginals.imputing.impute`."""
        return impute(self.tree, potentials_of(self.tree, self.factors), codes, rng)

    def to_arrays(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays by name, and JSON-able values, from which :meth:`from_arrays` builds an equal."""
        arrays = {_PREFIX + " ".join(map(str, c)): f for c, f in self.factors.items()}
        meta = {
            "sizes": list(self.domain.sizes),
            "cliques": [list(clique) for clique in self.tree.cliques],
            "edges": [list(edge) for edge in self.tree.edges],
            "total": self.total,
        }
        return arrays, meta

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Model:
        """Raises ReleaseError where the parts are damaged or do not fit together."""
        try:
            domain = Domain(tuple(int(size) for size in meta["sizes"]))
            cliques = tuple(domain.check(clique) for clique in meta["cliques"])
            tree = JunctionTree(domain, cliques, tuple((int(a), int(b)) for a, b in meta["edges"]))
            factors = {
                domain.check([int(k) for k in name.removeprefix(_PREFIX).split()]): np.asarray(
                    array, np.float64
                )
                for name, array in arrays.items()
                if name.startswith(_PREFIX)
            }
            model = Model(tree, factors, float(meta["total"]))
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise ReleaseError("the model's parts are damaged: load another copy") from error
        consistent = all(
            f.shape == domain.shape(c) and tree.home(c) is not None and (f < np.inf).all()
            for c, f in factors.items()
        )
        if not consistent or not 0 <= model.total < np.inf:
            raise ReleaseError("the model's factors do not fit its columns: load another copy")
        return model
