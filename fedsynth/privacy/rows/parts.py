"""Clipping in parts, by a task itself: the door clips the whole once more."""

from __future__ import annotations

import numpy as np

from fedsynth.privacy.rows.clipping import Floats, factors
from fedsynth.privacy.rows.dense import DenseRows


def clip_parts(values: Floats, parts: int, clip: float) -> Floats:
    """Clip each of ``parts`` equal slices of every row to ``clip / sqrt(parts)`` in L2.

    Paper 001, Algorithm 4: one difference a class, each clipped to S/sqrt(C), so that the
    concatenation has norm at most S and a large class cannot crowd out the others.

    Args:
        values: [rows, dim], ``dim`` divisible by ``parts``.
    """
    rows, dim = values.shape
    slices = values.reshape(rows * parts, dim // parts)
    scale = factors(DenseRows(slices), clip / np.sqrt(parts))
    kept = np.where(scale[:, None] > 0, slices, 0)
    # In float32 the factor of a huge slice may be subnormal, and too coarse for the margin.
    scaled = kept.astype(np.float64) * scale[:, None]
    clipped: Floats = np.zeros_like(values)
    clipped[...] = scaled.reshape(rows, dim)
    return clipped
