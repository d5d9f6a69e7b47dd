"""What no row of a table can be, known in public: impossible combinations, columns out of order, or
that do not equal, sum or settle others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from fedsynth.agreed import Agreed, plain, suggestion
from fedsynth.errors import SchemaError
from fedsynth.schema.columns import Continuous, Datetime, Identifier, Integer, Modelled, Numeric
from fedsynth.schema.conditions import Condition, condition_on
from fedsynth.schema.determining import Determines
from fedsynth.schema.ordering import demand_comparable, lead, most
from fedsynth.schema.rounding import decimals_of

Columns = Mapping[str, Modelled | Identifier]
Arrays = Mapping[str, NDArray[Any]]


def _normalize(value: object) -> object:
    """Conditions in values that a file keeps as they are, so that they read back as equal."""
    if isinstance(value, Mapping):
        return {key: _normalize(entry) for key, entry in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_normalize(entry) for entry in value), key=repr)
    if isinstance(value, tuple):
        # No file keeps it, and what it is hangs on the column.
        raise ValueError(
            "holds a tuple: write a range as {from: 30, to: 40}, and values as a list, [30, 40]"
        )
    value = plain(value)
    if isinstance(value, list):
        return [_normalize(entry) for entry in value]
    import pandas as pd

    if pd.isna(value):  # type: ignore[call-overload]
        return None
    return value.isoformat() if isinstance(value, date) else value


class Never(Agreed):
    """A combination that no row has: all of these conditions at once.

    ``never``: by column, a condition as for drawing rows (a value, a list, a range, or null for
    missing).
    """

    never: Annotated[
        dict[str, Any],
        BeforeValidator(_normalize),
        Field(min_length=1, description="conditions by column, such as {age: 0}"),
    ]

    def names(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return tuple(self.never)

    def rename(self, names: Mapping[str, str]) -> Never:
        """The same of columns that are called otherwise."""
        return Never(never={names.get(name, name): given for name, given in self.never.items()})

    def words(self) -> str:
        """What the columns are to be, for reports."""
        return ", ".join(spell(given) for given in self.never.values())

    def conditions(self, columns: Columns) -> dict[str, Condition]:
        """Raises ConfigError for a condition that the column does not know."""
        return {name: condition_on(columns[name], given) for name, given in self.never.items()}

    def excludes(self, given: Mapping[str, Condition], columns: Columns) -> bool:
        """Whether every row that meets these conditions, by column, breaks it."""
        return all(
            name in given and given[name].within(one)
            for name, one in self.conditions(columns).items()
        )

    def demand(self, columns: Columns) -> None:
        """Raises an error where it does not fit the columns."""
        self.conditions(columns)

    def broken(self, arrays: Arrays, columns: Columns) -> NDArray[np.bool_]:
        """Which rows [n] of conformed columns break it."""
        met = [one.holds(arrays[name]) for name, one in self.conditions(columns).items()]
        broken: NDArray[np.bool_] = np.logical_and.reduce(met)
        return broken


class Ordered(Agreed):
    """Numbers or dates that rise, or stay, from column to column, where neither is missing."""

    ordered: Annotated[
        tuple[str, ...], Field(min_length=2, description="a list of two or more columns")
    ]

    def names(self) -> tuple[str, ...]:
        """The columns that it is about, lowest first."""
        return self.ordered

    def rename(self, names: Mapping[str, str]) -> Ordered:
        """The same of columns that are called otherwise."""
        return Ordered(ordered=tuple(names.get(name, name) for name in self.ordered))

    def words(self) -> str:
        """What the columns are to be, for reports."""
        return "each at most the next"

    def demand(self, columns: Columns) -> None:
        """Raises SchemaError where the columns cannot be compared."""
        if len(set(self.ordered)) < len(self.ordered):
            raise SchemaError("names a column twice")
        numbers = demand_comparable([columns[name] for name in self.ordered])
        known = {column.name: column for column in numbers}
        for first, second in combinations(self.ordered, 2):
            lower, upper = known[first], known[second]
            if lower.low > most(lower, upper, np.array(upper.high)):
                raise SchemaError(f"every {first!r} lies above every {second!r}, by their bounds")

    def broken(self, arrays: Arrays, columns: Columns) -> NDArray[np.bool_]:
        """Which rows [n] of conformed columns break it."""
        with np.errstate(invalid="ignore"):
            pairs = [
                arrays[low] > most(number_of(columns[low]), number_of(columns[high]), arrays[high])
                for low, high in pairwise(self.ordered)
            ]
        broken: NDArray[np.bool_] = np.logical_or.reduce(pairs)
        return broken


class Equal(Agreed):
    """Columns that hold the same in every row, gaps included: one is learned, the others follow."""

    equal: Annotated[
        tuple[str, ...], Field(min_length=2, description="a list of two or more columns")
    ]

    def names(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.equal

    def rename(self, names: Mapping[str, str]) -> Equal:
        """The same of columns that are called otherwise."""
        return Equal(equal=tuple(names.get(name, name) for name in self.equal))

    def words(self) -> str:
        """What the columns are to be, for reports."""
        return "all the same"

    def demand(self, columns: Columns) -> None:
        """Raises SchemaError where the columns hold other values."""
        if len(set(self.equal)) < len(self.equal):
            raise SchemaError("names a column twice")
        first, *others = (columns[name] for name in self.equal)
        for other in others:
            differ = ["kind"] if other.kind != first.kind else _differ(first, other)
            if differ:
                raise SchemaError(
                    f"equal columns hold the same values, but {first.name!r} and {other.name!r} "
                    f"differ in {', '.join(f'`{key}`' for key in differ)}: declare them alike"
                )

    def broken(self, arrays: Arrays, columns: Columns) -> NDArray[np.bool_]:
        """Which rows [n] of conformed columns break it."""
        first, *others = (arrays[name] for name in self.equal)
        known = ~_is_gap(first)
        broken: NDArray[np.bool_] = np.logical_or.reduce(
            [(_is_gap(other) == known) | (known & (other != first)) for other in others]
        )
        return broken


class Total(Agreed):
    """A column and the columns that it sums."""

    total: Annotated[str, Field(description="the name of a column")]
    parts: Annotated[
        tuple[str, ...], Field(min_length=2, description="a list of two or more columns")
    ]

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return "sum"


class Sum(Agreed):
    """A column that is the sum of others, and a gap where one of these is: it follows from them.

    Also a date: of another date and of whole numbers of its resolution's units, or durations.
    """

    sum: Annotated[Total, Field(description="{total: a column, parts: [columns]}")]

    @property
    def total(self) -> str:
        """The column that follows."""
        return self.sum.total

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns that it sums."""
        return self.sum.parts

    def names(self) -> tuple[str, ...]:
        """The columns that it is about, the total last."""
        return (*self.parts, self.total)

    def rename(self, names: Mapping[str, str]) -> Sum:
        """The same of columns that are called otherwise."""
        parts = tuple(names.get(name, name) for name in self.parts)
        return Sum(sum=Total(total=names.get(self.total, self.total), parts=parts))

    def words(self) -> str:
        """What the columns are to be, for reports."""
        return f"{' + '.join(self.parts)} = {self.total}"

    def demand(self, columns: Columns) -> None:
        """Raises SchemaError where the total cannot hold every sum of its parts."""
        if len(set(self.names())) < len(self.names()):
            raise SchemaError("names a column twice")
        for name in self.names():
            if not isinstance(columns[name], Numeric):
                raise SchemaError(f"sums are of numbers, and {name!r} is {columns[name].kind}")
        *parts, total = (number_of(columns[name]) for name in self.names())
        if any(isinstance(column, Datetime) for column in (*parts, total)):
            _demand_date(total, parts)
        elif len({column.seconds for column in (*parts, total)}) > 1:
            told = ", ".join(f"{one.name!r} {one.format or 'plain'}" for one in (*parts, total))
            raise SchemaError(f"sums are of numbers of one unit: {told}")
        if total.missing != any(part.missing for part in parts):
            may = "no part may: take `missing` away" if total.missing else "a part may: allow it"
            raise SchemaError(f"{total.name!r} is a gap where a part is, and {may}")
        places = max(decimals_of(part) for part in parts)
        if places > decimals_of(total):
            raise SchemaError(f"{total.name!r} needs `decimals: {places}`, as its parts have")
        more = lead(total, parts)
        low, high = (
            round(math.fsum(ends) + more, places)
            for ends in zip(*((part.low, part.high) for part in parts), strict=True)
        )
        if low < total.low or high > total.high:
            raise SchemaError(
                f"the sums of {', '.join(map(repr, self.parts))} lie between {_spell(low, total)} "
                f"and {_spell(high, total)}, by their bounds: let {total.name!r} hold all of these"
            )
        scale = 10.0 ** decimals_of(total)
        steps = [low - total.low, *(part.unit for part in parts)]
        if any(round(step * scale) % total.stride for step in steps):
            raise SchemaError(f"{total.name!r} has other steps than its parts: drop its `step`")

    def broken(self, arrays: Arrays, columns: Columns) -> NDArray[np.bool_]:
        """Which rows [n] of conformed columns break it."""
        total, column = arrays[self.total], number_of(columns[self.total])
        sums = np.sum([arrays[name] for name in self.parts], axis=0)
        sums = sums + lead(column, [number_of(columns[name]) for name in self.parts])
        gaps = np.isnan(sums) != np.isnan(total)
        with np.errstate(invalid="ignore"):
            return np.asarray(gaps | (np.abs(sums - total) > 0.5 * 10.0 ** -decimals_of(column)))


