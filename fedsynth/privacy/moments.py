"""A second moments accountant, written apart from dp-accounting so that one can check the other.

Renyi divergences at integer orders from closed forms, plain composition, and two conversions to
(epsilon, delta). It needs numpy alone, and trades a little tightness (no fractional orders) for
being short enough to read: `verify` holds every certificate against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from fedsynth.errors import PrivacyError
from fedsynth.privacy.terms import Everyone, FixedSize, Mechanism, Poisson, Terms

ORDERS = (*range(2, 65), 72, 80, 96, 128, 192, 256, 384, 512, 1024)


def gaussian(sigma: float, order: int) -> float:
    """RDP of the Gaussian mechanism, sensitivity 1: ``order / (2 sigma^2)`` (Mironov 2017)."""
    return order / (2 * sigma**2)


def laplace(scale: float, order: int) -> float:
    """RDP of the Laplace mechanism, L1 sensitivity 1 (Mironov 2017, proposition 6)."""
    a = order
    terms = (
        np.log(a / (2 * a - 1)) + (a - 1) / scale,
        np.log((a - 1) / (2 * a - 1)) - a / scale,
    )
    return float(logsumexp(terms)) / (a - 1)


def _log_binomial(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def poisson_gaussian(sigma: float, rate: float, order: int) -> float:
    """RDP of the Poisson-sampled Gaussian, add/remove, at an integer order.

    ``log sum_k C(a,k) (1-q)^(a-k) q^k exp((k^2-k)/(2 sigma^2)) / (a-1)`` (Mironov, Talwar, Zhang
    2019, section 3.3; Abadi et al. 2016, the moments accountant).
    """
    if rate == 1:
        return gaussian(sigma, order)
    k = np.arange(order + 1)
    logs = (
        _log_binomial(order, k)
        + (order - k) * np.log1p(-rate)
        + k * np.log(rate)
        + (k * k - k) / (2 * sigma**2)
    )
    return max(0.0, float(logsumexp(logs)) / (order - 1))


def fixed_size_gaussian(sigma: float, rate: float, order: int) -> float:
    """RDP of the Gaussian on a sample without replacement, replace-one (Wang et al. 2019, thm 9).

    Args:
        sigma: noise over the replace-one sensitivity.
    """
    j = np.arange(2, order + 1)
    second = np.log(min(4 * np.expm1(min(gaussian(sigma, 2), 700)), 2 * np.exp(1 / sigma**2)))
    logs = j * np.log(rate) + _log_binomial(order, j) + np.log(2)
    logs = logs + (j - 1) * j / (2 * sigma**2)
    logs[0] = 2 * np.log(rate) + _log_binomial(order, j[:1])[0] + second
    bound = float(logsumexp(np.append(logs, 0.0))) / (order - 1)
    return min(bound, gaussian(sigma, order))


def curve(terms: Terms, replace_one: bool) -> NDArray[np.float64]:
    """RDP of one release at :data:`ORDERS`.

    Args:
        replace_one: exchange a unit instead of adding or removing one, which moves a clipped sum by
            twice the clip.
    """
    sigma = terms.noise_multiplier / (2 if replace_one else 1)
    if sigma == 0:
        return np.full(len(ORDERS), np.inf)
    with np.errstate(over="ignore"):
        return np.array([_single(terms, sigma, order, replace_one) for order in ORDERS])


def _single(terms: Terms, sigma: float, order: int, replace_one: bool) -> float:
    mechanism: Mechanism = terms.mechanism
    match mechanism, terms.sampling:
        case "laplace", Everyone():
            return laplace(sigma, order)
        case "gaussian", Everyone():
            return gaussian(sigma, order)
        case "gaussian", Poisson(rate=rate) if not replace_one:
            return poisson_gaussian(sigma, rate, order)
        case "gaussian", FixedSize(size=size, population=population) if replace_one:
            return fixed_size_gaussian(sigma, size / population, order)
    raise PrivacyError(
        f"no analysis for {mechanism} noise under {type(terms.sampling).__name__} sampling "
        f"({'replace-one' if replace_one else 'add/remove'})"
    )


def compose(counts: Mapping[Terms, int], replace_one: bool) -> NDArray[np.float64]:
    """Renyi curves add up: the RDP of all releases together at :data:`ORDERS`."""
    total = np.zeros(len(ORDERS))
    for terms, count in counts.items():
        if count:
            total += count * curve(terms, replace_one)
    return total


def epsilon(rdp: NDArray[np.float64], delta: float, orders: Sequence[int] = ORDERS) -> float:
    """Epsilon at ``delta`` by the improved conversion (Canonne, Kamath, Steinke 2020, prop. 12)."""
    a = np.asarray(orders, dtype=np.float64)
    values = rdp + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1)
    return max(0.0, float(np.min(values)))


def classic_epsilon(
    rdp: NDArray[np.float64], delta: float, orders: Sequence[int] = ORDERS
) -> float:
    """Epsilon by the tail bound of Abadi et al. 2016, theorem 2: what the papers report."""
    a = np.asarray(orders, dtype=np.float64)
    return float(np.min(rdp + np.log(1 / delta) / (a - 1)))
