"""Conditions on one column: a value, several, or a range; for drawing rows and for constraints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Boolean, Categorical, Identifier, Modelled, Numeric
from fedsynth.validation import suggestion

Values = NDArray[np.float64] | NDArray[np.int64]
_ENDS = ("from", "to")


@dataclass(frozen=True)
class Condition:
    """What a column's cell is to be.

    Attributes:
        column: that it is about.
        codes: of the categories that meet it; empty for numbers and dates.
        ranges: closed ranges of the numbers that meet it, in conformed units; empty for categories.
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
        for low, high in self.ranges:
            met = met | ((values >= low) & (values <= high))
        return met


def condition_on(column: Modelled | Identifier, given: object) -> Condition:
    """The condition that ``given`` states.

    Args:
        given: a value; a list of values; ``{"from": a, "to": b}`` for numbers and dates, both ends
            included, one of which may be left out; None for a missing cell.

    Raises:
        ConfigError: naming the column, where there is no such value or it may not be missing.
    """
    if isinstance(column, Identifier):
        raise ConfigError(
            f"{column.name} is an identifier: it is made anew, and never conditioned on"
        )
    if isinstance(given, Mapping):
        if isinstance(column, Categorical | Boolean):
            raise ConfigError(f"{column.name} holds categories: name them, a range has no meaning")
        return Condition(column, ranges=(_range(column, given),))
    entries = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    if not entries:
        raise ConfigError(f"{column.name}: an empty list of values, which no row can meet")
    return _listed(column, entries)


def _listed(column: Modelled, entries: list[object]) -> Condition:
    cells = read_cells(pd.Series(entries, dtype=object), column, ("",))
    if cells.missing.any() and not column.missing:
        raise ConfigError(f"{column.name} is never missing, by its schema")
    known = cells.values[~cells.missing]
    if isinstance(column, Categorical | Boolean):
        if cells.unreadable.any():
            wrong = entries[int(np.flatnonzero(cells.unreadable)[0])]
            spelled = [str(category) for category in column.categories]
            raise ConfigError(
                f"{column.name} has no value {wrong!r}{suggestion(str(wrong), spelled)}"
            )
        codes = tuple(sorted({int(code) for code in known}))
        return Condition(column, codes=codes, missing=bool(cells.missing.any()))
    if cells.unreadable.any():
        wrong = entries[int(np.flatnonzero(cells.unreadable)[0])]
        raise ConfigError(f"{column.name}: {wrong!r} is no {_kind(column)}")
    for value in known:
        _demand_possible(column, float(value))
    ranges = tuple((float(value), float(value)) for value in sorted(set(known.tolist())))
    return Condition(column, ranges=ranges, missing=bool(cells.missing.any()))


def _range(column: Numeric, given: Mapping[object, object]) -> tuple[float, float]:
    unknown = sorted(str(key) for key in given if key not in _ENDS)
    if unknown or not given:
        raise ConfigError(f"{column.name}: a range has the keys from and to, not {unknown}")
    ends = []
    for key, bound in zip(_ENDS, (column.low, column.high), strict=True):
        if key not in given:
            ends.append(bound)
            continue
        cells = read_cells(pd.Series([given[key]], dtype=object), column, ("",))
        if cells.missing[0] or cells.unreadable[0]:
            raise ConfigError(f"{column.name}: {key}: {given[key]!r} is no {_kind(column)}")
        ends.append(float(cells.values[0]))
    low, high = ends
    if low > high or high < column.low or low > column.high:
        raise ConfigError(
            f"{column.name}: no value lies in this range and within the schema's bounds"
        )
    return low, high


def _demand_possible(column: Numeric, value: float) -> None:
    """Raises ConfigError for a number that the column's bounds and decimals exclude."""
    steps = (value - column.low) / column.unit
    if not column.low <= value <= column.high or not math.isclose(
        steps, round(steps), rel_tol=1e-9, abs_tol=1e-6
    ):
        raise ConfigError(
            f"{column.name}: no row has this value, by the schema's bounds and decimals; give a "
            "range, such as {from: 30, to: 40}"
        )


def _kind(column: Numeric) -> str:
    return "date" if column.kind == "datetime" else "number"
