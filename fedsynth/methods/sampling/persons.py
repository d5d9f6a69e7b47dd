"""Invented persons: how many rows each has, and which rows are whose.

What is released of persons is how many rows they have, and what rows are like; not how the two go
together. So how many rows an invented person has hangs on none of its cells, and the table of rows
stays what the release describes: of persons with cells c_p, drawn from the model, and k_p rows the
expected share of rows that hold something is E[sum_p k_p P(it | c_p)] / E[sum_p k_p], and with k_p
independent of c_p that is E[P(it | c_p)], the model's, as if rows had been drawn one by one.

- `weigh: row`, a model of random rows: persons of many rows have left more in it, so an invented
  person is one to whom a random row belongs. Its cells are drawn by the model as it stands, and no
  person's rows count for more than they are.
- `weigh: person`, a model of rows of random persons: so are the invented ones, and where sizes hang
  on nothing their rows are both, random rows and rows of random persons.

Were sizes and cells released together, persons would be drawn with weights 1/k from a model of
random rows; of the two alone nothing says which persons have many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@runtime_checkable
class DrawsPersons(Protocol):
    """Something learned that draws rows given what in them is `of: person`."""

    def draw_persons(
        self,
        sizes: Whole,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        """Rows of persons, so many of each [persons], one person's behind each other."""
        ...


_GOLDEN = (5**0.5 - 1) / 2


def draw_sizes(shares: Floats, rows: int, rng: np.random.Generator) -> Whole:
    """How many rows each of some persons has, [persons], ``rows`` in all.

    Each size is as frequent as the shares say, and nearly so among any persons that stand together
    (multiples of the golden ratio, from a random start). One person, drawn at random, may have
    fewer than it should, so that the rows are as many as were asked.

    Args:
        shares: of persons that have 1, 2, .. rows, [most]; they sum to 1.
        rows: at least 1.
    """
    bars = np.cumsum(shares) / np.sum(shares)
    # Nobody has less than a row, so these are enough.
    places = (rng.random() + _GOLDEN * np.arange(rows)) % 1
    sizes = np.minimum(np.searchsorted(bars, places, side="right") + 1, len(shares))
    sums = np.cumsum(sizes)
    last = int(np.searchsorted(sums, rows))
    sizes, cut = sizes[: last + 1], int(sums[last]) - rows
    sizes[-1] -= cut
    if cut:
        other = int(rng.integers(len(sizes)))
        sizes[other], sizes[-1] = sizes[-1], sizes[other]
    return sizes.astype(np.int64)


def deal_sizes(sizes: Whole, cells: NDArray[np.generic], rng: np.random.Generator) -> Whole:
    """The same sizes, a person's each, such that persons of like cells have them in equal shares.

    Args:
        sizes: as :func:`draw_sizes` gives them, [persons].
        cells: of persons, [persons, columns]; whole numbers.
    """
    shuffled = rng.permutation(len(sizes))
    dealt = np.empty_like(sizes)
    own = cells[shuffled]
    dealt[shuffled[np.lexsort(own.T[::-1])] if own.shape[1] else shuffled] = sizes
    return dealt