Constraint = Never | Ordered | Equal | Sum | Determines
Key = Literal["never", "ordered", "equal", "sum", "determines"]
CONSTRAINTS: dict[Key, type[Constraint]] = {
    "never": Never,
    "ordered": Ordered,
    "equal": Equal,
    "sum": Sum,
    "determines": Determines,
}
"""By their only key."""


def rule_of(constraint: Constraint) -> Key:
    """Its only key."""
    return next(key for key, kind in CONSTRAINTS.items() if isinstance(constraint, kind))


def tie(constraints: Iterable[Constraint]) -> list[tuple[tuple[str, ...], list[Constraint]]]:
    """Columns that constraints tie together, directly or by others, and these constraints."""
    parts: list[tuple[set[str], list[Constraint]]] = []
    for constraint in constraints:
        names, own = set(constraint.names()), [constraint]
        for part in [part for part in parts if part[0] & names]:
            parts.remove(part)
            names, own = part[0] | names, part[1] + own
        parts.append((names, own))
    return [(tuple(sorted(names)), own) for names, own in parts]


def spell(given: object) -> str:
    """What a column is to be, in words."""
    if isinstance(given, Mapping):
        return " ".join(f"{end} {given[end]}" for end in ("from", "to") if end in given)
    if isinstance(given, list):
        return " or ".join(spell(entry) for entry in given)
    return "missing" if given is None else str(given)


