"""Columns cut coarsely, into values that have a name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.measures.columns import spell_range
from fedsynth.evaluation.reading.codes import quantile_cuts
from fedsynth.evaluation.reading.rows import Rows
from fedsynth.schema import Boolean, Categorical

Codes = NDArray[np.int64]


class Cut:
    """A column's values as codes, by the rows that it is cut by.

    size: codes. gap: the code of missing values. vague: the one of values which are not told apart,
        or not known.
    """

    def __init__(
        self, rows: Rows, j: int, *, bins: int = 8, alone: int = 24, apart: int = 256
    ) -> None:
        """Args: `bins` of a number; `alone`, different values up to which each is its own code;
        `apart`, values of a category that are told apart, the commonest."""
        self.column, self.place, self.name = rows.schema.observed[j], j, rows.names[j]
        values = rows.values[:, j]
        known = np.unique(values[~np.isnan(values)])
        self.discrete = rows.sizes[j] > 0
        if self.discrete or len(known) <= alone:
            counts = np.bincount(np.searchsorted(known, values[~np.isnan(values)]))
            most = np.argsort(-counts, kind="stable")[:apart]
            self.known = known[np.sort(most)]
        else:
            self.known = np.append(-np.inf, quantile_cuts(values, bins))
        self.exact = self.discrete or len(known) <= alone
        self.gap, self.vague = len(self.known), len(self.known) + 1
        self.size = len(self.known) + 2
        codes = self.codes(rows)
        self.ends = [
            (values[codes == k].min(), values[codes == k].max()) if (codes == k).any() else None
            for k in range(self.gap)
        ]

    def codes(self, rows: Rows) -> Codes:
        values = rows.values[:, self.place]
        gaps = np.isnan(values)
        place = np.searchsorted(self.known, np.where(gaps, 0.0, values), side="right") - 1
        if self.exact:
            hit = (place >= 0) & (self.known[np.maximum(place, 0)] == values) if self.gap else gaps
            place = np.where(hit, place, self.vague)
        return np.where(gaps, self.gap, place).astype(np.int64)

    def label(self, code: int) -> str:
        """What a code stands for; the vague one is never asked for."""
        ends = None if code >= self.gap else self.ends[code]
        if ends is None:
            return "missing" if code == self.gap else "other"
        if isinstance(self.column, Categorical | Boolean):
            names = [*map(str, self.column.categories), "a value not in the schema"]
            return names[int(ends[0])]
        return spell_range(self.column, *ends)
