"""The exponential mechanism: a server that may see a sum releases which block of it stands out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.errors import PrivacyError
from fedsynth.privacy.curves import Curve, Loss, composed, loss_of, of_event
from fedsynth.privacy.mechanisms.mechanism import Mechanism
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Everyone, Sampling
from fedsynth.privacy.trust import Trust


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Gumbel noise on scores that a unit moves by at most the clip, and the largest is released.

    With noise of ``m * clip`` the log-ratio of any choice's probabilities in neighbouring data sets
    lies in one interval of length ``eps0 = 2/m``, wherever that is: eps0-bounded range (Dong,
    Durfee, Rogers 2020, "Optimal differential privacy composition for exponential mechanisms").
    """

    name: ClassVar[str] = "exponential"
    norm: ClassVar[Norm] = "l1"
    selects: ClassVar[bool] = True
    assumes: ClassVar[str] = (
        " Some releases are choices by the exponential mechanism: whoever chooses sees exact sums, "
        "and nothing but the choice is released."
    )

    def admit(self, trust: Trust, sampling: Sampling) -> None:
        if not (trust.server_adds and sampling == Everyone()):
            raise PrivacyError(
                "the exponential mechanism needs a trusted server, who sees the exact scores, and "
                "everybody asked: select among noisy sums instead"
            )

    def choose(self, scores: Draws, scale: float, source: NoiseSource) -> int:
        """Index i with probability proportional to ``exp(score_i / scale)``."""
        gumbel = -np.log(-np.log1p(-source.uniform(len(scores))))  # far ones from small uniforms
        return int(np.argmax(scores + scale * gumbel))

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        """At most the Gaussian's of the same multiplier: eps0-bounded range is eps0^2/8-zCDP (Cesar
        and Rogers 2021, "Bounding, concentrating, and truncating")."""
        from dp_accounting import GaussianDpEvent

        return of_event(GaussianDpEvent(noise / (2 if replace_one else 1)), replace_one)

    def loss(self, noise: float, sampling: Sampling, count: int) -> Loss:
        eps0 = 2 / noise
        return composed(loss_of(lambda e: bounded_range_delta(e, eps0), eps0), count)


def bounded_range_delta(epsilon: Curve, eps0: float) -> Curve:
    """The largest hockey-stick divergence of any eps0-bounded-range mechanism, any shape and sign.

    The loss lies in an interval of length eps0; at the worst it takes both ends, t and t - eps0,
    and as both distributions sum to 1 the upper end has probability ``(e^eps0 - e^t) / (e^eps0 -
    1)``. So the divergence is the largest over t of that times ``1 - e^(epsilon - t)``, which t =
    (eps0 + epsilon)/2 gives: ``(e^(eps0/2) - e^(epsilon/2))^2 / (e^eps0 - 1)`` for |epsilon| <=
    eps0, and nothing beyond (Dong, Durfee, Rogers 2020). With P and Q exchanged, t becomes eps0 -
    t: one curve for both directions. It is that of one pair of distributions, whose loss l has
    densities proportional to ``e^(l/2)`` and ``e^(-l/2)`` on [-eps0, eps0].
    """
    inside = np.clip(epsilon, -eps0, eps0)
    # Both divided by e^eps0, and written with expm1: eps0 may be large or small.
    curve = np.expm1((inside - eps0) / 2) ** 2 / -math.expm1(-eps0)
    # Below -eps0 all of P counts.
    found: Curve = np.maximum(curve, -np.expm1(np.minimum(epsilon, 0.0)))
    return found
