"""Conditions on one column: a value, several, or a range; for drawing rows and for constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from fedsynth.agreed import plain, shown, suggestion
from fedsynth.errors import ConfigError
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Boolean, Categorical, Identifier, Modelled, Numeric
from fedsynth.schema.rounding import decimals_of, round_to_grid

Values = NDArray[np.float64] | NDArray[np.int64]
_ENDS = ("from", "to")


@dataclass(frozen=True)
class Condition:
    """What a column's cell is to be.

    Attributes:
        column: that it is about.
        codes: of the categories that meet it; empty for numbers and dates.
        ranges: closed ranges of the numbers that meet it, rising and apart, both ends values of the
            conformed column; empty for categories.
        missing: whether a missing cell meets it.
    """

    column: Modelled
    codes: tuple[int, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    missing: bool = False

    def holds(self, values: Values) -> NDArray[np.bool_]:
        """Which cells [n] of a conformed column meet the condition."""
        if isinstance(self.column, Categorical | Boolean):
            return np.isin(values, self.codes) | (self.missing & (values < 0))
        met: NDArray[np.bool_] = self.missing & np.isnan(values)
        if self.ranges:
            lows, highs = np.array(self.ranges).T
            place = np.searchsorted(lows, values, side="right") - 1
            met |= (place >= 0) & (values <= highs[place])
        return met

    def within(self, other: Condition) -> bool:
        """Whether a cell that meets it is sure to meet the other, of the same column."""
        return (
            set(self.codes) <= set(other.codes)
            and self.missing <= other.missing
            and all(
                any(a <= low and high <= b for a, b in other.ranges) for low, high in self.ranges
            )
        )


def condition_on(column: Modelled | Identifier, given: object) -> Condition:
    """The condition that ``given`` states.

    Args:
        given: a value; a list of values; ``{"from": a, "to": b}`` for numbers and dates, both ends
            included, one of which may be left out, or the tuple ``(a, b)``, with None for such an
            end; None for a missing cell.

    Raises:
        ConfigError: naming the column, where no row can meet it by the schema.
    """
    where = f"column {column.name!r}"
    if hasattr(given, "columns") or hasattr(given, "pixels"):
        raise ConfigError(
            f"{where}: {shown(given)} is no condition: give a value or a list of them"
        )
    if isinstance(column, Identifier):
        raise ConfigError(f"{where} is an identifier: it is made anew, and never conditioned on")
    if isinstance(given, tuple) and isinstance(column, Numeric):
        if len(given) != len(_ENDS):
            raise ConfigError(
                f"{where}: a tuple is a range, as (30, 40), and has two ends; list values in "
                "brackets, as [30, 35, 40]"
            )
        given = {end: value for end, value in zip(_ENDS, given, strict=True) if value is not None}
    given = plain(given)
    if isinstance(given, Mapping):
        if isinstance(column, Categorical | Boolean):
            raise ConfigError(f"{where} holds categories: list them, since a range has no meaning")
        return Condition(column, ranges=(_parse_range(column, given),))
    entries = list(given) if isinstance(given, list | set | frozenset) else [given]
    if not entries:
        raise ConfigError(f"{where}: an empty list of values, which no row can meet")
    compound = [entry for entry in entries if isinstance(entry, Mapping | Collection)]
    if any(not isinstance(entry, str) for entry in compound):
        raise ConfigError(
            f"{where}: give one value, one list of values, or one range; not one within a list"
        )
    return _parse_values(column, entries)


def demand_modelled(
    name: str, columns: Sequence[Modelled | Identifier], modelled: Sequence[str]
) -> None:
    """Raises ConfigError for a column of which a model knows nothing: none, or an identifier."""
    if name in modelled:
        return
    for column in columns:
        if column.name == name:
            condition_on(column, None)
    raise ConfigError(f"cannot condition on {name!r}{suggestion(name, modelled)}")


def _parse_values(column: Modelled, entries: list[object]) -> Condition:
    import pandas as pd

    where = f"column {column.name!r}"
    cells = read_cells(pd.Series(entries, dtype=object), column, ("",))
    missing = bool(cells.missing.any())
    if missing and not column.missing:
        raise ConfigError(f"{where} is never missing, by its schema")
    wrong = next((entries[k] for k in np.flatnonzero(cells.unreadable)), None)
    if isinstance(column, Categorical | Boolean):
        if cells.unreadable.any():
            spelled = [str(category) for category in column.categories]
            raise ConfigError(f"{where} has no value {wrong!r}{suggestion(str(wrong), spelled)}")
        codes = {int(code) for code in cells.values[~cells.missing]}
        return Condition(column, codes=tuple(sorted(codes)), missing=missing)
    if cells.unreadable.any():
        raise ConfigError(
            f"{where}: {wrong!r} is no {_kind(column)}; a range is {{from: a, to: b}}, in Python "
            "also (a, b)"
        )
    values = {
        _round_to_unit(column, float(cells.values[k]), entries[k])
        for k in np.flatnonzero(~cells.missing)
    }
    return Condition(column, ranges=tuple((v, v) for v in sorted(values)), missing=missing)


def _parse_range(column: Numeric, given: Mapping[object, object]) -> tuple[float, float]:
    """The range's ends on the column's grid, within its bounds."""
    import pandas as pd

    where = f"column {column.name!r}"
    unknown = next((key for key in given if key not in _ENDS), None)
    if unknown is not None:
        raise ConfigError(
            f"{where}: unknown key {unknown!r} of a range{suggestion(unknown, _ENDS)}"
        )
    if not given:
        raise ConfigError(f"{where}: a range needs `from`, `to` or both")
    ends = [column.low, column.high]
    for place, key in enumerate(_ENDS):
        if key not in given:
            continue
        cells = read_cells(pd.Series([given[key]], dtype=object), column, ("",))
        if not np.isfinite(cells.values[0]):
            raise ConfigError(f"{where}: `{key}` {given[key]!r} is no {_kind(column)}")
        ends[place] = float(np.clip(cells.values[0], ends[0] - 1, ends[1] + 1))
    low = _round_towards(column, max(ends[0], column.low), math.ceil)
    high = _round_towards(column, min(ends[1], column.high), math.floor)
    if low > high:
        raise ConfigError(f"{where}: no value lies in this range, by the schema's bounds and unit")
    return low, high


def _round_towards(column: Numeric, value: float, towards: Callable[[Decimal], int]) -> float:
    """The next value of the column's unit in one direction."""
    decimals = decimals_of(column)
    rounded = round(value, decimals)
    if abs(value - rounded) <= 4 * math.ulp(value):
        value = rounded
    # As decimal numbers, so that 0.1 is a tenth; scaled by a product they might step over a unit.
    first = round(Decimal(repr(column.low)).scaleb(decimals))
    steps = towards((Decimal(repr(value)).scaleb(decimals) - first) / column.stride)
    return (first + steps * column.stride) / 10.0**decimals


def _round_to_unit(column: Numeric, value: float, given: object) -> float:
    """The number on the column's grid. Raises ConfigError where its bounds or unit exclude it."""
    rounded = round(value, decimals_of(column)) if math.isfinite(value) else value
    near = abs(value - rounded) <= max(1e-6 * 10.0 ** -decimals_of(column), 4 * math.ulp(rounded))
    placed = math.isfinite(rounded) and round_to_grid(np.array([rounded]), column)[0] == rounded
    if not near or not placed:
        raise ConfigError(
            f"column {column.name!r} has no value {given!r}, by the schema's bounds and unit; give "
            "one of its values, or a range such as {from: 30, to: 40}"
        )
    return rounded


def _kind(column: Numeric) -> str:
    return "date" if column.kind == "datetime" else "number"
