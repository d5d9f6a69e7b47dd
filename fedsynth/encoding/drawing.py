"""Conformed values drawn within their codes, under conditions and in the order that is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.groups import Groups
from fedsynth.errors import ConfigError
from fedsynth.schema import Schema
from fedsynth.schema.columns import Numeric
from fedsynth.schema.conditions import Condition
from fedsynth.schema.constraints import Ordered
from fedsynth.schema.ordering import least, most

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
Columns = dict[str, NDArray[Any]]

# Draws within the codes before values are moved as little as the order demands. Draws keep the
# distribution, so they come first; what they rarely hit would take too many.
_REDRAWS = 20


@dataclass(frozen=True, eq=False)
class Draws:
    """What the codes [n] of one column stand for: a value each.

    choices: of each code, narrowed to what meets `condition`; None where a code is its category.
    size: number of codes that are not "missing".
    learned: the choices before they were narrowed.
    """

    choices: Bins | Groups | None
    codes: Whole
    size: int
    condition: Condition | None = None
    learned: Bins | Groups | None = None

    @classmethod
    def of(
        cls, choices: Bins | Groups | None, codes: Whole, size: int, condition: Condition | None
    ) -> Draws:
        """Draws under a condition, where the codes have any value that meets it."""
        learned = choices
        if choices is not None and condition is not None:
            choices, _ = restrict(choices, condition)
        return cls(choices, codes, size, condition, learned)

    def values(self, rows: Whole, rng: np.random.Generator) -> NDArray[Any]:
        """Conformed values of `rows`, drawn anew."""
        codes = self.codes[rows]
        present = codes < self.size
        if self.choices is None:
            return np.where(present, codes, -1)
        gap = np.nan if isinstance(self.choices, Bins) else -1
        return np.where(present, self.choices.decode(np.where(present, codes, 0), rng), gap)

    def widen_to_codes(self) -> Draws:
        """The same rows, free to take any value of their codes, those of no weight as well."""
        bins = self.learned
        assert isinstance(bins, Bins)
        even = Bins(bins.grid, bins.starts, bins.codes, bins.lengths.astype(np.float64))
        return Draws.of(even, self.codes, self.size, self.condition)

    def widen_to_bounds(self) -> Draws:
        """The same rows, free to take any value of the numeric column under the condition."""
        grid = _bins(self).grid
        whole = Bins(grid, np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1))
        return Draws.of(whole, np.zeros(len(self.codes), np.int64), 1, self.condition)


class Fixed(Draws):
    """Values that stand already: nothing else is drawn, and nothing moves them."""

    @staticmethod
    def at(values: NDArray[Any], draws: Draws) -> Fixed:
        """These conformed values, of rows [n] of the column that the draws are of."""
        if not isinstance(draws.choices, Bins):
            size = int(values.max(initial=-1)) + 1
            return Fixed(None, np.where(values < 0, size, values), size)
        grid, gaps = draws.choices.grid, np.isnan(values)
        units, codes = np.unique(grid.offsets(values[~gaps]), return_inverse=True)
        if not len(units):
            return Fixed(draws.choices, np.zeros(len(values), np.int64), 0)
        # Of each value a piece of its own, and what lies behind it up to the next has no weight.
        starts = np.unique(np.concatenate([[0], units, units + 1]))
        starts = starts[starts < grid.units]
        owner = np.maximum(np.searchsorted(units, starts, side="right") - 1, 0)
        bins = Bins(grid, starts, owner, np.isin(starts, units).astype(np.float64))
        placed = np.full(len(values), len(units))
        placed[~gaps] = codes
        return Fixed(bins, placed, len(units))

    def widen_to_codes(self) -> Draws:
        return self

    def widen_to_bounds(self) -> Draws:
        return self


def restrict(choices: Bins | Groups, condition: Condition) -> tuple[Bins | Groups, Array]:
    """What meets the condition, and the share of each code that does."""
    if isinstance(choices, Bins):
        return choices.restrict(condition.ranges)
    return choices.restrict(np.isin(np.arange(len(choices.codes)), condition.codes))


def order(
    columns: Columns, schema: Schema, draws: Mapping[str, Draws], rng: np.random.Generator
) -> None:
    """Have numbers meet the schema's `ordered` constraints, in place.

    Rows that do not are drawn anew within their codes, at last moved as little as need be: within
    their codes, and where these leave no room beyond them.

    Args:
        columns: conformed values by column, as drawn.
        draws: what they were drawn from.
        rng: a generator.

    Raises:
        ConfigError: the conditions of the draws leave no value in order.
    """
    constraints = [c for c in schema.rules if isinstance(c, Ordered)]
    names = list(dict.fromkeys(name for c in constraints for name in c.ordered))
    kinds = {name: _numeric(schema, name) for name in names}
    rows = np.arange(len(next(iter(columns.values()))))
    for attempt in range(_REDRAWS + 1):
        left = [_find_unordered(columns, c, kinds, rows) for c in constraints]
        bad, rows = [rows[mask] for mask in left], rows[np.logical_or.reduce(left)]
        if not len(rows):
            return
        for constraint, own in zip(constraints, bad, strict=True):
            for name in constraint.ordered if attempt < _REDRAWS else ():
                columns[name][own] = draws[name].values(own, rng)
    # A code's values without weight are as possible as the others: the model counts on them.
    wider: tuple[Callable[[Draws], Draws], ...] = (
        lambda own: own,
        lambda own: own.widen_to_codes(),
        lambda own: own.widen_to_bounds(),
    )
    for widen in wider:
        spaces = {name: widen(draws[name]) for name in names}
        _move(columns, constraints, kinds, spaces, rows)
        left = [_find_unordered(columns, c, kinds, rows) for c in constraints]
        rows = rows[np.logical_or.reduce(left)]
    if len(rows):
        raise ConfigError(
            f"the conditions leave no values of {', '.join(map(repr, names))} in the order that "
            "the schema demands; widen them"
        )


def _find_unordered(
    columns: Mapping[str, NDArray[Any]],
    constraint: Ordered,
    kinds: Mapping[str, Numeric],
    rows: Whole,
) -> Mask:
    pairs = [
        columns[low][rows] > most(kinds[low], kinds[high], columns[high][rows])
        for low, high in pairwise(constraint.ordered)
    ]
    unordered: Mask = np.logical_or.reduce(pairs)
    return unordered


def _move(
    columns: Columns,
    constraints: list[Ordered],
    kinds: Mapping[str, Numeric],
    spaces: Mapping[str, Draws],
    rows: Whole,
) -> None:
    """Lower values to the highest that leave room above, then lift each to those below it.

    The highest values in order are found first, from the top. No value beyond them is in any
    solution, and lifting from below them never passes them, so this finds one if there is any.
    """
    pairs = [pair for c in constraints for pair in pairwise(c.ordered)]
    codes = {name: space.codes[rows] for name, space in spaces.items()}
    highest = {name: np.where(np.isnan(columns[name][rows]), np.nan, np.inf) for name in spaces}
    for name in spaces:
        _lower(highest, name, np.full(len(rows), np.inf), spaces, codes)
    # Each pass settles one more column at least, unless constraints run in a circle.
    for _ in range(2 * len(spaces)):
        for low, high in reversed(pairs):
            _lower(highest, low, most(kinds[low], kinds[high], highest[high]), spaces, codes)
    moved = {name: np.minimum(columns[name][rows], highest[name]) for name in spaces}
    for _ in range(2 * len(spaces)):
        for low, high in pairs:
            _lift(moved, high, least(kinds[low], kinds[high], moved[low]), spaces, codes)
    solved = np.logical_and.reduce([~np.isinf(values) for values in moved.values()])
    for name, values in moved.items():
        columns[name][rows[solved]] = values[solved]


def _lower(
    values: Columns, name: str, most: Array, spaces: Mapping[str, Draws], codes: Mapping[str, Whole]
) -> None:
    """Lower one column's values that are above `most` to the highest that is not."""
    at = np.flatnonzero(values[name] >= most)
    values[name][at] = _bins(spaces[name]).round_down(most[at], codes[name][at])


def _lift(
    values: Columns,
    name: str,
    least: Array,
    spaces: Mapping[str, Draws],
    codes: Mapping[str, Whole],
) -> None:
    """Lift one column's values that are below `least` to the lowest that is not."""
    at = np.flatnonzero(values[name] < least)
    values[name][at] = _bins(spaces[name]).round_up(least[at], codes[name][at])


def _numeric(schema: Schema, name: str) -> Numeric:
    column = schema.column(name)
    assert isinstance(column, Numeric)
    return column


def _bins(draws: Draws) -> Bins:
    assert isinstance(draws.choices, Bins)
    return draws.choices
