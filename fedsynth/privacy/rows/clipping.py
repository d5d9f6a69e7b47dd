"""Clipping: the last thing that happens to a contribution before noise.

A *row* is the contribution of one unit, a vector of ``dim`` numbers. Rows come in whichever form is
cheap, and each form knows the exact norm of its rows and their weighted sum, so that a clipped sum
never needs the rows written out. A row with a NaN or an infinity cannot be scaled into the ball, so
it counts as zero.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError

Norm = Literal["l2", "l1"]
Floats = NDArray[np.float64] | NDArray[np.float32]


class Rows(Protocol):
    """Contributions of several units, one row each."""

    @property
    def dim(self) -> int:
        """Length of a row."""
        ...

    def __len__(self) -> int: ...

    def norms(self, norm: Norm) -> Floats:
        """The norm of every row, shape [rows]; not finite where the row is not."""
        ...

    def weighted_sum(self, weights: Floats) -> NDArray[np.float64]:
        """``sum_i weights[i] * row_i``, shape [dim]; rows with weight 0 are ignored entirely.

        In float64: in float32 the rounding of all other rows changes when one comes or goes, by
        thousandths of the clip for some thousand rows, and tiny weights lose bits.
        """
        ...


@runtime_checkable
class Blocked(Protocol):
    """Rows that know the largest L1 norm of a block of each of them, shape [rows]."""

    def largest_blocks(self, starts: NDArray[np.int64]) -> Floats: ...


def clip_and_sum(rows: Rows, clip: float, norm: Norm = "l2") -> NDArray[np.float64]:
    """Scale every row into the ball of radius ``clip``, then sum: float64 [dim].

    Adding or removing one row moves the result by at most ``clip`` in ``norm``. No rows at all sum
    to zero: an empty sample is an answer like any other.
    """
    return rows.weighted_sum(factors(rows, clip, norm))


def clip_blocks(rows: Rows, starts: NDArray[np.int64], clip: float) -> NDArray[np.float64]:
    """Scale every row so that no block of it exceeds ``clip`` in L1, then sum: float64 [dim].

    Adding or removing one row moves every block of the result by at most ``clip`` in L1.
    """
    return rows.weighted_sum(within(largest_blocks(rows, starts), clip))


def factors(rows: Rows, clip: float, norm: Norm = "l2") -> NDArray[np.float64]:
    """``min(1, clip / ||row||)`` for every row; 0 for rows that are not finite. Shape [rows]."""
    return within(rows.norms(norm), clip)


def largest_blocks(rows: Rows, starts: NDArray[np.int64]) -> Floats:
    """The largest L1 norm of a block of each row, shape [rows].

    Raises:
        PrivacyError: norms that are not known, or starts that do not rise from 0 within the row.
    """
    starts = np.asarray(starts, np.int64)
    if len(starts) == 0 or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= rows.dim:
        raise PrivacyError("blocks must begin at rising places from 0, within the row")
    if not isinstance(rows, Blocked):
        raise PrivacyError(f"the norms of blocks of {type(rows).__name__} are not known")
    return rows.largest_blocks(starts)


def within(norms: Floats, clip: float) -> NDArray[np.float64]:
    """What a row of each norm is to be multiplied by, so that its norm is within the clip."""
    norms = norms.astype(np.float64)
    # What float32 rows may gain when a task has scaled them itself, and norms by rounding: the
    # margin keeps the ball closed.
    safe = clip * (1 - 1e-6)
    return np.where(np.isfinite(norms), np.minimum(1.0, safe / np.maximum(norms, safe)), 0.0)
