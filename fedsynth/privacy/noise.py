"""Randomness from the operating system's entropy, and how noise is put on a public grid.

Real-valued noise in floating point has gaps that can tell neighbouring inputs apart (Mironov 2012).
Two things are done about it: uniforms carry 52 random bits and their sign a 53rd, and what is
released is rounded to a public grid about a millionth of the noise wide, which discards the low
bits where the gaps are (rounding is post-processing). This narrows the attack, it is no proof.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.float64]
Positions = NDArray[np.int64]

_GRID_BITS = 20


class NoiseSource:
    """Random draws that privacy rests on. An ``insecure_seed`` fixes them: whoever knows it can
    subtract the noise, so it is for tests alone and voids the certificate."""

    def __init__(self, insecure_seed: int | None = None) -> None:
        self.insecure = insecure_seed is not None
        self._generator = np.random.default_rng(insecure_seed) if self.insecure else None

    def words(self, count: int) -> NDArray[np.uint64]:
        """Random 64-bit words, shape [count]."""
        if self._generator is not None:
            return np.frombuffer(self._generator.bytes(8 * count), np.uint64)
        return np.frombuffer(os.urandom(8 * count), np.uint64)

    def uniform(self, count: int) -> Draws:
        """Uniform on the open interval (0, 1), 52 bits each, shape [count]."""
        return to_unit(self.words(count))

    def signed(self, count: int) -> tuple[Draws, Draws]:
        """A uniform on (0, 1) and an independent sign for each draw."""
        words = self.words(count)
        # The last bit is none of the uniform's.
        return to_unit(words), np.where(words & np.uint64(1), 1.0, -1.0)

    def seed(self) -> int:
        """Of 63 bits, for draws that nothing private rests on: Torch keeps 32, which anybody who
        sees its draws can search through."""
        return int(self.words(1)[0] >> np.uint64(1))

    def generator(self) -> np.random.Generator:
        """From 128 fresh bits, for secret draws that go with private rows. None may be told: its
        state can be computed from some thousand."""
        return np.random.Generator(np.random.PCG64DXSM(self.words(2).tolist()))


def to_unit(words: NDArray[np.uint64]) -> Draws:
    """The middles of 2**52 equal cells of (0, 1): with one bit more, the last would round to 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def perturbed(values: Draws, draws: Draws, scale: float) -> Draws:
    """``values + scale * draws`` on the public grid: the power of two next below scale * 2**-20."""
    grid = 2.0 ** (math.floor(math.log2(scale)) - _GRID_BITS)
    noisy: Draws = np.round((values + scale * draws) / grid) * grid
    return noisy
