"""The columns of a table as a model sees them: how many codes each has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError

Array = NDArray[np.float64]
Clique = tuple[int, ...]
"""Positions of columns, strictly rising."""


@dataclass(frozen=True)
class Domain:
    """Number of codes of each column, all at least 1.

    Raises:
        ConfigError: no column, or one without codes.
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ConfigError("a domain needs at least one column, and each at least one code")

    def __len__(self) -> int:
        return len(self.sizes)

    def shape(self, clique: Sequence[int]) -> tuple[int, ...]:
        """Shape of a table over the clique's columns; () for no column."""
        return tuple(self.sizes[column] for column in clique)

    def cells(self, clique: Sequence[int]) -> int:
        """Entries of a table over the clique's columns."""
        return math.prod(self.shape(clique))

    def check(self, clique: Sequence[int]) -> Clique:
        """The clique, if it is one. Raises ConfigError naming it otherwise."""
        columns = tuple(int(column) for column in clique)
        rising = all(a < b for a, b in itertools.pairwise(columns))
        if not columns or not rising or not 0 <= columns[0] <= columns[-1] < len(self):
            raise ConfigError(
                f"{list(columns)} is no set of columns of a table of {len(self)}: give different "
                "positions, rising from 0"
            )
        return columns


def positions(
    domain: Domain, codes: NDArray[np.integer[Any]], columns: Sequence[int]
) -> NDArray[np.int64]:
    """Place [n] of each row of codes [n, d] in the flat table over ``columns``."""
    places = np.zeros(len(codes), np.int64)
    for column in columns:
        places *= domain.sizes[column]
        places += codes[:, column]
    return places


def count(domain: Domain, codes: NDArray[np.integer[Any]], clique: Clique) -> Array:
    """How many rows of codes [n, d], each below its column's size, a cell of the table holds."""
    flat = np.bincount(positions(domain, codes, clique), minlength=domain.cells(clique))
    return flat.astype(np.float64).reshape(domain.shape(clique))


def spread(domain: Domain, values: Array, clique: Clique, over: Clique) -> Array:
    """A table over ``clique`` as a view that broadcasts against tables over its superset."""
    shape = [domain.sizes[column] if column in clique else 1 for column in over]
    return values.reshape(shape)


def rest(over: Clique, clique: Clique) -> tuple[int, ...]:
    """Axes of a table over ``over`` that are not columns of ``clique``: those to sum out."""
    return tuple(axis for axis, column in enumerate(over) if column not in clique)
