"""Images shifted, turned and stretched a little, each by chance, which leaves what they show.

Drawn images stand and lean as the released moments say; a network that learns from them alone finds
strokes where it did not expect them. Nothing here is learned.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

Floats = NDArray[np.float64]

# Shares of the sides, radians, and factors less 1 of both sides: at most, with a strength of 1.
_SHIFT, _TURN, _STRETCH = 1 / 16, math.radians(14), 0.14
# Of a class's variance, what leaning has where its images are moved as far as that.
_LEANING = 0.08


def move_strength(roots: NDArray[np.floating[Any]]) -> float:
    """How far images are moved, from 0 to 1, by how differently those of a class lean.

    Handwriting leans, and is as free otherwise; things pictured for a catalogue stand, and where
    they stand tells what they are. Noise shares a variance among all coordinates alike, and leaves
    little for one. It is one strength of all classes: moves blur a little, which must not tell
    classes apart.

    Args:
        roots: of each class's covariance, [c, k, k]; the last coordinate is the slant.
    """
    variances = (roots.astype(np.float64) ** 2).sum(axis=2)
    totals = variances.sum(axis=1)
    shares = np.divide(variances[:, -1], totals, out=np.zeros(len(roots)), where=totals > 0)
    return float(min(1.0, shares.mean() / _LEANING))


def move(images: Floats, strength: float, rng: np.random.Generator) -> Floats:
    """Images [n, height, width, channels] in [0, 1], each moved by chance; as they are at 0.

    What moves in from beyond the edge is like the edge.

    Args:
        strength: of the largest moves, from 0 to 1.
    """
    if strength == 0 or not len(images):
        return images
    count = len(images)
    shifts = strength * rng.uniform(-_SHIFT, _SHIFT, (count, 2))
    turns = strength * rng.uniform(-_TURN, _TURN, count)
    sizes = 1 + strength * rng.uniform(-_STRETCH, _STRETCH, (count, 2))
    return warp(images, shifts, turns, sizes)


def warp(
    images: Floats,
    shifts: NDArray[np.floating[Any]],
    turns: NDArray[np.floating[Any]],
    sizes: NDArray[np.floating[Any]],
) -> Floats:
    """Images stretched about their middles by factors [n, 2] across and down, turned by radians [n]
    (right to down), then shifted by shares of the sides [n, 2] right and down.

    Between pixels by cubic splines, for less smooth ones blur (Keys 1981).
    """
    _, height, width, _ = images.shape
    # Where a pixel comes from: affine_grid has sides of 2.
    cosines, sines = np.cos(turns), np.sin(turns)
    back = np.empty((len(images), 2, 3))
    back[:, 0, 0], back[:, 0, 1] = cosines, sines * height / width
    back[:, 1, 0], back[:, 1, 1] = -sines * width / height, cosines
    back[:, :, :2] /= sizes[:, :, None]
    back[:, :, 2] = -2 * np.einsum("nij,nj->ni", back[:, :, :2], shifts)
    stacked = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    grid = functional.affine_grid(torch.from_numpy(back), list(stacked.shape), align_corners=False)
    taken = functional.grid_sample(
        stacked, grid, mode="bicubic", padding_mode="border", align_corners=False
    )
    warped: Floats = taken.numpy().transpose(0, 2, 3, 1).clip(0, 1)
    return warped
