"""The encoding that is reckoned with before anything is asked."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.cutting import cell_units
from fedsynth.encoding.grid import BRANCHING
from fedsynth.encoding.histogram import ColumnLayout, HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Schema

Shape = Literal["usual", "narrow", "low", "even"]
"""How numbers lie within their bounds: normal about two fifths of the range with a deviation of a
twelfth or a thirtieth of it, close above the lower bound, or evenly. Off the middle, where a tree's
halves would meet (evaluation/README.md, planning)."""


# Of a code, its bins' pieces and frequency, in a document: 60 to 150 on five tables at epsilon 1.
_BYTES = 120.0


def document_bytes(encoding: TableEncoding) -> float:
    """About how long a document of a learned encoding with as many codes is, as JSON."""
    schema = json.dumps(encoding.schema.to_dict(), default=dict)
    return len(schema) + _BYTES * sum(encoding.sizes)


@lru_cache(32)
def nominal_encoding(schema: Schema, bins: int, shape: Shape = "usual") -> TableEncoding:
    """Codes as they would be if every number were of such a shape, and categories were even."""
    counts = [_nominal(column, shape) for column in HistogramLayout.of(schema).columns]
    return TableEncoding.from_histogram(schema, np.concatenate(counts), 0.0, bins, rare=0.0)


def _share_below(ends: NDArray[np.float64], shape: Shape) -> NDArray[np.float64]:
    """Of the values at places in the range, from 0 to 1."""
    if shape == "even":
        return ends
    if shape == "low":
        return -np.expm1(-200 * ends)
    from scipy.special import ndtr

    found: NDArray[np.float64] = ndtr((ends - 2 / 5) * (12 if shape == "usual" else 30))
    return found


def _nominal(column: ColumnLayout, shape: Shape) -> NDArray[np.float64]:
    """Noiseless counts [dim]."""
    cells = np.ones(column.levels[-1])
    if column.grid is not None:
        ends = np.append(column.edges, column.grid.units) / column.grid.units
        cells = np.diff(_share_below(ends, shape))
        # A cell of a spike alone counts nobody.
        cells = cells * (cell_units(column.grid, column.edges, column.spikes) > 0)
    levels = [cells / (cells.sum() or 1.0)]
    for _ in column.levels[1:]:
        levels.insert(0, np.add.reduceat(levels[0], np.arange(0, len(levels[0]), BRANCHING)))
    none = np.zeros(column.extras)
    return np.concatenate([part for level in levels for part in (level, none)])
