"""Noise whose draws are real numbers, in floating point, and how it is put on a public grid.

In floating point such noise has gaps that can tell neighbouring inputs apart (Mironov 2012). So
small uniforms are as fine as large ones, and far draws as close together as near ones; and what is
released is rounded to a public grid about a millionth of the noise wide, far wider than the gaps
(rounding is post-processing). ``tests/privacy/test_floats.py`` counts how probable outcomes are.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from fedsynth.privacy.mechanisms.mechanism import Additive
from fedsynth.privacy.noise import Draws, NoiseSource


class Floating(Additive, Protocol):
    """An additive mechanism that says what its draws are."""

    def draw(self, count: int, source: NoiseSource) -> Draws:
        """Noise of a whole release at scale 1, shape [count]."""
        ...

    def share(self, count: int, shares: int, source: NoiseSource) -> Draws:
        """One client's part, times ``growth(shares)``: so many of them add up to :meth:`draw`."""
        return self.draw(count, source)

    def add(
        self, values: Draws, scale: float, shares: int, clip: float, source: NoiseSource
    ) -> Draws:
        whole = shares == 1
        count = len(values)
        draws = self.draw(count, source) if whole else self.share(count, shares, source)
        return perturbed(values, draws, scale)

    def step(self, count: int, scale: float, clip: float) -> float:
        return step_of(scale)


def step_of(scale: float) -> float:
    """Of the public grid: the power of two next below scale * 2**-20."""
    return 2.0 ** (math.floor(math.log2(scale)) - 20)


def perturbed(values: Draws, draws: Draws, scale: float) -> Draws:
    """``values + scale * draws`` on the public grid."""
    grid = step_of(scale)
    # Whole steps of a value stay out of the rounding, which would be coarser for larger values.
    whole = np.rint(values / grid)
    steps = whole + np.rint(scale / grid * draws + (values / grid - whole))
    # 41 bits of each are kept: heavy tails reach all such numbers, but not every float64.
    kept = (steps.view(np.int64) + 2**11) & -(2**12)
    return np.asarray(kept.view(np.float64) * grid)
