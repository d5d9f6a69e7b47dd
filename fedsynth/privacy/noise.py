"""Noise and secret sampling, from the operating system's entropy: the only module that draws them.

Real-valued noise in floating point has gaps that can tell neighbouring inputs apart (Mironov 2012).
Two things are done about it: uniforms carry 52 random bits and their sign a 53rd, and what is
released is rounded to a public grid about a millionth of the noise wide, which discards the low
bits where the gaps are (rounding is post-processing). This narrows the attack, it is no proof: an
integer mechanism can replace :func:`NoiseSource.perturb` without touching anything else.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.terms import Mechanism, Poisson

_GRID_BITS = 20


class NoiseSource:
    """Random draws that privacy rests on.

    Args:
        insecure_seed: fixes the draws. Whoever knows it can subtract the noise, so it is for tests
            alone and voids the certificate.
    """

    def __init__(self, insecure_seed: int | None = None) -> None:
        self.insecure = insecure_seed is not None
        self._generator = np.random.default_rng(insecure_seed) if self.insecure else None

    def _words(self, count: int) -> NDArray[np.uint64]:
        if self._generator is not None:
            return np.frombuffer(self._generator.bytes(8 * count), np.uint64)
        return np.frombuffer(os.urandom(8 * count), np.uint64)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Uniform on the open interval (0, 1), 52 bits each, shape [count]."""
        return _to_unit(self._words(count))

    def _signed(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A uniform on (0, 1) and an independent sign for each draw."""
        words = self._words(count)
        return _to_unit(words), np.where(words & np.uint64(1), 1.0, -1.0)

    def gaussian(self, count: int) -> NDArray[np.float64]:
        """Standard normal draws, by the inverse distribution function. Shape [count]."""
        from scipy.special import ndtri

        uniform, sign = self._signed(count)
        draws: NDArray[np.float64] = sign * ndtri(0.5 * uniform)
        return draws

    def laplace(self, count: int) -> NDArray[np.float64]:
        """Laplace draws with scale 1 (standard deviation sqrt(2)). Shape [count]."""
        uniform, sign = self._signed(count)
        return sign * np.log(uniform)

    def stable(self, count: int, alpha: float) -> NDArray[np.float64]:
        """Symmetric alpha-stable draws of scale 1, alpha in [1, 2). Shape [count].

        Chambers, Mallows, Stuck 1976: with V uniform on (-pi/2, pi/2) and W exponential,
        ``sin(alpha V) / cos(V)^(1/alpha) * (W / cos((alpha - 1) V))^(1 - 1/alpha)``. Written in the
        distance of V from the nearer end, ``pi u / 2``, where the tails come from: u has 52 bits
        wherever it lies, so that far draws are as close together as float64 numbers are, and near
        alpha 2, where ``sin(alpha V)`` almost vanishes there, nothing cancels.
        """
        words = self._words(count)
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        end = np.pi / 2 * _to_graded(words, self._words(count))
        wait = -np.log(self.uniform(count))
        lift = np.pi / 2 * (2 - alpha)
        heavy = np.sin(lift + alpha * end) / np.sin(end) ** (1 / alpha)
        draws: NDArray[np.float64] = (
            sign * heavy * (wait / np.sin(lift + (alpha - 1) * end)) ** (1 - 1 / alpha)
        )
        return draws

    def gumbel(self, count: int) -> NDArray[np.float64]:
        """Standard Gumbel draws. Shape [count]."""
        draws: NDArray[np.float64] = -np.log(-np.log(self.uniform(count)))
        return draws

    def choose(self, scores: NDArray[np.float64], scale: float) -> int:
        """The exponential mechanism: index i with probability proportional to exp(score_i / scale).

        That is where the largest score is once Gumbel noise of this scale is added to each.
        """
        return int(np.argmax(scores + scale * self.gumbel(len(scores))))

    def perturb(
        self,
        values: NDArray[np.float64],
        scale: float,
        mechanism: Mechanism = "gaussian",
        alpha: float | None = None,
    ) -> NDArray[np.float64]:
        """``values`` plus independent noise of the given scale, rounded to a public grid.

        The grid is the power of two next below ``scale * 2**-20``. A scale of 0 returns the values
        unchanged.

        Args:
            alpha: index of stable noise, which the others do not have.

        Raises:
            PrivacyError: a mechanism that adds no noise to sums, or an index without stable noise.
        """
        if (mechanism == "stable") != (alpha is not None):
            raise PrivacyError("stable noise needs its index alpha, and no other mechanism has one")
        if scale == 0:
            return values
        match mechanism:
            case "gaussian":
                draws = self.gaussian(values.size)
            case "laplace":
                draws = self.laplace(values.size)
            case "stable" if alpha is not None:
                draws = self.stable(values.size, alpha)
            case "exponential":
                raise PrivacyError("the exponential mechanism releases a choice, never the values")
            case _:
                raise PrivacyError(f"no noise is known for the mechanism {mechanism!r}")
        grid = 2.0 ** (math.floor(math.log2(scale)) - _GRID_BITS)
        noisy: NDArray[np.float64] = np.round((values + scale * draws) / grid) * grid
        return noisy

    def seed(self) -> int:
        """A fresh seed of 63 bits, for draws that nothing private rests on.

        Torch keeps 32 of them, which anybody who sees its draws can search through.
        """
        return int(self._words(1)[0] >> np.uint64(1))

    def generator(self) -> np.random.Generator:
        """A fast generator from 128 fresh bits, for secret draws that go with private rows.

        What it draws may not be told: its state can be computed from some thousand outputs.
        """
        return np.random.Generator(np.random.PCG64DXSM(self._words(2).tolist()))

    def poisson_sample(self, count: int, sampling: Poisson) -> NDArray[np.int64]:
        """Positions of the units that an independent coin flip each lets take part."""
        return np.flatnonzero(self.uniform(count) < sampling.rate)

    def fixed_sample(self, count: int, size: int) -> NDArray[np.int64]:
        """``size`` of ``count`` positions without replacement, in increasing order."""
        return np.sort(np.argsort(self.uniform(count))[:size])


def _to_unit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The middles of 2**52 equal cells of (0, 1): with one bit more, the last would round to 1."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _to_graded(words: NDArray[np.uint64], exponents: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Uniform on (0, 1) with 52 bits after the leading one, however small, down to 2**-53."""
    # A uniform lies in [1/2, 1) with probability 1/2, in [1/4, 1/2) with 1/4, and so on.
    _, octave = np.frexp((exponents >> np.uint64(12)).astype(np.float64))
    return np.asarray(
        np.ldexp(1 + (words >> np.uint64(12)).astype(np.float64) * 2.0**-52, octave - 53)
    )
