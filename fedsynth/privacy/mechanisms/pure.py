"""What any release of pure epsilon costs in company: the curves of randomised response."""

from __future__ import annotations

import math

import numpy as np

from fedsynth.privacy.curves import Curve, orders


def pure_delta(epsilon: Curve, eps0: float) -> Curve:
    """The largest hockey-stick divergence of any eps0-DP release: that of randomised response.

    Its loss is eps0 with probability ``1 / (1 + e^-eps0)``, else -eps0 (Kairouz, Oh, Viswanath
    2015, "The composition theorem for differential privacy"). So the divergence is ``(e^eps0 -
    e^epsilon) / (1 + e^eps0)`` for |epsilon| <= eps0, and nothing beyond.

    Args:
        epsilon: any shape, of any sign.
    """
    inside = np.clip(epsilon, -eps0, eps0)
    curve = -np.expm1(inside - eps0) / (1 + np.exp(-eps0))
    found: Curve = np.maximum(curve, -np.expm1(np.minimum(epsilon, 0.0)))
    return found


def pure_curve(eps0: float) -> Curve:
    """The largest Renyi divergences of any eps0-DP release, at the orders of all curves.

    Those of randomised response, ``ln((sinh(a eps0) - sinh((a-1) eps0)) / sinh(eps0)) / (a-1)``
    (Bun and Steinke 2016; Kairouz, Oh, Viswanath 2015: it dominates all), which is ``ln(1 + 2
    sinh(a eps0/2) sinh((a-1) eps0/2) / cosh(eps0/2)) / (a-1)``: so nothing cancels.
    """
    a = orders()
    cosh = np.logaddexp(eps0 / 2, -eps0 / 2) - math.log(2)
    logs = math.log(2) + _log_sinh(a * eps0 / 2) + _log_sinh((a - 1) * eps0 / 2) - cosh
    return np.asarray(np.logaddexp(0, logs) / (a - 1))


def _log_sinh(x: Curve) -> Curve:
    return np.asarray(x + np.log(-np.expm1(-2 * x)) - math.log(2))


def amplified(epsilon: float, rate: float) -> float:
    """``ln(1 + rate (e^epsilon - 1))``: pure epsilon of a Poisson sample, without overflow.

    Under add/remove: the ratio of ``(1 - q) P + q P'`` and ``P`` is at most that, and so is its
    inverse (Balle, Barthe, Gaboardi 2018).
    """
    if epsilon < 1:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
