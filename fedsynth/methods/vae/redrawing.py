"""Rows that break the schema's constraints, drawn again: a decoder knows nothing of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.constraints import is_impossible
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError

Codes = NDArray[np.int64]
Rows = NDArray[np.intp]

# A decoder that breaks constraints in nine rows of ten still fills all but one row in 800.
REDRAWS = 64


def redraw(
    encoding: TableEncoding,
    codes: Codes,
    draw: Callable[[Rows], Codes],
    kinds: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> Codes:
    """Codes [n, d] of rows that meet the schema's constraints.

    Post-processing: draws until all rows do, a bounded number of times, then repeats some that do.

    Args:
        encoding: of the codes.
        codes: as drawn first.
        draw: codes for these rows, drawn again.
        kinds: of each row [n], which it may not change; None where all are alike.
        rng: chooses what is repeated.

    Raises:
        ConfigError: no drawn row of some kind meets them.
    """
    result = codes.copy()
    rows = np.flatnonzero(is_impossible(encoding, result))
    for _ in range(REDRAWS):
        if not len(rows):
            return result
        result[rows] = draw(rows)
        rows = rows[is_impossible(encoding, result[rows])]
    valid = np.ones(len(result), bool)
    valid[rows] = False
    kind_of: NDArray[Any] = np.zeros(len(result), np.int64) if kinds is None else kinds
    for kind in np.unique(kind_of[rows]):
        at = rows[kind_of[rows] == kind]
        like = np.flatnonzero(valid & (kind_of == kind))
        if not len(like):
            raise ConfigError(
                "no row that this model draws meets the schema's constraints"
                + (" and the condition on its target" if kinds is not None else "")
                + "; ask for more rows, or fit a method that keeps to constraints, such as aim"
            )
        result[at] = result[rng.choice(like, len(at))]
    return result