def _differ(first: Modelled | Identifier, other: Modelled | Identifier) -> list[str]:
    """Keys that say which values a column holds, and in which two columns of one kind differ."""
    keys = (
        "values",
        "other",
        "lower",
        "upper",
        "decimals",
        "step",
        "resolution",
        "zone",
        "missing",
    )
    return [key for key in keys if getattr(first, key, None) != getattr(other, key, None)]


def _is_gap(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(values < 0 if values.dtype.kind == "i" else np.isnan(values))


def number_of(column: Modelled | Identifier) -> Numeric:
    """The column, of numbers or dates."""
    assert isinstance(column, Numeric)
    return column


def _demand_date(total: Numeric, parts: Sequence[Numeric]) -> None:
    """Raises SchemaError where a date and these spans do not make a date."""
    dates = [part for part in parts if isinstance(part, Datetime)]
    if not isinstance(total, Datetime) or len(dates) != 1:
        raise SchemaError(
            "a date is the sum of one other date and of numbers: the later is the total, such as "
            "{total: discharged, parts: [admitted, stay]}"
        )
    for key in ("resolution", "zone"):
        own, theirs = (getattr(column, key) for column in (total, dates[0]))
        if own != theirs:
            raise SchemaError(
                f"{total.name!r} and {dates[0].name!r} differ in `{key}` ({own}, {theirs}): "
                "declare them alike"
            )
    for part in parts:
        if isinstance(part, Continuous):
            raise SchemaError(f"{part.name!r} is added to a date, so it is of kind integer")
        if isinstance(part, Integer) and part.seconds not in (None, total.seconds):
            raise SchemaError(
                f"{part.name!r} counts other units than {total.resolution}s, which {total.name!r} "
                "has: take its `format` away, and it counts these"
            )


def _spell(value: float, column: Numeric) -> str:
    return column.spell_at(value) if isinstance(column, Datetime) else f"{value:,.15g}"


def build_constraint(value: object) -> object:
    """Build a constraint from a mapping, by its only key."""
    if not isinstance(value, Mapping):
        return value
    if len(value) != 1 or next(iter(value)) not in CONSTRAINTS:
        key = next((str(key) for key in value if key not in CONSTRAINTS), "")
        known = ", ".join(f"`{kind}`" for kind in CONSTRAINTS)
        raise SchemaError(f"a constraint has one key, one of {known}{suggestion(key, CONSTRAINTS)}")
    return CONSTRAINTS[next(iter(value))](**{str(key): entry for key, entry in value.items()})
