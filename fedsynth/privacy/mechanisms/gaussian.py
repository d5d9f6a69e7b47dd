"""Gaussian noise, for sums that are clipped in L2; the scale is its standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fedsynth.errors import PrivacyError
from fedsynth.privacy.curves import Curve, Loss, gaussian_loss, of_event
from fedsynth.privacy.integers import WIDER, add_noise, step_of
from fedsynth.privacy.mechanisms.mechanism import Additive
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Sampling


@dataclass(frozen=True)
class Gaussian(Additive):
    """Independent normal noise: under every trust model, of every sample."""

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = "l2"
    wider: ClassVar[float] = WIDER

    def add(
        self, values: Draws, scale: float, shares: int, clip: float, source: NoiseSource
    ) -> Draws:
        return add_noise(values, scale, clip, source)

    def step(self, count: int, scale: float, clip: float) -> float:
        return step_of(count, scale, clip)

    def deviation(self, scale: float) -> float:
        return scale

    def reach(self, dim: int, shares: int) -> float:
        """1-Lipschitz: above its mean, ``sqrt(dim)`` at most, by t with probability
        ``exp(-t^2/2)`` at most; half a step of rounding, of 512 and more, beside it."""
        return (math.sqrt(dim) * (1 + 2.0**-10) + 8.1) / self.growth(shares)

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        from dp_accounting import GaussianDpEvent

        moved = 2 if replace_one else 1
        return of_event(sampling.event(GaussianDpEvent(noise / moved)), replace_one)

    def loss(self, noise: float, sampling: Sampling, count: int) -> Loss:
        if sampling.rate is None:
            raise PrivacyError("no loss distribution is known for samples of a fixed size")
        return gaussian_loss(noise, sampling.rate, count)
