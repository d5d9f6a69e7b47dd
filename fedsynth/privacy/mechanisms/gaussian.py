"""Gaussian noise, for sums that are clipped in L2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedsynth.errors import PrivacyError
from fedsynth.privacy.curves import MESH, Curve, of_event
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Sampling
from fedsynth.privacy.trust import Trust

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class Gaussian:
    """Independent normal noise; the scale is its standard deviation."""

    name: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = "l2"
    selects: ClassVar[bool] = False
    assumes: ClassVar[str] = ""
    caution: ClassVar[str] = ""

    def admit(self, trust: Trust, sampling: Sampling) -> None:
        """Every trust model and sampling."""

    def draw(self, count: int, source: NoiseSource) -> Draws:
        """By the inverse distribution function, from the half where it has no cancellation."""
        from scipy.special import ndtri

        uniform, sign = source.signed(count)
        draws: Draws = sign * ndtri(0.5 * uniform)
        return draws

    def share(self, count: int, shares: int, source: NoiseSource) -> Draws:
        return self.draw(count, source)

    def growth(self, shares: float) -> float:
        """Variances add up."""
        return math.sqrt(shares)

    def deviation(self, scale: float) -> float:
        return scale

    def reach(self, dim: int, shares: int) -> float:
        """The norm is 1-Lipschitz: above its mean, at most ``sqrt(dim)``, by t with probability at
        most ``exp(-t^2 / 2)``."""
        return (math.sqrt(dim) + 8.1) / self.growth(shares)

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        from dp_accounting import GaussianDpEvent

        moved = 2 if replace_one else 1
        return of_event(sampling.event(GaussianDpEvent(noise / moved)), replace_one)

    def loss(self, noise: float, sampling: Sampling, count: int) -> PrivacyLossDistribution:
        from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism as of

        if sampling.rate is None:
            raise PrivacyError("no loss distribution is known for samples of a fixed size")
        if sampling.rate == 1:
            # Exactly one release with less noise, so that the mesh rounds once.
            return of(noise / math.sqrt(count), value_discretization_interval=MESH)
        one = of(noise, value_discretization_interval=MESH, sampling_prob=sampling.rate)
        return one.self_compose(count)
