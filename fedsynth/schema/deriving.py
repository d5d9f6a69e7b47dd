"""Columns that follow from others by `equal`, `sum` and `determines`: made with every row.

What follows from other columns is never asked about, so it costs no privacy, and it holds
in every row because nothing else can be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import SchemaError
from fedsynth.schema.columns import Identifier, Modelled
from fedsynth.schema.constraints import Constraint, Equal, Never, Ordered, Sum, number_of
from fedsynth.schema.determining import Determines, follow
from fedsynth.schema.ordering import lead
from fedsynth.schema.rounding import round_to_grid

Columns = Mapping[str, Modelled | Identifier]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Derivation:
    """A column that is another one (a single source), the sum of some, or settled by one."""

    name: str
    sources: tuple[str, ...]
    summed: bool = False
    settled: Determines | None = None

    @property
    def same(self) -> bool:
        """Whether it is another one."""
        return not self.summed and self.settled is None

    def lead(self, of: Columns) -> float:
        """What a sum of its parts lacks of it (:func:`~fedsynth.schema.ordering.lead`)."""
        return lead(number_of(of[self.name]), [number_of(of[name]) for name in self.sources])

    @property
    def words(self) -> str:
        """What it is, for messages."""
        how = "is the sum of" if self.summed else "equals" if self.same else "is settled by"
        return f"{self.name!r} {how} {', '.join(map(repr, self.sources))}"


def plan_derivations(
    constraints: Iterable[Constraint], target: str | None
) -> tuple[Derivation, ...]:
    """What follows from what, in the order in which it can be made.

    Raises:
        SchemaError: a column would follow from several, or from itself, or is the target.
    """
    given = tuple(constraints)
    found: dict[str, Derivation] = {}
    for one in given:
        if isinstance(one, Determines):
            made = Derivation(one.column, (one.source,), settled=one)
        elif isinstance(one, Sum):
            made = Derivation(one.total, one.parts, summed=True)
        else:
            continue
        if made.name in found:
            raise SchemaError(f"{made.name!r} follows by two constraints: leave one out")
        if made.name == target:
            raise SchemaError(
                f"the target {made.words}, so it follows and there is nothing to predict: drop the "
                "constraint"
            )
        found[made.name] = made
    for names in _groups(given):
        totals = [name for name in names if name in found]
        if len(totals) > 1:
            raise SchemaError(
                f"{' and '.join(map(repr, totals))} follow from others, and are equal: keep one"
            )
        kept = totals[0] if totals else target if target in names else names[0]
        if totals and target in names:
            raise SchemaError(
                f"the target {target!r} equals {kept!r}, which follows from others: drop one"
            )
        for name in names:
            if name != kept:
                found[name] = Derivation(name, (kept,))
    ordered: list[Derivation] = []
    left = dict(found)
    while left:
        ready = [one for one in left.values() if not set(one.sources) & set(left)]
        if not ready:
            raise SchemaError(f"{', '.join(map(repr, left))} follow from each other in a circle")
        ordered += ready
        for made in ready:
            del left[made.name]
    return tuple(ordered)


def _groups(constraints: Iterable[Constraint]) -> list[tuple[str, ...]]:
    """Columns that are all equal, in the order in which they are named."""
    groups: list[tuple[str, ...]] = []
    for one in constraints:
        if isinstance(one, Equal):
            near = [group for group in groups if set(group) & set(one.equal)]
            groups = [group for group in groups if group not in near]
            groups.append(tuple(dict.fromkeys([*(n for group in near for n in group), *one.equal])))
    return groups


def rewrite(
    constraints: Iterable[Constraint], derivations: tuple[Derivation, ...]
) -> tuple[Never | Ordered, ...]:
    """The other constraints, of columns that nothing follows for.

    Raises:
        SchemaError: one is about a total or a settled column, or about two that are equal.
    """
    totals = {one.name: one for one in derivations if not one.same}
    same = {one.name: one.sources[0] for one in derivations if one.same}
    rules: list[Never | Ordered] = []
    for number, one in enumerate(constraints, 1):
        if not isinstance(one, Never | Ordered):
            continue
        names = [same.get(name, name) for name in one.names()]
        for name in names:
            if name in totals:
                raise SchemaError(
                    f"constraint {number} is about {name!r}, which follows from others "
                    f"({totals[name].words}): state it of these"
                )
        if len(set(names)) < len(names):
            raise SchemaError(f"constraint {number} names two columns that are equal: name one")
        rules.append(one.rename(same))
    return tuple(rules)


def derive(
    arrays: Mapping[str, NDArray[Any]], derivations: Iterable[Derivation], of: Columns
) -> Arrays:
    """Conformed columns [n] and those that follow from them."""
    made = dict(arrays)
    for one in derivations:
        sources = [made[name] for name in one.sources]
        if one.settled is not None:
            made[one.name] = follow(sources[0], one.settled.table(of))
        else:
            made[one.name] = _add(sources, one, of) if one.summed else sources[0]
    return made


def _add(parts: list[NDArray[Any]], one: Derivation, of: Columns) -> NDArray[np.float64]:
    sums = np.sum([part.astype(np.float64) for part in parts], axis=0) + one.lead(of)
    # Decimal numbers are not exact: 0.1 + 0.2 is on the total's grid all the same.
    return round_to_grid(sums, number_of(of[one.name]))


def fill_back(
    arrays: Mapping[str, NDArray[Any]], derivations: tuple[Derivation, ...], of: Columns
) -> Arrays:
    """Gaps of sources filled from what follows from them: from an equal column, from a settled one
    where a single value settles it so, and the only unknown part of a known total where the rest
    is a value that the part may have."""
    filled = {name: values.copy() for name, values in arrays.items()}
    for one in reversed(derivations):
        total = filled[one.name]
        if one.settled is not None:
            source = filled[one.sources[0]]
            codes, counts = _read_back(total, one.settled.table(of))
            told = is_gap(source) & (counts == 1)
            source[told] = codes[told]
            continue
        if one.same:
            source = filled[one.sources[0]]
            told = is_gap(source) & ~is_gap(total)
            source[told] = total[told]
            continue
        gaps = np.array([is_gap(filled[name]) for name in one.sources])
        for k, name in enumerate(one.sources):
            at = np.flatnonzero(gaps[k] & (gaps.sum(axis=0) == 1) & ~is_gap(total))
            others = [filled[other][at] for other in one.sources if other != name]
            rest = total[at] - one.lead(of) - np.sum(others, axis=0)
            column = number_of(of[name])
            placed = round_to_grid(rest, column)
            fits = np.abs(placed - rest) < column.unit * 1e-6
            filled[name][at[fits]] = placed[fits]
    return filled


def settle(
    drawn: Mapping[str, NDArray[Any]],
    known: Mapping[str, NDArray[Any]],
    derivations: tuple[Derivation, ...],
    of: Columns,
) -> Arrays:
    """Parts that were drawn beside a known total, moved as little as need be to sum to it.

    Args:
        drawn: whole columns [n].
        known: the same with gaps where cells were drawn; totals included.
    """
    known = dict(known)
    moved = {
        name: np.where(is_gap(known[name]), values, known[name]) for name, values in drawn.items()
    }
    for one in reversed(derivations):
        if one.settled is not None:
            # What was drawn beside a known value becomes the first that settles it so.
            source, value = one.sources[0], known[one.name]
            table = one.settled.table(of)
            codes, counts = _read_back(value, table)
            apart = ~np.isclose(follow(moved[source], table), value)
            at = is_gap(known[source]) & (counts > 0) & apart
            moved[source] = np.where(at, codes, moved[source])
            continue
        if one.same:
            known[one.sources[0]] = np.where(
                is_gap(known[one.sources[0]]), known[one.name], known[one.sources[0]]
            )
            at = ~is_gap(known[one.sources[0]])
            moved[one.sources[0]][at] = known[one.sources[0]][at]
            continue
        total = known[one.name]
        left = total - one.lead(of) - np.sum([moved[name] for name in one.sources], axis=0)
        left = np.where(is_gap(total), 0.0, left)
        free = {name: is_gap(known[name]) for name in one.sources}
        left = _move(moved, left, one.sources, free, of)
        # A coarse part may have been rounded by more than finer ones have room for.
        for name in one.sources:
            step = np.where(np.abs(left) > 1e-9, np.sign(left), 0.0) * number_of(of[name]).unit
            left = left - step + _move(moved, step, [name], free, of)
            left = _move(moved, left, [*reversed(one.sources)], free, of)
        for name in one.sources:
            # What sums to it in turn has to keep to it.
            known[name] = np.where(is_gap(total), known[name], moved[name])
    return moved


def _move(
    moved: Arrays,
    left: NDArray[np.float64],
    names: Sequence[str],
    free: Mapping[str, NDArray[np.bool_]],
    of: Columns,
) -> NDArray[np.float64]:
    """Add to each free cell in turn as much of what is left [n] as it may hold; what then is."""
    for name in names:
        column = number_of(of[name])
        wanted = np.where(free[name], round_to_grid(moved[name] + left, column), moved[name])
        left, moved[name] = left - (wanted - moved[name]), wanted
    return left


def _read_back(
    values: NDArray[Any], table: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first code [n] that settles each value [n] so, and how many do; 0 and 0 of gaps."""
    matches = np.isclose(values[:, None], table[None, :]) & ~is_gap(values)[:, None]
    return matches.argmax(axis=1), matches.sum(axis=1)


def is_gap(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which conformed cells are missing."""
    return values < 0 if values.dtype.kind == "i" else np.isnan(values)
