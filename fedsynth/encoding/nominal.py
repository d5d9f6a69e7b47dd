"""The encoding that is reckoned with before anything is asked."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.cutting import cell_units
from fedsynth.encoding.grid import BRANCHING
from fedsynth.encoding.histogram import ColumnLayout, HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Schema

# Of a number's range: how far its nominal mean is from the lower bound, and its deviation. Real
# columns fill their bounds as little, and bins that stay within such a bell are as narrow as theirs
# (evaluation/README.md, planning). Off the middle, where a tree's halves would meet.
_MEAN, DEVIATION = 2 / 5, 1 / 12
# The shapes that are reckoned with beside it: a narrow one, and even over the bounds.
NARROW, EVEN = 1 / 50, 3.0


# Of a code, its bins' pieces and frequency, in a document: 60 to 150 on five tables at epsilon 1.
_BYTES = 120.0


def document_bytes(encoding: TableEncoding) -> float:
    """About how long a document of a learned encoding with as many codes is, as JSON."""
    schema = json.dumps(encoding.schema.to_dict(), default=dict)
    return len(schema) + _BYTES * sum(encoding.sizes)


@lru_cache(32)
def nominal_encoding(schema: Schema, bins: int, deviation: float = DEVIATION) -> TableEncoding:
    """Codes as they would be if every number were normal about two fifths of its range, with such a
    share of it for a deviation, and categories were even."""
    counts = [_nominal(column, deviation) for column in HistogramLayout.of(schema).columns]
    return TableEncoding.from_histogram(schema, np.concatenate(counts), 0.0, bins, rare=0.0)


def _nominal(column: ColumnLayout, deviation: float) -> NDArray[np.float64]:
    """Noiseless counts [dim]."""
    cells = np.ones(column.levels[-1])
    if column.grid is not None:
        from scipy.special import ndtr

        ends = np.append(column.edges, column.grid.units) / column.grid.units
        cells = np.diff(ndtr((ends - _MEAN) / deviation))
        # A cell of a spike alone counts nobody.
        cells = cells * (cell_units(column.grid, column.edges, column.spikes) > 0)
    levels = [cells / (cells.sum() or 1.0)]
    for _ in column.levels[1:]:
        levels.insert(0, np.add.reduceat(levels[0], np.arange(0, len(levels[0]), BRANCHING)))
    none = np.zeros(column.extras)
    return np.concatenate([part for level in levels for part in (level, none)])
