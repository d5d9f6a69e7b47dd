"""Randomness from the operating system's entropy."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

Draws = NDArray[np.float64]
Positions = NDArray[np.int64]


class NoiseSource:
    """Random draws that privacy rests on. An ``insecure_seed`` fixes them: whoever knows it can
    subtract the noise, so it is for tests alone and voids the certificate."""

    def __init__(self, insecure_seed: int | None = None) -> None:
        self.insecure = insecure_seed is not None
        self._generator = np.random.default_rng(insecure_seed) if self.insecure else None

    def words(self, count: int) -> NDArray[np.uint64]:
        """Random 64-bit words, shape [count]."""
        read = os.urandom if self._generator is None else self._generator.bytes
        return np.frombuffer(read(8 * count), np.uint64)

    def uniform(self, count: int) -> Draws:
        """Uniform on the open interval (0, 1), as below, shape [count]."""
        return self.signed(count)[0]

    def signed(self, count: int) -> tuple[Draws, Draws]:
        """A multiple of 2**-127 in (0, 1), rounded to float64, and an independent sign for each.

        One in 1,024 needs a second word to have 53 bits. Twice as many and 64 are read (too few in
        less than one of 1e36 cases), so that what is read does not tell how many draws are far.
        """
        words, more = self.words(count), self.words(count // 512 + 64)
        uniform = (words >> np.uint64(1)).astype(np.float64)
        small = np.flatnonzero(uniform < 2.0**53)[: len(more)]
        uniform[small] += more[: len(small)] * 2.0**-64
        signs = np.where(words & np.uint64(1), 1.0, -1.0)
        return np.clip(uniform * 2.0**-63, 2.0**-128, 1 - 2.0**-53), signs

    def seed(self) -> int:
        """Of 63 bits, for draws that nothing private rests on: Torch keeps 32, which anybody who
        sees its draws can search through."""
        return int(self.words(1)[0] >> np.uint64(1))

    def generator(self) -> np.random.Generator:
        """From 128 fresh bits, for secret draws that go with private rows. None may be told: its
        state can be computed from some thousand."""
        return np.random.Generator(np.random.PCG64DXSM(self.words(2).tolist()))
