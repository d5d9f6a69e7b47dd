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


def redrawn(
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
    found = codes.copy()
    rows = np.flatnonzero(is_impossible(encoding, found))
    for _ in range(REDRAWS):
        if not len(rows):
            return found
        found[rows] = draw(rows)
        rows = rows[is_impossible(encoding, found[rows])]
    valid = np.ones(len(found), bool)
    valid[rows] = False
    own: NDArray[Any] = np.zeros(len(found), np.int64) if kinds is None else kinds
    for kind in np.unique(own[rows]):
        at = rows[own[rows] == kind]
        like = np.flatnonzero(valid & (own == kind))
        if not len(like):
            raise ConfigError(
                "no row that this model draws meets the schema's constraints"
                + (" and the condition on its target" if kinds is not None else "")
                + "; ask for more rows, or fit a method that keeps to constraints, such as aim"
            )
        found[at] = found[rng.choice(like, len(at))]
    return found
