"""Columns that equal, sum or never exceed others in all rows of some tables: for owners to declare,
or not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import SchemaError
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Continuous, Integer, Modelled, Numeric
from fedsynth.schema.constraints import Ordered
from fedsynth.schema.deriving import is_gap
from fedsynth.schema.findings import Finding
from fedsynth.schema.ordering import lead
from fedsynth.schema.rounding import decimals_of
from fedsynth.schema.table import Schema
from fedsynth.yaml_files import flow_text

_FEWEST_ROWS, _FEWEST_APART = 50, 10
"""Rows, and those without a column's commonest value, from which it is no chance that columns
agree in all rows."""
_OFTEN = 0.05
"""The share of rows that would break an order if cells were dealt out at random."""

_NEAR, _MOSTLY = 1 / 8, 0.95
"""How far apart columns are that are near, over what the later one spreads over, and in which share
of rows; the spread leaves out as many at both ends."""

_SHOWN = 10
_MOST = 60
"""Columns among which sums are sought: all pairs of them."""

Arrays = dict[str, NDArray[Any]]


def describe_following(schema: Schema, owners: Mapping[str, pd.DataFrame]) -> Iterator[Finding]:
    """Columns that are the same, numbers that are the sum of two others, and numbers or dates that
    are never above others, in every row of all tables. What holds in these rows need not hold in
    others: nothing is declared by it."""
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
    sums = list(_find_sums(numbers))
    for *parts, total in sums:
        text = (
            f"is {parts[0]!r} + {parts[1]!r} in every row: if that is its nature, add `{{sum: "
            f"{{total: {total}, parts: [{', '.join(parts)}]}}}}` to the constraints, with bounds "
            "that hold all sums of the parts', and it is not asked about"
        )
        yield Finding(total, "sum", text)
    # That a part is not above its sum says nothing more.
    told = {(part, total) for *parts, total in sums for part in parts}
    rest = {name: values for name, values in varied.items() if name not in copies}
    yield from _describe_orders(schema, rest, told)


def _find_sums(numbers: Arrays) -> Iterator[tuple[str, str, str]]:
    """Two columns and a third that is their sum in every row."""
    names = list(numbers)[:_MOST]
    if len(names) < 3:
        return
    some = slice(0, _FEWEST_ROWS)
    table = np.array([numbers[name] for name in names])
    for i, j in combinations(range(len(names)), 2):
        sums = np.round(table[i, some] + table[j, some], 6)
        for k in np.flatnonzero((np.nan_to_num(sums) == np.nan_to_num(table[:, some])).all(axis=1)):
            if k not in (i, j) and _same(np.round(table[i] + table[j], 6), table[k]):
                yield names[i], names[j], names[k]


def _describe_orders(
    schema: Schema, arrays: Arrays, told: set[tuple[str, str]]
) -> Iterator[Finding]:
    """Chains of columns each of which is at most the next, where dealt out at random they would
    not be: that hardly any age is above any income says nothing."""
    columns = {column.name: column for column in schema.observed}
    names = [name for name in arrays if isinstance(columns[name], Numeric)][:_MOST]
    rng = np.random.default_rng(0)
    dealt = {name: rng.permutation(arrays[name]) for name in names}
    some = {name: arrays[name][:_FEWEST_ROWS] for name in names}
    rises: set[tuple[str, str]] = set()
    for pair in permutations(names, 2):
        order, (low, high) = Ordered(ordered=pair), pair
        often = max(_FEWEST_APART, _OFTEN * len(arrays[low]))
        if (
            _can_be_ordered(order, columns)
            and not order.broken(some, columns).any()
            and not order.broken(arrays, columns).any()
            and order.broken({low: arrays[low], high: dealt[high]}, columns).sum() >= often
            and _fits(schema, {"ordered": list(pair)})
        ):
            rises.add(pair)
    # Two that are never apart where neither is missing have no order.
    rises -= {(high, low) for low, high in rises}
    # What follows from two others is not told.
    steps = [
        (low, high)
        for low, high in sorted(rises, key=lambda pair: [names.index(name) for name in pair])
        if (low, high) not in told
        and not any((low, name) in rises and (name, high) in rises for name in names)
    ]
    chains = list(_join_steps(steps))
    for chain in chains[:_SHOWN]:
        text = (
            f"is never above {', nor that above '.join(map(repr, chain[1:]))}: if that is their "
            f"nature, add `{{ordered: [{', '.join(chain)}]}}` to the constraints, and it holds in "
            "every row"
        )
        known = (columns[name] for name in chain)
        steps_of = pairwise([column for column in known if isinstance(column, Numeric)])
        near = (_say_near(lower, upper, arrays) for lower, upper in steps_of)
        yield Finding(chain[0], "ordered", text + "".join(near))
    if chains[_SHOWN:]:
        rest = len(chains) - _SHOWN
        text = f"is the first of {rest} more columns or chains of them that are never above others"
        yield Finding(chains[_SHOWN][0], "ordered", text)


def _say_near(lower: Numeric, upper: Numeric, arrays: Arrays) -> str:
    """What keeps two ordered columns as near as they are, if they are and anything does."""
    alike = ("resolution", "zone", "format")
    if (
        any(getattr(lower, key, None) != getattr(upper, key, None) for key in alike)
        or decimals_of(lower) > decimals_of(upper)
        or (lower.missing and not upper.missing)
    ):
        return ""
    apart = arrays[upper.name] - arrays[lower.name] - lead(upper, [lower])
    known = ~np.isnan(apart)
    if known.sum() < _FEWEST_ROWS:
        return ""
    low, high = np.quantile(arrays[upper.name][known], [1 - _MOSTLY, _MOSTLY])
    if np.quantile(apart[known], _MOSTLY) > _NEAR * (high - low):
        return ""
    column = {
        "kind": "continuous" if isinstance(upper, Continuous) else "integer",
        "name": f"{lower.name} to {upper.name}",
        "lower": 0,
        "upper": _round_up(float(apart[known].max())),
        **({"decimals": upper.decimals} if isinstance(upper, Continuous) else {}),
        **({"missing": True} if upper.missing else {}),
    }
    total = {"sum": {"total": upper.name, "parts": [lower.name, column["name"]]}}
    return (
        f". {upper.name!r} is mostly near {lower.name!r}, which rows lose where each is learned by "
        f"itself: to keep it, add the column {flow_text(column)}, which no table needs to have, "
        f"and {flow_text(total)} in the place of the order, with bounds of {upper.name!r} that "
        "hold all sums"
    )


def _round_up(value: float) -> int:
    """The next of 1, 2, 5, 10, 20, .."""
    scale = 10 ** math.floor(math.log10(max(value, 1.0)))
    return int(next(scale * step for step in (1, 2, 5, 10) if scale * step >= value))


def _can_be_ordered(order: Ordered, columns: Mapping[str, Modelled]) -> bool:
    try:
        order.demand(columns)
    except SchemaError:
        return False
    return True


def _join_steps(steps: list[tuple[str, str]]) -> Iterator[list[str]]:
    """Chains that go every step once."""
    left = list(steps)
    while left:
        ends = {high for _, high in left}
        first = next((step for step in left if step[0] not in ends), left[0])
        left.remove(first)
        chain = list(first)
        while following := next((step for step in left if step[0] == chain[-1]), None):
            left.remove(following)
            chain.append(following[1])
        yield chain


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
