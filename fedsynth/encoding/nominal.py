"""The encoding that is reckoned with before anything is asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.cutting import cell_units
from fedsynth.encoding.grid import BRANCHING
from fedsynth.encoding.histogram import ColumnLayout, HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Schema


def nominal_encoding(schema: Schema, bins: int) -> TableEncoding:
    """Codes as they would be if every column's values were even over its range."""
    even = [_even(column) for column in HistogramLayout.of(schema).columns]
    return TableEncoding.from_histogram(schema, np.concatenate(even), 0.0, bins, rare=0.0)


def _even(column: ColumnLayout) -> NDArray[np.float64]:
    """Noiseless counts [dim] of values spread evenly."""
    cells = np.ones(column.levels[-1])
    if column.grid is not None:
        cells = cell_units(column.grid, column.edges, column.spikes)
    levels = [cells / cells.sum()]
    for _ in column.levels[1:]:
        levels.insert(0, np.add.reduceat(levels[0], np.arange(0, len(levels[0]), BRANCHING)))
    none = np.zeros(column.extras)
    return np.concatenate([part for level in levels for part in (level, none)])
