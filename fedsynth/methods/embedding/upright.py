"""Images sheared upright by their own intensities, and back.

Handwriting leans: a class's images vary less about their mean, and are told apart better, once each
stands upright, and how far it leaned is one number more. Nothing here is learned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGEST = 1.0
"""Columns that an image is sheared by a row, at most."""

_FAINT = 0.05
"""Intensities up to this may be moved beyond the edge."""


def slants_of(images: Floats) -> Floats:
    """Columns that the intensities move right by a row down, [n] in [-LARGEST, LARGEST].

    The slope of the regression of columns on rows, weighted by intensity; 0 of an image without
    any, or of one row. No more than what can be taken back: a shape as wide as its image, such as
    a shoe's, is no lean one, and would lose its ends.

    Args:
        images: [n, height, width, channels], not negative.
    """
    weights = images.sum(axis=3)
    down = np.arange(images.shape[1]) - _middles(weights)[:, None]
    across = np.arange(images.shape[2], dtype=np.float64)
    moved = (weights @ across * down).sum(axis=1)
    spread = (weights.sum(axis=2) * down**2).sum(axis=1)
    slopes = np.divide(moved, spread, out=np.zeros(len(images)), where=spread > 1e-12)
    left, right = _room(weights, down)
    return np.asarray(slopes.clip(-np.minimum(right, LARGEST), np.minimum(left, LARGEST)))


def _room(weights: Floats, down: Floats) -> tuple[Floats, Floats]:
    """Columns a row, [n] each, that what lies below the middle may move left, and right, and what
    lies above it the other way, until something would leave the image.

    Args:
        weights: [n, height, width]; down: rows below the middle, [n, height].
    """
    shown = weights > _FAINT
    before = np.where(shown.any(axis=2), shown.argmax(axis=2), np.inf)
    behind = np.where(shown.any(axis=2), shown[:, :, ::-1].argmax(axis=2), np.inf)
    far = np.maximum(np.abs(down), 1e-12)
    below = down > 0
    left = np.where(below, before, behind) / far
    right = np.where(below, behind, before) / far
    return left.min(axis=1), right.min(axis=1)


def shear(images: Floats, slants: NDArray[np.floating[Any]]) -> Floats:
    """Each row moved by the slant times its distance from the row where the intensities balance.

    What moves beyond the edge is lost, and 0 moves in; intensities between two places are shared by
    distance.

    Args:
        images: [n, height, width, channels].
        slants: columns to the right by a row down, [n].
    """
    count, height, width, _ = images.shape
    down = np.arange(height) - _middles(images.sum(axis=3))[:, None]
    sources = np.arange(width) - (slants[:, None] * down)[:, :, None]
    left = np.floor(sources)
    share = (sources - left)[..., None]
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (0, 0)))
    at = (np.arange(count)[:, None, None], np.arange(height)[None, :, None])
    places = left.clip(-1, width).astype(np.int64) + 1
    following = (left + 1).clip(-1, width).astype(np.int64) + 1
    moved: Floats = padded[(*at, places)] * (1 - share) + padded[(*at, following)] * share
    return moved


def _middles(weights: Floats) -> Floats:
    """The row [n] where intensities [n, height, width] balance; the middle one without any."""
    rows, total = weights.sum(axis=2), weights.sum(axis=(1, 2))
    middle = np.full(len(weights), (weights.shape[1] - 1) / 2)
    place = rows @ np.arange(weights.shape[1], dtype=np.float64)
    np.divide(place, total, out=middle, where=total > 1e-12)
    return middle
