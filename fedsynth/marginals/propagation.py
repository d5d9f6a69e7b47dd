"""Belief propagation on a junction tree (Koller and Friedman 2009, chapter 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.marginals.domain import Array, Clique, rest, spread
from fedsynth.marginals.junction_tree import JunctionTree


def potentials_of(tree: JunctionTree, factors: Mapping[Clique, Array]) -> list[Array]:
    """Log-potential of every clique of the tree: the sum of the log-factors that it is home to."""
    potentials = [np.zeros(tree.domain.shape(clique)) for clique in tree.cliques]
    for clique, factor in factors.items():
        home = tree.home(clique)
        if home is None:
            raise ConfigError(f"the factor over columns {list(clique)} lies in no clique")
        potentials[home] += spread(tree.domain, factor, clique, tree.cliques[home])
    return potentials


def propagate(tree: JunctionTree, potentials: Sequence[Array]) -> tuple[list[Array], float]:
    """The distribution proportional to the exponential of all log-potentials together.

    Upwards, messages are logarithms, each scaled by its own largest entry, so that nothing
    overflows; downwards, what is left of every table is one multiplication.

    Args:
        potentials: one log-table a clique; minus infinity is a structural zero.

    Returns:
        Each clique's marginal, with sum 1, and the logarithm of the normalising constant.

    Raises:
        ConfigError: every cell is impossible.
    """
    domain, cliques = tree.domain, tree.cliques
    logs = [potential.copy() for potential in potentials]
    masses: list[Array] = [np.empty(0)] * len(cliques)
    sums: list[Array] = [np.empty(0)] * len(tree.edges)
    with np.errstate(divide="ignore"):
        for number in range(len(tree.edges) - 1, -1, -1):
            parent, child = tree.edges[number]
            separator = tree.separators[number]
            axes = rest(cliques[child], separator)
            masses[child], peaks = _scale(logs[child], axes)
            sums[number] = masses[child].sum(axis=axes)
            message = np.log(sums[number]) + peaks
            logs[parent] += spread(domain, message, separator, cliques[parent])
    masses[0], peak = _scale(logs[0], tuple(range(logs[0].ndim)))
    total = float(masses[0].sum())
    if total == 0:
        raise ConfigError(
            "no combination of values is possible: the conditions together have probability zero"
        )
    masses[0] /= total
    for number, (parent, child) in enumerate(tree.edges):
        separator = tree.separators[number]
        above = masses[parent].sum(axis=rest(cliques[parent], separator))
        below = sums[number]
        scale = np.divide(above, below, out=np.zeros_like(below), where=below > 0)
        masses[child] *= spread(domain, scale, separator, cliques[child])
    return masses, float(np.log(total) + peak)


def _scale(logs: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """``exp(logs - peaks)``, the peaks being the largest entries along ``axes``."""
    peaks = logs.max(axis=axes, keepdims=True)
    peaks[peaks == -np.inf] = 0.0
    return np.exp(logs - peaks), peaks.squeeze(axes)
