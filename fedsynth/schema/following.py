"""Columns that equal or sum others in all rows of some tables: for owners to declare, or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import SchemaError
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Continuous, Integer
from fedsynth.schema.deriving import is_gap
from fedsynth.schema.findings import Finding
from fedsynth.schema.table import Schema

_FEWEST_ROWS, _FEWEST_APART = 50, 10
"""Rows, and those without a column's commonest value, from which it is no chance that columns
agree in all rows."""
_MOST = 60
"""Columns among which sums are sought: all pairs of them."""

Arrays = dict[str, NDArray[Any]]


def describe_following(schema: Schema, owners: Mapping[str, pd.DataFrame]) -> Iterator[Finding]:
    """Columns that are the same, and numbers that are the sum of two others, in every row of all
    tables. What holds in these rows need not hold in others: nothing is declared by it."""
    frames = [frame for frame in owners.values() if set(_names(schema)) <= set(frame.columns)]
    if len(frames) < len(owners) or sum(map(len, frames)) < _FEWEST_ROWS:
        return
    table = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    arrays = {
        column.name: np.round(
            read_cells(table[column.name], column, schema.missing_values).values, 6
        )
        for column in schema.observed
    }
    varied = {
        name: values
        for name, values in arrays.items()
        if len(values) - np.unique(values, return_counts=True)[1].max() >= _FEWEST_APART
    }
    copies: set[str] = set()
    for first, second in combinations(varied, 2):
        if second in copies or not _same(varied[first], varied[second]):
            continue
        if _fits(schema, {"equal": [first, second]}):
            copies.add(second)
            text = (
                f"is the same as {first!r} in every row: if that is its nature, add `{{equal: "
                f"[{first}, {second}]}}` to the constraints, and it is not asked about"
            )
            yield Finding(second, "equal", text)
    numbers = {
        name: varied[name]
        for name in varied
        if name not in copies and isinstance(schema.column(name), Integer | Continuous)
    }
    yield from _describe_sums(numbers)


def _describe_sums(numbers: Arrays) -> Iterator[Finding]:
    names = list(numbers)[:_MOST]
    if len(names) < 3:
        return
    some = slice(0, _FEWEST_ROWS)
    table = np.array([numbers[name] for name in names])
    for i, j in combinations(range(len(names)), 2):
        sums = np.round(table[i, some] + table[j, some], 6)
        for k in np.flatnonzero((np.nan_to_num(sums) == np.nan_to_num(table[:, some])).all(axis=1)):
            if k not in (i, j) and _same(np.round(table[i] + table[j], 6), table[k]):
                parts = f"[{names[i]}, {names[j]}]"
                text = (
                    f"is {names[i]!r} + {names[j]!r} in every row: if that is its nature, add "
                    f"`{{sum: {{total: {names[k]}, parts: {parts}}}}}` to the constraints, with "
                    "bounds that hold all sums of the parts', and it is not asked about"
                )
                yield Finding(names[k], "sum", text)


def _same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    some = slice(0, _FEWEST_ROWS)
    if len(first) > _FEWEST_ROWS and not _same(first[some], second[some]):
        return False
    gaps = is_gap(first)
    return bool((gaps == is_gap(second)).all() and (gaps | (first == second)).all())


def _fits(schema: Schema, constraint: Mapping[str, Any]) -> bool:
    try:
        schema.with_constraint(constraint)
    except SchemaError:
        return False
    return True


def _names(schema: Schema) -> list[str]:
    return [column.name for column in schema.observed]
