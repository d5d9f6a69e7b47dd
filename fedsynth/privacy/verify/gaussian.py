"""Epsilon of Gaussian releases that everybody takes part in, exactly.

Releases of noise multipliers z_i are together one of mu = sqrt(sum 1/z_i^2) standard deviations
between neighbours, whose smallest delta at epsilon is
``Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)`` (Balle, Wang 2018, "Improving the
Gaussian mechanism for differential privacy", theorem 8). No mesh, and no code of the accountants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from fedsynth.privacy.verify.charges import Charge


def epsilon(counts: Mapping[Charge, int], delta: float) -> float | None:
    """Epsilon of so many releases of each charge, composed, add/remove.

    Returns:
        None where there are others than Gaussian releases of everybody.
    """
    if not counts or not all(map(_covered, counts)):
        return None
    mu = math.sqrt(sum(count / charge.noise**2 for charge, count in counts.items()))
    if _delta(0.0, mu) <= delta:
        return 0.0
    most = mu * (mu + 1)
    while _delta(most, mu) > delta:
        most *= 2
    return float(brentq(lambda e: math.log(_delta(e, mu) / delta), 0.0, most, xtol=1e-12))


def _covered(charge: Charge) -> bool:
    everybody = charge.sampling == "everyone" and charge.mechanism == "gaussian"
    return everybody and charge.noise > 0


def _delta(epsilon: float, mu: float) -> float:
    below, above = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    # e^epsilon Phi(-above) without overflow, since (above^2 - below^2) / 2 is epsilon.
    lost = math.exp(-(below**2) / 2) * float(erfcx(above / math.sqrt(2))) / 2
    return max(float(ndtr(below)) - lost, math.ulp(0.0))
