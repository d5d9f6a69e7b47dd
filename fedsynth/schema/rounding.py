"""Numbers on the grid of their column: its bounds, its decimals or resolution, its steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.schema.columns import Continuous, Numeric


def decimals_of(column: Numeric) -> int:
    """The decimals of the column's values."""
    return column.decimals if isinstance(column, Continuous) else 0


def round_to_grid(values: NDArray[np.float64], column: Numeric) -> NDArray[np.float64]:
    """Numbers [n] clamped to the column's bounds and rounded to its unit; NaN stays."""
    inside = np.clip(values, column.low, column.high)
    if column.step is not None:
        inside = column.low + np.floor((inside - column.low) / column.unit + 0.5) * column.unit
    rounded = np.round(inside, decimals_of(column))
    # Rounding multiplies and divides, so it may step over a bound by the last bit; + 0.0 turns -0.0
    # into 0.0.
    return (np.clip(rounded, column.low, column.high) + 0.0).astype(np.float64, copy=False)
