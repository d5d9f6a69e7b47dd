"""Releases as vectors that fit into memory, and which of their rows are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.reading.features import width
from fedsynth.evaluation.reading.rows import Rows

MOST_VECTORS = 100_000
"""Synthetic rows among which the nearest is sought; of more, so many are drawn at random."""

_CELLS = 2**25
"""Cells of a matrix of vectors: 128 MiB of float32."""


def sample_affordable(rows: Rows, seed: int) -> Rows:
    """At most `MOST_VECTORS` of the rows, fewer where categories make vectors long."""
    return rows.sample(min(MOST_VECTORS, max(1, _CELLS // width(rows))), seed)


def describe_search(used: Rows, whole: Rows) -> str:
    """What to add to a sentence about an attack that used a part of the release."""
    if len(used) == len(whole):
        return ""
    return (
        f" Sought among {len(used):,} of the {len(whole):,} synthetic rows, it finds but that "
        f"share of what they give away."
    )


def group_rows(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Codes [n] from 0, all of which occur, the same for equal rows of [n, d]; gaps are equal."""
    codes = np.zeros(len(values), np.int64)
    for column in np.nan_to_num(values.T, nan=-np.inf, neginf=-np.inf, posinf=np.inf):
        ranks = np.unique(column, return_inverse=True)[1]
        codes = np.unique(codes * (ranks.max() + 1) + ranks, return_inverse=True)[1]
    return codes.astype(np.int64)
