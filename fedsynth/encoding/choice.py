"""Drawing what a code stands for: one of the things that share it, by their weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


def choose(groups: Whole, weights: Array, codes: Whole, rng: np.random.Generator) -> Whole:
    """For each of `codes` [n], one of the things [k] of that code, by weight.

    groups [k]: the code of each thing, from 0 without gaps. weights [k] >= 0: at least one
    thing of every code has a positive one; a thing without weight is never drawn.
    """
    order = np.argsort(groups, kind="stable")
    sums = np.cumsum(weights[order])
    ends = np.cumsum(np.bincount(groups))
    below = np.concatenate(([0.0], sums[ends[:-1] - 1]))
    target = below[codes] + rng.random(len(codes)) * (sums[ends - 1] - below)[codes]
    places = np.searchsorted(sums, target, side="right")
    # A target rounded up to its code's last sum must not fall into the next code.
    drawable = np.where(weights[order] > 0, np.arange(len(order)), -1)
    last = np.maximum.accumulate(drawable)[ends - 1]
    return order[np.minimum(places, last[codes])]
