"""Conditions on rows, and which rows of a table meet them.

A predicate is a conjunction of closed intervals, one a column: [v, v] for "equals", [v, largest]
for "at least". A gap is held as infinity, which no interval over numbers contains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.evaluation.reading.rows import Rows

_TRIALS = 20
"""Times that as many descriptions as wanted are made, before giving up on more unique ones."""

_COMPARED = 2**20
"""Rows, about, that are compared with conditions at a time: bounds memory."""

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Predicates:
    """n predicates of q columns each: the columns' places, and the limits, all [n, q]."""

    columns: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Predicates:
        """The predicates at these places."""
        return Predicates(self.columns[places], self.low[places], self.high[places])


@dataclass(frozen=True, eq=False)
class Indexed:
    """A table's values [n, d] with gaps as infinity, and of each column the order of its rows.

    owners: whose each row is, of the `people`; None where each is somebody's own.
    """

    values: NDArray[np.float64]
    order: NDArray[np.int32]
    owners: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, rows: Rows, *, distinct: bool = False) -> Indexed:
        """Sorted by every column; of equal rows only the first if `distinct`."""
        values = np.where(np.isnan(rows.values), np.inf, rows.values)
        if distinct:
            values = values[~pd.DataFrame(values).duplicated().to_numpy()]
        values = np.asfortranarray(values)
        owners = None if distinct or rows.persons is None else rows.people
        return cls(values, np.argsort(values, axis=0).astype(np.int32), owners)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def people(self) -> int:
        """How many have rows here."""
        return len(self) if self.owners is None else int(self.owners.max()) + 1

    def meeting(self, predicates: Predicates) -> list[NDArray[np.integer[Any]]]:
        """Of each predicate, who has a row that meets all its conditions."""
        rows = self.matches(predicates)
        return list(rows) if self.owners is None else [np.unique(self.owners[r]) for r in rows]

    def matches(self, predicates: Predicates) -> list[NDArray[np.int32]]:
        """Of each predicate, the rows that meet all its conditions.

        Rows are looked up by the condition that fewest meet, and only these compared by the others.
        """
        starts, ends = (np.empty(predicates.columns.shape, np.int64) for _ in range(2))
        for j in range(self.values.shape[1]):
            here = predicates.columns == j
            rising = self.values[self.order[:, j], j]
            starts[here] = np.searchsorted(rising, predicates.low[here], "left")
            ends[here] = np.searchsorted(rising, predicates.high[here], "right")
        by_rarity = np.argsort(ends - starts, axis=1, kind="stable")
        first = by_rarity[:, :1]
        starts, ends = (np.take_along_axis(each, first, axis=1)[:, 0] for each in (starts, ends))
        blocks = np.flatnonzero(np.diff(np.cumsum(ends - starts) // _COMPARED)) + 1
        return [
            rows
            for places in np.split(np.arange(len(predicates)), blocks)
            for rows in self._meeting(predicates, places, by_rarity, starts, ends)
        ]

    def _meeting(
        self,
        predicates: Predicates,
        places: NDArray[np.int64],
        by_rarity: NDArray[np.int64],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> list[NDArray[np.int32]]:
        """Of the predicates at these places, compared together; their rarest condition is met from
        `starts` to `ends` of its column's order."""
        counts = (ends - starts)[places]
        tried = np.repeat(places, counts)
        within = np.arange(len(tried)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self.order[starts[tried] + within, predicates.columns[tried, by_rarity[tried, 0]]]
        for k in by_rarity.T[1:]:
            one = tried, k[tried]
            cells = self.values[rows, predicates.columns[one]]
            met = (cells >= predicates.low[one]) & (cells <= predicates.high[one])
            rows, tried = rows[met], tried[met]
        return np.split(rows, np.searchsorted(tried, places[1:]))[: len(places)]


def of_one_column(
    made: Indexed, sizes: tuple[int, ...], attempts: int, rng: np.random.Generator
) -> Predicates:
    """At most `attempts` conditions [n, 1] on one column that one row of `made` meets."""
    candidates: list[tuple[int, float, float]] = []
    for j, size in enumerate(sizes):
        values, counts = np.unique(made.values[:, j], return_counts=True)
        rare = values[counts == 1]
        candidates += [(j, value, value) for value in rare.tolist()]
        known = values[np.isfinite(values)]
        if size == 0 and len(known) > 1:
            candidates += [(j, -LARGEST, known[0])] if known[0] in rare else []
            candidates += [(j, known[-1], LARGEST)] if known[-1] in rare else []
    drawn = np.array(candidates).reshape(-1, 3)[rng.permutation(len(candidates))[:attempts]]
    return Predicates(drawn[:, :1].astype(np.int64), drawn[:, 1:2], drawn[:, 2:])


def of_several(
    made: Indexed, sizes: tuple[int, ...], columns: int, attempts: int, rng: np.random.Generator
) -> Predicates:
    """At most `attempts` descriptions [n, columns], each of another row of `made` and of no other.

    One a row, since several of the same row would succeed or fail together.
    """
    known = np.where(np.isfinite(made.values), made.values, np.nan)
    middle = np.array([np.median(c[~np.isnan(c)]) if (~np.isnan(c)).any() else 0 for c in known.T])
    left, wanted, kept = np.arange(len(made)), attempts, []
    for _ in range(_TRIALS):
        rows = rng.choice(left, min(attempts, len(left)), replace=False)
        drawn = _describe(made, rows, sizes, middle, columns, rng)
        alone = np.flatnonzero([len(met) == 1 for met in made.matches(drawn)])[:wanted]
        kept.append(drawn.take(alone))
        left, wanted = np.setdiff1d(left, rows[alone]), wanted - len(alone)
        if wanted == 0 or len(left) == 0:
            break
    parts = zip(*((each.columns, each.low, each.high) for each in kept), strict=True)
    return Predicates(*map(np.concatenate, parts))


def _describe(
    made: Indexed,
    rows: NDArray[np.int64],
    sizes: tuple[int, ...],
    middle: NDArray[np.float64],
    columns: int,
    rng: np.random.Generator,
) -> Predicates:
    """Descriptions of rows [n] by as many random columns each, in rising order."""
    chosen = np.argsort(rng.random((len(rows), len(sizes))), axis=1)[:, :columns]
    chosen = np.sort(chosen, axis=1)
    values = made.values[rows[:, None], chosen]
    number = (np.array(sizes)[chosen] == 0) & np.isfinite(values)
    above = values > middle[chosen]
    low = np.where(number & ~above, -LARGEST, values)
    return Predicates(chosen, low, np.where(number & above, LARGEST, values))


def at_random(
    made: Indexed, sizes: tuple[int, ...], columns: int, count: int, rng: np.random.Generator
) -> Predicates:
    """What a guesser tries: random columns, values that occur in them, and relations."""
    chosen = np.argsort(rng.random((count, len(sizes))), axis=1)[:, :columns]
    values = np.empty(chosen.shape)
    for j in range(len(sizes)):
        occurring, here = np.unique(made.values[:, j]), chosen == j
        values[here] = rng.choice(occurring, here.sum())
    relation = rng.integers(3, size=chosen.shape)
    relation[(np.array(sizes)[chosen] > 0) | np.isinf(values)] = 0
    low = np.where(relation == 1, -LARGEST, values)
    return Predicates(chosen, low, np.where(relation == 2, LARGEST, values))
