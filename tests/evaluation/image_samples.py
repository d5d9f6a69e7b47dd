"""Images of two classes that are easily told apart."""

from __future__ import annotations

import numpy as np

import fedsynth as fs
from fedsynth.schema import Categorical

DIGIT = Categorical(name="digit", values=("zero", "one"))
SCHEMA = fs.ImageSchema(shape=(6, 6), target=DIGIT)


def drawn(rows, seed, *, shape=(6, 6), maximum=255, labels=True):
    """An independent sample: the upper half is light in one class, the left half in the other."""
    rng = np.random.default_rng([5, seed])
    y = rng.integers(0, 2, rows)
    base = np.zeros((2, *shape))
    base[0, :3], base[1, :, :3] = 0.7, 0.7
    pixels = np.clip(base[y] + rng.normal(0, 0.15, (rows, *shape)), 0, 1)
    return fs.Images((pixels * maximum).astype(np.uint8), y if labels else None)
