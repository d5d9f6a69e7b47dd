"""Rows of groups of records: a record that comes or goes exchanges its group's row for another.

A row that is a function of many records (a teacher's votes) is not one that a record adds: with the
record or without it the group has a row, and the sum moves by their difference. Of rows in the ball
of radius r that may be twice r. Of rows with no negative entry it is less in L2: for nonnegative a
and b

    |a - b|^2 = |a|^2 + |b|^2 - 2 <a, b> <= |a|^2 + |b|^2 <= 2 r^2,

since ``<a, b>`` is a sum of products of nonnegative numbers; so r = clip / sqrt(2) keeps the
difference within the clip. In L1 ``|a - b| <= |a| + |b| <= 2 r``, so r = clip / 2. Both are reached
by rows of norm r at different places.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedsynth.privacy.rows.clipping import Norm, clip_and_sum
from fedsynth.privacy.rows.dense import DenseRows


def row_bound(clip: float, norm: Norm = "l2") -> float:
    """The norm to which a nonnegative row is clipped, so that its exchange moves by ``clip``."""
    return clip / math.sqrt(2) if norm == "l2" else clip / 2


def exchange(norm: Norm = "l2") -> float:
    """How far exchanging nonnegative rows of norm 1 moves their sum, at most."""
    return math.sqrt(2) if norm == "l2" else 2.0


def clip_exchanged(
    rows: NDArray[np.float64], clip: float, norm: Norm = "l2"
) -> NDArray[np.float64]:
    """Clip each row of a group to :func:`row_bound`, then sum.

    Exchanging one row for any other moves the result by at most ``clip`` in ``norm``; so does
    adding or removing one.

    Args:
        rows: [rows, dim]. Negative entries count as 0; a row with a NaN or an infinity as zeros.

    Returns:
        float64 [dim], nonnegative.
    """
    return clip_and_sum(nonnegative(rows), row_bound(clip, norm), norm)


def nonnegative(rows: NDArray[np.float64]) -> DenseRows:
    """The rows with 0 for negative entries, and for all entries of a row that is not finite.

    They are zeroed and not refused: a refusal would tell something of private data.
    """
    values = np.asarray(rows, np.float64)
    finite = np.isfinite(values).all(axis=1, keepdims=True)
    return DenseRows(np.where(finite, np.maximum(values, 0.0), 0.0))
