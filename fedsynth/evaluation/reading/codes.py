"""Tables as codes: every column cut into cells, so that marginals can be counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.reading.rows import Rows


@dataclass(frozen=True, eq=False)
class Codes:
    """Columns cut into cells.

    Attributes:
        tables: int64 [d, n_t] each, one a table: a column lies together.
        sizes: int64 [d], the cells of each column; the last is the gap.
    """

    tables: tuple[NDArray[np.int64], ...]
    sizes: NDArray[np.int64]


def encode_tables(tables: Sequence[Rows], bins: int = 20) -> Codes:
    """All tables cut alike, by the first of them, which stands for the real rows.

    A number is cut at the first table's `bins` quantiles, where a value that several quantiles
    share is a cell of its own. A category, all undeclared values together, and a gap are cells.
    """
    sizes = []
    columns: list[list[NDArray[np.int64]]] = [[] for _ in tables]
    for j, categories in enumerate(tables[0].sizes):
        cuts = quantile_cuts(tables[0].values[:, j], bins)
        gap = categories or len(cuts) + 1
        for rows, made in zip(tables, columns, strict=True):
            values = rows.values[:, j]
            cells = values if categories else np.searchsorted(cuts, values, side="right")
            made.append(np.where(np.isnan(values), gap, cells).astype(np.int64))
        sizes.append(gap + 1)
    stacked = tuple(np.stack(made) for made in columns)
    return Codes(stacked, np.array(sizes, dtype=np.int64))


def quantile_cuts(values: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Rising cuts c between cells [c_i, c_i+1) of about equal mass in `values`; NaN is ignored."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return np.empty(0)
    inner = np.quantile(known, np.arange(1, bins) / bins, method="inverted_cdf")
    cuts, repeats = np.unique(inner, return_counts=True)
    return np.union1d(cuts, np.nextafter(cuts[repeats > 1], np.inf))
