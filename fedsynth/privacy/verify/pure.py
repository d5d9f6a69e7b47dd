"""A second opinion on pure releases (stable noise), written apart from the first.

:mod:`fedsynth.privacy.mechanisms.stable_law` finds the score bound by contour integrals, and losses
are composed on a mesh; here the bound comes from stable noise as a mixture of normals, and
randomised responses are composed exactly. `verify` holds certificates against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln

from fedsynth.errors import PrivacyError
from fedsynth.privacy.verify.charges import Charge

# Compositions of more different outcomes than this are left to the Renyi bound.
_MOST_OUTCOMES = 200_000


def renyi(eps0: float, order: float) -> float:
    """RDP of an eps0-DP release, at the worst randomised response (Kairouz, Oh, Viswanath 2015).

    Two outcomes of probabilities ``p = 1 / (1 + e^-eps0)`` and 1 - p, which change places.
    """
    logs = np.logaddexp(_log_mass(eps0, order, 1 - order), _log_mass(eps0, 1 - order, order))
    return max(0.0, float(logs) / (order - 1))


def _log_mass(
    eps0: float, likely: float | NDArray[np.int64], other: float | NDArray[np.int64]
) -> NDArray[np.float64]:
    """``ln(p^likely (1 - p)^other)``."""
    whole = np.log1p(np.exp(-eps0))
    return np.asarray(-likely * whole - other * (eps0 + whole))


def epsilon(counts: Mapping[Charge, int], delta: float) -> float | None:
    """Epsilon of stable releases under add/remove, composed exactly as randomised responses.

    The losses of n responses of eps0 add up to ``(2 k - n) eps0`` with k binomial, so the
    divergence at epsilon is a finite sum over outcomes of ``P (1 - e^(epsilon - loss))`` where
    that is positive, and falls in epsilon.

    Returns:
        None where there are too many outcomes, or a mechanism that this does not cover.
    """
    if any(charge.mechanism != "stable" or charge.noise == 0 for charge in counts):
        return None
    if math.prod(count + 1.0 for count in counts.values()) > _MOST_OUTCOMES:
        return None
    losses, masses = np.zeros(1), np.ones(1)
    for charge, count in counts.items():
        eps0, k = release(charge, replace_one=False), np.arange(count + 1)
        losses = np.add.outer(losses, (2 * k - count) * eps0).ravel()
        ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
        masses = np.outer(masses, np.exp(ways + _log_mass(eps0, k, count - k))).ravel()

    def excess(at: float) -> float:
        return float((masses * -np.expm1(np.minimum(at - losses, 0))).sum()) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, losses.max(), xtol=1e-12))


def release(charge: Charge, replace_one: bool) -> float:
    """Pure epsilon of one release of stable noise: the score bound over the noise multiplier.

    Of a Poisson sample, ``ln(1 - q + q e^epsilon)`` under add/remove.

    Raises:
        PrivacyError: another mechanism, or sampling that this does not cover.
    """
    samplings = ("everyone",) if replace_one else ("everyone", "poisson")
    if charge.alpha is None or charge.sampling not in samplings:
        raise PrivacyError(
            f"no analysis of pure releases covers {charge.mechanism} noise so sampled"
        )
    whole = _score_bound(charge.alpha) * (2 if replace_one else 1) / charge.noise
    rate = charge.rate
    if rate == 1:
        return whole
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + whole))


@lru_cache(maxsize=64)
def _score_bound(alpha: float) -> float:
    """``sup |p'/p|`` of stable noise of scale 1, which is ``sqrt(2 A)`` times a normal variable.

    A is positive stable of index b = alpha/2, drawn by ``A = sin((1-b) u)^(1/b - 1) sin(b u) /
    sin(u)^(1/b) / w^(1/b - 1)`` for u uniform on (0, pi) and w exponential (Kanter 1975), so the
    score is ``x/2`` times a ratio of two means over u and w, all of it positive.
    """
    b = alpha / 2
    # u = pi - v; v = pi e^-y, since A is large for small v; w = e^z.
    nodes, weights = np.polynomial.legendre.leggauss(240)
    y, z = 20 * (nodes + 1), np.arange(-40, 4.5, 0.2)
    v = np.pi * np.exp(-y)
    wide = (1 / b - 1) * np.log(np.sin((1 - b) * (np.pi - v))) - np.log(np.sin(v)) / b
    wide += np.log(np.sin((1 - b) * np.pi + b * v))
    log_a = wide[:, None] - (1 / b - 1) * z
    mass = weights[:, None] * np.exp(-y[:, None] + z - np.exp(z) - log_a / 2)
    inverse = np.exp(-log_a)

    def negative_score(x: float) -> float:
        shared = mass * np.exp(-x * x / 4 * inverse)
        return -x / 2 * float((shared * inverse).sum() / shared.sum())

    rough = np.linspace(0.25, 20, 80)
    best = float(rough[np.argmin([negative_score(x) for x in rough])])
    bounds = (best - 0.25, best + 0.25)
    return -float(minimize_scalar(negative_score, bounds=bounds, method="bounded").fun)
