"""Symmetric alpha-stable noise, for sums that are clipped in L1 (Zawacki 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.curves import Curve, Loss, composed, loss_of
from fedsynth.privacy.mechanisms import stable_law
from fedsynth.privacy.mechanisms.floating import Floating
from fedsynth.privacy.mechanisms.pure import amplified, pure_curve, pure_delta
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Everyone, Sampling

# The stable indices that are told from 2, which is Gaussian, with ten digits to spare.
LEAST_ALPHA, LARGEST_ALPHA = 1.0, 2 - 1e-6

# What a tenth of standard normal draws exceed in magnitude.
_TENTH = 1.6448536269514722


@dataclass(frozen=True)
class Stable(Floating):
    """Independent noise of index ``alpha`` in [1, 2): Cauchy at 1, Gaussian towards 2.

    A statistic f in R^m, moved by d = f(D) - f(D') with ``||d||_1 <= D1`` between neighbours, is
    released as ``f + gamma Z`` with m independent draws Z. Coordinates are independent, so the
    log-ratio of the densities is a sum over coordinates of ``ln p(z_j + d_j / gamma) - ln p(z_j)``.
    By the mean value theorem each is at most ``s_alpha |d_j| / gamma`` in magnitude, where
    ``s_alpha = sup_x |p'(x) / p(x)|`` is finite for alpha < 2 (:func:`stable_law.score_bound`).
    Together at most ``s_alpha ||d||_1 / gamma``: the release is pure epsilon-DP with ``epsilon =
    s_alpha D1 / gamma``, whatever m is, without delta. No smaller figure holds for all m: a shift
    spread over many coordinates reaches it in the limit. For one coordinate
    :func:`stable_law.scalar_epsilon` is smaller (at alpha 1 it is ``2 asinh(D1 / 2 gamma)``), and
    since it is concave in the shift, using it for a vector, as that thesis does, under-reports.
    """

    alpha: float

    name: ClassVar[str] = "stable"
    norm: ClassVar[Norm] = "l1"
    caution: ClassVar[str] = (
        "symmetric alpha-stable noise, charged as a pure epsilon that holds for vectors of any "
        "length within the L1 clip. Its variance is infinite, so single figures may lie far off, "
        "and no standard error says how far."
    )

    def __post_init__(self) -> None:
        if not LEAST_ALPHA <= self.alpha <= LARGEST_ALPHA:
            raise ConfigError(
                f"alpha must be in [1, 2), at most {LARGEST_ALPHA}, not {self.alpha}: use Gaussian "
                "noise instead of alpha 2"
            )

    def draw(self, count: int, source: NoiseSource) -> Draws:
        return stable_law.draws(count, self.alpha, source)

    def growth(self, shares: float) -> float:
        """A sum of K independent draws is stable again, of scale ``K^(1/alpha)``."""
        return float(shares ** (1 / self.alpha))

    def deviation(self, scale: float) -> float:
        """There is none: what stands in is that of the Gaussian noise that a tenth of the draws
        exceed as they exceed the stable one."""
        return scale * stable_law.reach(self.alpha, 0.1) / _TENTH

    def reach(self, dim: int, shares: int) -> float:
        """None of the draws exceeds what each exceeds with probability 1e-14 / dim. Such tails are
        heavy (``x^-alpha``): the bound is 6e13 dim^2 at alpha 1, 2e7 dim^1.6 at 1.8, so it stops
        what no noise explains, and not a client that means to spoil the sum."""
        return dim * stable_law.reach(self.alpha, 1e-14 / dim) / self.growth(shares)

    def pure_epsilon(self, noise: float, sampling: Sampling, replace_one: bool) -> float:
        """Pure epsilon of one release, for vectors of any length: ``s_alpha clip / scale``.

        Raises:
            PrivacyError: sampling that no analysis covers.
        """
        if noise == 0:
            return math.inf
        whole = stable_law.score_bound(self.alpha) * (2 if replace_one else 1) / noise
        if sampling == Everyone():
            return whole
        if sampling.rate is None or replace_one:
            raise PrivacyError(
                f"no analysis covers stable noise under {sampling.kind} sampling "
                f"({'replace-one' if replace_one else 'add/remove'}): ask everybody, or use "
                "Gaussian noise"
            )
        return amplified(whole, sampling.rate)

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        return pure_curve(self.pure_epsilon(noise, sampling, replace_one))

    def loss(self, noise: float, sampling: Sampling, count: int) -> Loss:
        eps0 = self.pure_epsilon(noise, sampling, replace_one=False)
        return composed(loss_of(lambda e: pure_delta(e, eps0), eps0), count)
