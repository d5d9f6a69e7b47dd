"""What no row of a table can be, known in public: impossible combinations, and columns in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from itertools import combinations, pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from fedsynth.agreed import Agreed, plain, suggestion
from fedsynth.errors import SchemaError
from fedsynth.schema.columns import Identifier, Modelled
from fedsynth.schema.conditions import Condition, condition_on
from fedsynth.schema.ordering import demand_comparable, most

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
                arrays[low] > most(*_numeric(columns, low, high), arrays[high])
                for low, high in pairwise(self.ordered)
            ]
        broken: NDArray[np.bool_] = np.logical_or.reduce(pairs)
        return broken


Constraint = Never | Ordered


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


def _numeric(columns: Columns, *names: str) -> list[Any]:
    """The columns of these names, which were demanded to be numbers or dates."""
    return [columns[name] for name in names]


def build_constraint(value: object) -> object:
    """Build a constraint from a mapping, by its only key."""
    if not isinstance(value, Mapping):
        return value
    kinds: dict[str, type[Agreed]] = {"never": Never, "ordered": Ordered}
    if len(value) != 1 or next(iter(value)) not in kinds:
        key = next((str(key) for key in value if key not in kinds), "")
        raise SchemaError(f"a constraint has one key, `never` or `ordered`{suggestion(key, kinds)}")
    return kinds[next(iter(value))](**{str(key): entry for key, entry in value.items()})
