"""Releases as vectors that fit into memory."""

from __future__ import annotations

from fedsynth.evaluation.rows import Rows

MOST_VECTORS = 100_000
"""Synthetic rows among which the nearest is sought; of more, so many are drawn at random."""

_CELLS = 2**25
"""Cells of a matrix of vectors: 128 MiB of float32."""

_MOST_CODES = 64


def affordable(rows: Rows, seed: int) -> Rows:
    """At most `MOST_VECTORS` of the rows, fewer where categories make vectors long."""
    width = sum(min(size, _MOST_CODES) + 2 for size in rows.sizes)
    return rows.sample(min(MOST_VECTORS, max(1, _CELLS // width)), seed)
