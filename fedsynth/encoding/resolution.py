"""How finely a column's values are told apart when they are counted, by its public bounds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from fedsynth.data.tables import Conformed
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.grid import MAX_CELLS
from fedsynth.encoding.histogram import grid_of
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Boolean, Categorical, Datetime, ImageSchema, Modelled, Schema
from fedsynth.views import listed

_WIDE = 1_000
"""From so many values for each cell that there may be on, bounds are cautioned of."""

_FEW = 64
"""Cells that hold all of a table's values, where these are more: methods learn about 32 bins."""


def resolution_cautions(schema: Schema | ImageSchema) -> tuple[str, ...]:
    """Columns whose bounds are so wide that their values may not be told apart, in sentences.

    From the schema alone: numbers that are small for their bounds are told apart all the same.
    """
    columns = schema.modelled if isinstance(schema, Schema) else ()
    return tuple(_describe(column) for column in columns if _is_wide(column))


def _is_wide(column: Modelled) -> bool:
    if isinstance(column, Categorical | Boolean):
        return False
    declared = not isinstance(column, Datetime) and column.edges
    return not declared and grid_of(column).units > _WIDE * MAX_CELLS


def _describe(column: Modelled) -> str:
    assert not isinstance(column, Categorical | Boolean)
    grid = grid_of(column)
    widest = int(np.diff(grid.starts, append=grid.units).max())
    if isinstance(column, Datetime):
        apart = timedelta(seconds=widest * column.unit * column.seconds)
        return (
            f"{column.name}: from {column.lower} to {column.upper} are {grid.units:,} "
            f"{column.resolution}s, told apart to {apart} "
            "hours at best: narrow the bounds, or take a coarser `resolution`"
        )
    return (
        f"{column.name}: from {column.lower:,.15g} to {column.upper:,.15g} lie {grid.units:,} "
        f"values, told apart to {widest * column.unit:,.15g} far from 0 and finer near it: if "
        "values lie close together far from 0, narrow the bounds, or declare `edges` or `spikes`"
    )


def undivided_remarks(encoding: TableEncoding | None, *, scaled: bool = False) -> tuple[str, ...]:
    """That most columns of numbers have one bin each, which holds most of the range: the histogram
    told nothing of them, and what learns codes sees a constant. A function of what is released.

    Args:
        scaled: whether numbers are only scaled by their bins, and not learned as these.
    """
    several = _numbers(encoding)
    single = [name for name, bins in several.items() if bins.size == 1 and _is_spread(bins)]
    if not single or 2 * len(single) <= len(several):
        return ()
    named = listed(single)
    lost = (
        f"{named} are taken to be as wide as their bounds"
        if scaled
        else f"nothing is learned of {named} but the range"
    )
    return (
        f"{len(single)} of {len(several)} columns of numbers have one bin each, since the noise of "
        f"the histogram hides how their values lie: {lost}. A larger histogram_share or epsilon, "
        "or more units, tell more",
    )


def alone_remarks(encoding: TableEncoding) -> tuple[str, ...]:
    """Which columns of numbers will have one value: it alone stands out of the histogram's noise.
    For who is about to pay for a training; `Synthesizer.remarks` tells of all columns after it."""
    names = [
        name
        for name, bins in _numbers(encoding).items()
        if bins.size == 1 and bins.lengths[bins.weights > 0].sum() == 1
    ]
    if not names:
        return ()
    return (
        f"{listed(names)}: one value alone stands out from the noise of the histogram, and rows "
        "will have no other",
    )


def _numbers(encoding: TableEncoding | None) -> dict[str, Bins]:
    """The bins of columns that have several values."""
    if encoding is None:
        return {}
    return {
        column.name: bins
        for column, bins in zip(encoding.schema.modelled, encoding.bins, strict=True)
        if isinstance(bins, Bins) and bins.grid.units > 1
    }


def _is_spread(bins: Bins) -> bool:
    return 2 * int(bins.lengths[bins.weights > 0].sum()) > bins.grid.units


@dataclass(frozen=True)
class Crowded:
    """A column of which all values fall into few cells; private, as they are.

    Attributes:
        values: different ones in the table.
        cells: that hold them; of: all there are.
    """

    column: str
    values: int
    cells: int
    of: int

    def __str__(self) -> str:
        return (
            f"{self.column}: its {self.values:,} different values fall into {self.cells:,} of "
            f"{self.of:,} cells, within which they are not told apart: narrow the bounds"
        )


def find_crowded(conformed: Conformed, schema: Schema) -> list[Crowded]:
    """Columns of numbers or moments whose values the schema's bounds leave too few cells."""
    found = []
    for column in schema.modelled:
        if isinstance(column, Categorical | Boolean):
            continue
        grid = grid_of(column)
        declared = not isinstance(column, Datetime) and column.edges
        if declared or grid.units == grid.cells:
            continue
        values = np.unique(conformed.columns[column.name].astype(np.float64))
        values = values[~np.isnan(values)]
        held = np.unique(np.searchsorted(grid.starts, grid.offsets(values), side="right"))
        if len(held) < min(len(values), _FEW):
            found.append(Crowded(column.name, len(values), len(held), grid.cells))
    return found
