"""A second moments accountant, written apart from dp-accounting so that one can check the other.

Renyi divergences from closed forms and, where there is none, from one-dimensional integrals; plain
composition; two conversions to (epsilon, delta). It is short enough to read: `verify` holds every
certificate against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from fedsynth.errors import PrivacyError
from fedsynth.privacy.verify import pure
from fedsynth.privacy.verify.charges import Best, Charge

# Those that dp-accounting optimises over, so that the two can be compared to many digits.
ORDERS = (*(1 + k / 10 for k in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)

# Moments of the fixed-size bound beyond this one are bounded more loosely.
_LAST_MOMENT = 256


def gaussian(sigma: float, order: float) -> float:
    """RDP of the Gaussian mechanism, sensitivity 1: ``order / (2 sigma^2)`` (Mironov 2017)."""
    return order / (2 * sigma**2)


def laplace(scale: float, order: float) -> float:
    """RDP of the Laplace mechanism, L1 sensitivity 1 (Mironov 2017, proposition 6)."""
    a = order
    terms = (
        np.log(a / (2 * a - 1)) + (a - 1) / scale,
        np.log((a - 1) / (2 * a - 1)) - a / scale,
    )
    return float(logsumexp(terms)) / (a - 1)


def bounded_range(eps0: float, order: float) -> float:
    """RDP of an eps0-bounded-range mechanism such as the exponential mechanism.

    At the worst the privacy loss takes the values t and t - eps0, the first with probability
    ``(e^eps0 - e^t) / (e^eps0 - 1)`` (Dong, Durfee, Rogers 2020); the divergence is the largest
    over t in [0, eps0], here on a grid.
    """
    t = np.linspace(0, eps0, 1001)
    whole = np.log(-np.expm1(-eps0))
    with np.errstate(divide="ignore"):
        upper = np.log(-np.expm1(t - eps0)) - whole
        lower = t - eps0 + np.log(-np.expm1(-t)) - whole
    logs = np.logaddexp(upper + (order - 1) * t, lower + (order - 1) * (t - eps0))
    return max(0.0, float(logs.max()) / (order - 1))


def _log_binomial(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def poisson_gaussian(sigma: float, rate: float, order: float) -> float:
    """RDP of the Poisson-sampled Gaussian, add/remove.

    ``log E_z[(1 - q + q exp((2z - 1) / (2 sigma^2)))^a] / (a-1)`` for z ~ N(0, sigma^2) (Abadi et
    al. 2016, the moments accountant; Mironov, Talwar, Zhang 2019, section 3.3), which at integer
    orders is ``log sum_k C(a,k) (1-q)^(a-k) q^k exp((k^2-k)/(2 sigma^2)) / (a-1)``.
    """
    if rate == 1:
        return gaussian(sigma, order)
    if order == int(order):
        k = np.arange(int(order) + 1)
        logs = (
            _log_binomial(int(order), k)
            + (order - k) * np.log1p(-rate)
            + k * np.log(rate)
            + (k * k - k) / (2 * sigma**2)
        )
        return max(0.0, float(logsumexp(logs)) / (order - 1))
    return max(0.0, _sampled_moment(sigma, rate, order) / (order - 1))


def _sampled_moment(sigma: float, rate: float, order: float) -> float:
    """The logarithm of the expectation above, by the trapezoidal rule.

    The integrand is analytic in a strip of half-width ``pi sigma^2`` and decays like a normal
    density around 0 and ``order``, where the rule converges exponentially in the step.
    """
    step = min(sigma / 4, sigma**2)
    z = np.arange(-14 * sigma, order + 14 * sigma, step)
    ratio = np.logaddexp(np.log1p(-rate), np.log(rate) + (2 * z - 1) / (2 * sigma**2))
    density = np.log(step / (sigma * np.sqrt(2 * np.pi))) - _normal_exponent(z, sigma)
    return float(logsumexp(order * ratio + density))


def _normal_exponent(z: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    return np.asarray(z * z / (2 * sigma**2))


def fixed_size_gaussian(sigma: float, rate: float, order: float) -> float:
    """RDP of the Gaussian on a sample without replacement, replace-one (Wang et al. 2019, thm 27).

    Between integer orders the cumulant, which is convex, is bounded by its chord (corollary 10).

    Args:
        sigma: noise over the replace-one sensitivity.
    """
    if rate == 1:
        return gaussian(sigma, order)
    below = int(np.floor(order))
    cumulant = _fixed_size_cumulant(sigma, rate, below)
    if order > below:
        above = _fixed_size_cumulant(sigma, rate, below + 1)
        cumulant += (order - below) * (above - cumulant)
    return min(cumulant / (order - 1), gaussian(sigma, order))


@lru_cache(maxsize=4096)
def _fixed_size_cumulant(sigma: float, rate: float, order: int) -> float:
    """``(order - 1)`` times the bound of theorem 27 at an integer order."""
    if order == 1:
        return 0.0
    j = np.arange(2, order + 1)
    plain = np.log(2) + (j - 1) * j / (2 * sigma**2)
    moments = np.append(_central_moments(sigma), np.full(order, np.inf))
    # moments[l] is that of order 2l; odd orders lie between their neighbours (Cauchy-Schwarz).
    sharp = np.log(4) + (moments[j // 2] + moments[(j + 1) // 2]) / 2
    logs = _log_binomial(order, j) + j * np.log(rate) + np.minimum(plain, sharp)
    return float(logsumexp(np.append(logs, 0.0)))


@lru_cache(maxsize=64)
def _central_moments(sigma: float) -> NDArray[np.float64]:
    """``log E_z[(p(z)/q(z) - 1)^(2l)]`` for q = N(0, sigma^2), p = N(1, sigma^2), l = 0, 1, ..."""
    step = sigma / 8
    reach = (14 + np.sqrt(_LAST_MOMENT)) * sigma
    z = np.arange(-reach, _LAST_MOMENT + reach, step)
    exponent = (2 * z - 1) / (2 * sigma**2)
    with np.errstate(divide="ignore"):
        # log|e^x - 1|, without overflow.
        away = np.maximum(exponent, 0) + np.log(-np.expm1(-np.abs(exponent)))
    density = np.log(step / (sigma * np.sqrt(2 * np.pi))) - _normal_exponent(z, sigma)
    powers = [2 * k * away + density for k in range(1, _LAST_MOMENT // 2 + 1)]
    return np.array([0.0, *(float(logsumexp(power)) for power in powers)])


@lru_cache(maxsize=256)
def curve(charge: Charge, replace_one: bool) -> NDArray[np.float64]:
    """RDP of one release at :data:`ORDERS`, once for all adversaries: not to be written to.

    Args:
        replace_one: exchange a unit instead of adding or removing one, which moves a clipped sum by
            twice the clip.
    """
    sigma = charge.noise / (2 if replace_one else 1)
    if charge.best is not None:
        found = best_of(charge.best, replace_one)
    elif sigma == 0:
        found = np.full(len(ORDERS), np.inf)
    else:
        with np.errstate(over="ignore"):
            found = np.array([_single(charge, sigma, order, replace_one) for order in ORDERS])
    found.setflags(write=False)
    return found


def best_of(best: Best, replace_one: bool) -> NDArray[np.float64]:
    """RDP at :data:`ORDERS` of the best of several trials (Papernot and Steinke 2022).

    With divergences e(a) of a trial, of a unit that may be in any of the parts, theorem 2 for
    numbers of mean m, negative binomial of shape eta, gives ``e(a) + log(m) / (a-1) + (1 + eta)
    min_b ((1 - 1/b) e(b) + log(1/gamma) / b)``; theorem 6 for Poisson ones ``e(a) + log(m) / (a-1)
    + m delta(a)``, where the trial is (log(1 + 1/(a-1)), delta(a))-DP. A bound at one order holds
    at all below.
    """
    one = np.max([compose(dict(part), replace_one) for part in best.parts], axis=0)
    a = np.asarray(ORDERS, dtype=np.float64)
    found = one + np.log(best.mean) / (a - 1)
    if best.law == "poisson":
        found += best.mean * np.array([_delta(one, -np.log1p(-1 / order)) for order in a])
    else:
        logs = _log_inverse_gamma(best.mean, best.law)
        factor = 2 if best.law == "geometric" else 1
        found += factor * np.min((1 - 1 / a) * one + logs / a)
    return np.asarray([found[k:].min() for k in range(len(a))])


def _log_inverse_gamma(mean: float, law: str) -> float:
    """``log(1/gamma)`` of a law by its mean: 1/gamma (geometric), or (1/gamma - 1) / log(1/gamma)
    (logarithmic), which rises with it: by bisection, rounded up."""
    if law == "geometric" or mean == 1:
        return math.log(mean)
    low, high = 0.0, 2 * math.log(mean) + 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.expm1(middle) < mean * middle else (low, middle)
    return high


def _delta(rdp: NDArray[np.float64], epsilon: float) -> float:
    """Delta at ``epsilon``, by the conversion of :func:`epsilon` or by total variation."""
    a = np.asarray(ORDERS, dtype=np.float64)
    logs = (a - 1) * (rdp - epsilon + np.log1p(-1 / a)) - np.log(a)
    return min(1.0, float(np.exp(np.min(logs))), math.sqrt(-math.expm1(-float(np.min(rdp)))))


def _single(charge: Charge, sigma: float, order: float, replace_one: bool) -> float:
    match charge.mechanism, charge.sampling:
        case "laplace", "everyone":
            return laplace(sigma, order)
        case "gaussian", "everyone":
            return gaussian(sigma, order)
        case "exponential", "everyone":
            return bounded_range(2 / sigma, order)
        case "stable", "everyone":
            return pure.renyi(pure.release(charge, replace_one), order)
        case "stable", "poisson" if not replace_one:
            return pure.renyi(pure.release(charge, replace_one), order)
        case "gaussian", "poisson" if not replace_one:
            return poisson_gaussian(sigma, charge.rate, order)
        case "gaussian", "fixed-size" if replace_one:
            return fixed_size_gaussian(sigma, charge.rate, order)
    raise PrivacyError(
        f"no analysis for {charge.mechanism} noise under {charge.sampling} sampling "
        f"({'replace-one' if replace_one else 'add/remove'})"
    )


def compose(counts: Mapping[Charge, int], replace_one: bool) -> NDArray[np.float64]:
    """Renyi curves add up: the RDP of all releases together at :data:`ORDERS`."""
    total = np.zeros(len(ORDERS))
    for charge, count in counts.items():
        if count:
            total += count * curve(charge, replace_one)
    return total


def epsilon(rdp: NDArray[np.float64], delta: float, orders: Sequence[int] = ORDERS) -> float:
    """Epsilon at ``delta`` by the improved conversion (Canonne, Kamath, Steinke 2020, prop. 12).

    Divergences so small that total variation, at most ``sqrt(1 - exp(-rdp))`` (Bretagnolle and
    Huber 1979), is within ``delta`` cost nothing.
    """
    if float(np.min(rdp)) < -math.log1p(-(delta**2)):
        return 0.0
    a = np.asarray(orders, dtype=np.float64)
    values = rdp + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1)
    return max(0.0, float(np.min(values)))


def classic_epsilon(
    rdp: NDArray[np.float64], delta: float, orders: Sequence[int] = ORDERS
) -> float:
    """Epsilon by the tail bound of Abadi et al. 2016, theorem 2: what the papers report."""
    a = np.asarray(orders, dtype=np.float64)
    return float(np.min(rdp + np.log(1 / delta) / (a - 1)))
