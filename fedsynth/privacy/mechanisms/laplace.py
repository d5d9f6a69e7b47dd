"""Laplace noise, for sums that are clipped in L1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.errors import PrivacyError
from fedsynth.privacy.curves import MESH, Curve, Loss, composed, of_event
from fedsynth.privacy.mechanisms.floating import Floating
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Sampling

# exp(-_TAIL) is 1e-14.
_TAIL = 32.3


@dataclass(frozen=True)
class Laplace(Floating):
    """Independent Laplace noise of density ``exp(-|x| / scale) / (2 scale)``.

    **Shares.** A Gamma variable of shape a has the characteristic function ``(1 - i t)^-a``, so the
    difference of two has ``(1 - i t)^-a (1 + i t)^-a = (1 + t^2)^-a``, and the sum of n such
    differences of shape 1/n has ``(1 + t^2)^-1``: exactly Laplace's (Kotz, Kozubowski, Podgorski
    2001, "The Laplace distribution and generalizations", section 2.4; as clients' shares: Goryczka
    and Xiong 2017, "A comprehensive comparison of multiparty secure additions with differential
    privacy"). Where more than n answer, the sum is that of n and independent noise beside it, which
    is post-processing of a release that is charged. Fewer carry too little: such a round fails.
    """

    name: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = "l1"

    def draw(self, count: int, source: NoiseSource) -> Draws:
        """By the inverse distribution function, in the half where nothing cancels."""
        uniform, sign = source.signed(count)
        return sign * np.log(uniform)

    def share(self, count: int, shares: int, source: NoiseSource) -> Draws:
        """``sqrt(shares)`` times the difference of two Gamma variables of shape ``1 / shares``."""
        more, less = (gamma(count, 1 / shares, source) for _ in range(2))
        return self.growth(shares) * (more - less)

    def left(self, others: int, shares: int) -> float:
        """Fewer shares have a density without bound at 0, which protects nobody; of more, those
        beyond the whole are post-processing."""
        return 1.0 if others >= shares else 0.0

    def deviation(self, scale: float) -> float:
        return math.sqrt(2) * scale

    def reach(self, dim: int, shares: int) -> float:
        """The L1 norm of whole draws is a Gamma variable of shape ``dim``. That of differences of
        shape 1/n is at most one of shape ``2 dim / n``, and no likelier to exceed anything than
        that of the whole, which is other noise added to it, both symmetric and unimodal (Anderson
        1955). A Gamma variable of shape k exceeds ``k + sqrt(2 k t) + t`` with probability at most
        exp(-t) (Boucheron, Lugosi, Massart 2013, section 2.4)."""
        shape = min(dim, 2 * dim / shares)
        return shape + math.sqrt(2 * shape * _TAIL) + _TAIL

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        from dp_accounting import LaplaceDpEvent

        moved = 2 if replace_one else 1
        return of_event(sampling.event(LaplaceDpEvent(noise / moved)), replace_one)

    def loss(self, noise: float, sampling: Sampling, count: int) -> Loss:
        from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

        if sampling.rate != 1:
            raise PrivacyError("no analysis covers Laplace noise that is amplified by sampling")
        return composed(from_laplace_mechanism(noise, value_discretization_interval=MESH), count)


def gamma(count: int, shape: float, source: NoiseSource) -> Draws:
    """Gamma variables of scale 1, shape [count].

    ``Gamma(a) = Gamma(a + 1) * U^(1/a)`` with U uniform and independent: U^(1/a) is Beta(a, 1), and
    a Beta(a, b) part of a Gamma(a + b) variable is Gamma(a) (Stuart 1962, "Gamma-distributed
    products of independent random variables"). For small a most draws are far smaller than any grid
    (half of those of shape 0.001 below 1e-301), so that the inverse distribution function itself,
    ``scipy.special.gammaincinv(a, U)``, has no digits there; that of shape a + 1 has them all. Two
    words a draw whatever comes of it: nothing is rejected, so time tells nothing.

    Args:
        shape: in (0, 1].
    """
    from scipy.special import gammainccinv

    # The complement, so that far draws come from small uniforms and not from those near 1.
    whole: Draws = gammainccinv(shape + 1, source.uniform(count))
    return whole * source.uniform(count) ** (1 / shape)
