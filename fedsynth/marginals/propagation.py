"""Belief propagation on a junction tree (Koller and Friedman 2009, chapter 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.marginals.domain import Array, Clique
from fedsynth.marginals.junction_tree import JunctionTree


def potentials_of(tree: JunctionTree, factors: Mapping[Clique, Array]) -> list[Array]:
    """Log-potential of every clique of the tree: the sum of the log-factors that it is home to."""
    potentials = [np.zeros(shape) for shape in tree.shapes]
    for clique, factor in factors.items():
        place = tree.place(clique)
        if place is None:
            raise ConfigError(f"the factor over columns {list(clique)} lies in no clique")
        potentials[place.home] += factor.reshape(place.shape)
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
    logs = [potential.copy() for potential in potentials]
    masses: list[Array] = [np.empty(0)] * len(logs)
    sums: list[Array] = []
    with np.errstate(divide="ignore"):
        for edge in reversed(tree.passes):
            mass, peaks = _scale(logs[edge.child], edge.child_rest)
            masses[edge.child] = mass
            held = np.add.reduce(mass, edge.child_rest, keepdims=True)
            sums.append(held)
            logs[edge.parent] += (np.log(held) + peaks).reshape(edge.parent_shape)
    masses[0], peak = _scale(logs[0], None)
    total = float(masses[0].sum())
    if total == 0:
        raise ConfigError(
            "no combination of values is possible: the conditions together have probability zero"
        )
    masses[0] /= total
    for edge, below in zip(tree.passes, reversed(sums), strict=True):
        above = np.add.reduce(masses[edge.parent], edge.parent_rest).reshape(edge.child_shape)
        masses[edge.child] *= np.divide(above, below, out=np.zeros(below.shape), where=below > 0)
    return masses, float(np.log(total) + float(peak.item()))


def _scale(logs: Array, axes: tuple[int, ...] | None) -> tuple[Array, Array]:
    """``exp(logs - peaks)``, the peaks being the largest entries along ``axes``."""
    peaks: Array = np.maximum.reduce(logs, axes, keepdims=True)
    peaks[peaks == -np.inf] = 0.0
    return np.exp(logs - peaks), peaks
