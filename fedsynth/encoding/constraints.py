"""A schema's constraints on codes: which combinations of codes no row has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.bins import Bins
from fedsynth.errors import ConfigError
from fedsynth.schema import Schema
from fedsynth.schema.columns import Numeric
from fedsynth.schema.constraints import Constraint, Never, Ordered
from fedsynth.schema.ordering import most

if TYPE_CHECKING:
    from fedsynth.encoding.table import TableEncoding

Mask = NDArray[np.bool_]
Array = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

MOST_CELLS = 2**22


def structural_zeros(encoding: TableEncoding) -> list[tuple[tuple[int, ...], Mask]]:
    """Columns' positions, and True for the combinations of their codes that no row has.

    One table a constraint; of an `ordered` one, a table a pair of neighbouring columns. A
    combination that a row can have, however unlikely its values within the codes, is False.

    Raises:
        ConfigError: a constraint of so many combinations that its table would not fit in memory.
    """
    tables = []
    for number, constraint, names in _tables(encoding.schema):
        positions = _positions(encoding, names)
        clique = tuple(sorted(positions.values()))
        shape = tuple(encoding.sizes[k] for k in clique)
        if math.prod(shape) > MOST_CELLS:
            raise ConfigError(
                f"constraint {number} of the schema spans {math.prod(shape):,} combinations of "
                f"codes, more than {MOST_CELLS:,}: name fewer columns, or take fewer bins"
            )
        axes = dict(zip(clique, np.ogrid[tuple(map(slice, shape))], strict=True))
        codes = {name: axes[position] for name, position in positions.items()}
        mask = np.broadcast_to(_exclude(encoding, constraint, names, codes), shape)
        tables.append((clique, mask.copy()))
    return tables


def is_impossible(
    encoding: TableEncoding, codes: Codes, constraints: Iterable[Constraint] | None = None
) -> Mask:
    """Which rows [n] of codes [n, d] no row of the table can have, by the schema's constraints.

    constraints: those of them that are meant; None for all.
    """
    mask = np.zeros(len(codes), bool)
    for _, constraint, names in _tables(encoding.schema, constraints):
        own = {name: codes[:, k] for name, k in _positions(encoding, names).items()}
        mask |= _exclude(encoding, constraint, names, own)
    return mask


def _tables(
    schema: Schema, constraints: Iterable[Constraint] | None = None
) -> Iterator[tuple[int, Constraint, tuple[str, ...]]]:
    """Constraints, their numbers, and the columns of each of their tables."""
    for number, constraint in enumerate(schema.rules if constraints is None else constraints, 1):
        if isinstance(constraint, Never):
            yield number, constraint, constraint.names()
        elif isinstance(constraint, Ordered):
            for pair in pairwise(constraint.ordered):
                yield number, constraint, pair


def _positions(encoding: TableEncoding, names: tuple[str, ...]) -> dict[str, int]:
    known = [column.name for column in encoding.schema.modelled]
    return {name: known.index(name) for name in names}


def _exclude(
    encoding: TableEncoding,
    constraint: Constraint,
    names: tuple[str, ...],
    codes: Mapping[str, Codes],
) -> Mask:
    """Which of the codes by column, arrays that broadcast together, no row has."""
    columns = {column.name: column for column in encoding.schema.columns}
    if isinstance(constraint, Never):
        # Codes part where a condition begins and ends, so that a share is all or nothing.
        masks = [
            (encoding.likelihood(name, condition) > 0.5)[codes[name]]
            for name, condition in constraint.conditions(columns).items()
        ]
        excluded: Mask = masks[0]
        for mask in masks[1:]:
            excluded = excluded & mask
        return excluded
    lower, upper = names
    lowest, _ = _code_bounds(encoding, lower)
    _, highest = _code_bounds(encoding, upper)
    low, high = columns[lower], columns[upper]
    assert isinstance(low, Numeric) and isinstance(high, Numeric)
    # A missing cell is in order with any other: comparisons with NaN are false.
    above: Mask = lowest[codes[lower]] > most(low, high, highest)[codes[upper]]
    return above


def _code_bounds(encoding: TableEncoding, name: str) -> tuple[Array, Array]:
    """The lowest and the highest value of each code of a numeric column; NaN for missing."""
    position = _positions(encoding, (name,))[name]
    bins = encoding.bins[position]
    assert isinstance(bins, Bins)
    gap = np.full(encoding.sizes[position] - bins.size, np.nan)
    low, high = (np.append(ends, gap) for ends in bins.bounds)
    return low, high
