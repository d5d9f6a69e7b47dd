"""A schema's constraints on codes: which combinations no row has, and how rows are drawn so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.schema import Identifier, Modelled, Schema
from fedsynth.schema.constraints import Constraint, Never, Ordered, offset

if TYPE_CHECKING:
    from fedsynth.encoding.table import TableEncoding

Mask = NDArray[np.bool_]
Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_MOST_CELLS = 2**22
# Draws within the bins before the bins' own ends are taken.
_REDRAWS = 20


def boundaries(schema: Schema, name: str) -> list[tuple[float, float]]:
    """Ranges of a numeric column that constraints speak of, at whose ends bins must part."""
    columns = {column.name: column for column in schema.columns}
    found: list[tuple[float, float]] = []
    for constraint in schema.constraints:
        if isinstance(constraint, Never) and name in constraint.never:
            found += constraint.conditions(columns)[name].ranges
    return found


def zeros(encoding: TableEncoding) -> list[tuple[tuple[int, ...], Mask]]:
    """Columns' positions, and True for the combinations of their codes that no row has.

    Raises:
        ConfigError: a constraint over so many codes that its table would not fit in memory.
    """
    found = []
    for number, constraint in enumerate(encoding.schema.constraints, 1):
        if isinstance(constraint, Never):
            pairs = [tuple(constraint.never)]
        else:
            pairs = list(itertools.pairwise(constraint.ordered))
        for names in pairs:
            found.append(_impossible(encoding, constraint, names, number))
    return found


def _impossible(
    encoding: TableEncoding, constraint: Constraint, names: tuple[str, ...], number: int
) -> tuple[tuple[int, ...], Mask]:
    positions = {column.name: k for k, column in enumerate(encoding.schema.modelled)}
    clique = tuple(sorted(positions[name] for name in names))
    shape = tuple(encoding.sizes[k] for k in clique)
    if math.prod(shape) > _MOST_CELLS:
        raise ConfigError(
            f"constraint {number} spans {math.prod(shape):,} combinations of codes: name fewer "
            "columns, or take fewer bins"
        )
    if isinstance(constraint, Never):
        columns = {column.name: column for column in encoding.schema.columns}
        mask = np.ones(shape, bool)
        for name, condition in constraint.conditions(columns).items():
            # Bins part where a condition begins and ends, so a share is all or nothing.
            certain = encoding.likelihood(name, condition) >= 1 - 1e-9
            mask &= _along(certain, clique, positions[name])
        return clique, mask
    lowest, _ = _ends(encoding, names[0])
    _, highest = _ends(encoding, names[1])
    first, second = positions[names[0]], positions[names[1]]
    with np.errstate(invalid="ignore"):
        above = _along(lowest, clique, first) > _along(highest, clique, second)
    return clique, above


def _along(values: NDArray[Any], clique: tuple[int, ...], position: int) -> NDArray[Any]:
    return values.reshape([-1 if k == position else 1 for k in clique])


def _ends(encoding: TableEncoding, name: str) -> tuple[Array, Array]:
    """The lowest and highest value of each code of a numeric column; NaN for missing."""
    column = encoding.schema.column(name)
    bins = encoding.bins_of(name)
    first, last = bins.reach
    ends = [bins.grid.values(units) + offset(column) for units in (first, last)]
    gap = [np.nan] if getattr(column, "missing", False) else []
    low, high = (np.append(end, gap) for end in ends)
    return low, high


def settle(
    columns: dict[str, NDArray[Any]], schema: Schema, redraw: Callable[[str, Rows], NDArray[Any]]
) -> None:
    """Have numbers drawn within their bins meet the schema's `ordered` constraints, in place.

    Args:
        columns: conformed values by column, as drawn.
        redraw: from a column's name and rows, fresh values within the rows' bins.
    """
    ordered = [c for c in schema.constraints if isinstance(c, Ordered)]
    names = {column.name: column for column in schema.columns}
    for _ in range(_REDRAWS):
        clean = True
        for constraint in ordered:
            rows = np.flatnonzero(constraint.broken(columns, names))
            for name in constraint.ordered if len(rows) else ():
                clean = False
                columns[name][rows] = redraw(name, rows)
        if clean:
            return
    for constraint in ordered:
        _rise(columns, constraint, names)


def _rise(
    columns: dict[str, NDArray[Any]],
    constraint: Ordered,
    names: Mapping[str, Modelled | Identifier],
) -> None:
    """Lift numbers to the ones before them, then lower those that had no room above.

    The model draws codes that can be ordered, so this mends the last redraws' bad luck alone.
    """
    pairs = list(itertools.pairwise(constraint.ordered))
    with np.errstate(invalid="ignore"):
        for lower, upper in pairs:
            column, least = names[upper], columns[lower] + offset(names[lower])
            rows = least > columns[upper] + offset(column)
            lifted = _on_grid(least[rows] - offset(column), column, np.ceil)
            columns[upper][rows] = np.minimum(lifted, column.high)  # type: ignore[union-attr]
        for lower, upper in reversed(pairs):
            column, most = names[lower], columns[upper] + offset(names[upper])
            rows = columns[lower] + offset(column) > most
            columns[lower][rows] = _on_grid(most[rows] - offset(column), column, np.floor)


def _on_grid(values: Array, column: Any, towards: Callable[[Array], Array]) -> Array:
    steps = np.round(values / column.unit, 6)
    return np.asarray(towards(steps) * column.unit)
