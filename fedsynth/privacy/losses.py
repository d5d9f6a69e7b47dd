"""Epsilon by privacy loss distributions: dp-accounting's, and those of choices and pure releases.

A pair of distributions whose hockey-stick divergences are at least a mechanism's for every epsilon
*dominates* it. Dominating pairs compose, adaptively too (Zhu, Dong, Wang 2022, "Optimal accounting
of differential privacy via characteristic function", theorem 10), so composing the worst curve of
each release bounds them all together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.privacy.mechanisms import stable
from fedsynth.privacy.terms import Poisson, Terms

# Width of the mesh; distributions are rounded up onto it.
_MESH = 1e-4


def epsilon(counts: Mapping[Terms, int], delta: float) -> float:
    """Epsilon of ``counts[terms]`` releases under each ``terms``, composed, add/remove.

    Args:
        counts: noise multipliers above 0; Gaussian and stable releases alone may be of samples, by
            coin flips.

    Raises:
        PrivacyError: a mechanism or sampling that nothing here covers.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    found = pld.identity(value_discretization_interval=_MESH)
    for terms, count in counts.items():
        found = found.compose(_releases(terms, count))
    return float(found.get_epsilon_for_delta(delta))


def _releases(terms: Terms, count: int) -> Any:
    """The privacy loss distribution of ``count`` releases."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    noise, mesh = terms.noise_multiplier, {"value_discretization_interval": _MESH}
    rate = terms.sampling.rate if isinstance(terms.sampling, Poisson) else 1.0
    match terms.mechanism:
        case "gaussian" if rate == 1:
            # Exactly one release with less noise, so that the mesh rounds once.
            return pld.from_gaussian_mechanism(noise / math.sqrt(count), **mesh)
        case "gaussian":
            one = pld.from_gaussian_mechanism(noise, sampling_prob=rate, **mesh)
        case "laplace":
            one = pld.from_laplace_mechanism(noise, **mesh)
        case "exponential":
            eps0 = 2 / noise
            one = _of_curve(lambda epsilon: bounded_range_delta(epsilon, eps0), eps0)
        case "stable":
            pure = stable.release_epsilon(terms)
            one = _of_curve(lambda epsilon: pure_delta(epsilon, pure), pure)
        case _:
            raise PrivacyError(f"no loss distribution is known for {terms.mechanism} releases")
    return one.self_compose(count)


def bounded_range_delta(epsilon: NDArray[np.float64], eps0: float) -> NDArray[np.float64]:
    """The largest hockey-stick divergence of any eps0-bounded-range mechanism.

    Its privacy loss lies in an interval of length eps0; at the worst it takes both ends, t and
    t - eps0, and as both distributions sum to 1 the upper end has probability
    ``(e^eps0 - e^t) / (e^eps0 - 1)``. So the divergence is the largest over t of that times
    ``1 - e^(epsilon - t)``, which t = (eps0 + epsilon)/2 gives:
    ``(e^(eps0/2) - e^(epsilon/2))^2 / (e^eps0 - 1)`` for |epsilon| <= eps0, and nothing beyond
    (Dong, Durfee, Rogers 2020, "Optimal differential privacy composition for exponential
    mechanisms"). With P and Q exchanged, t becomes eps0 - t: one curve holds for both directions.

    It is the curve of one pair of distributions, whose loss l has densities proportional to
    ``e^(l/2)`` and ``e^(-l/2)`` on [-eps0, eps0].

    Args:
        epsilon: any shape, of any sign.
    """
    inside = np.clip(epsilon, -eps0, eps0)
    # Both divided by e^eps0, and written with expm1: eps0 may be large or small.
    curve = np.expm1((inside - eps0) / 2) ** 2 / -np.expm1(-eps0)
    # Below -eps0 all of P counts.
    found: NDArray[np.float64] = np.maximum(curve, -np.expm1(np.minimum(epsilon, 0.0)))
    return found


def pure_delta(epsilon: NDArray[np.float64], eps0: float) -> NDArray[np.float64]:
    """The largest hockey-stick divergence of any eps0-DP release: that of randomised response.

    Its loss is eps0 with probability ``1 / (1 + e^-eps0)``, else -eps0 (Kairouz, Oh, Viswanath
    2015, "The composition theorem for differential privacy"). So the divergence is ``(e^eps0 -
    e^epsilon) / (1 + e^eps0)`` for |epsilon| <= eps0, and nothing beyond.

    Args:
        epsilon: any shape, of any sign.
    """
    inside = np.clip(epsilon, -eps0, eps0)
    curve = -np.expm1(inside - eps0) / (1 + np.exp(-eps0))
    found: NDArray[np.float64] = np.maximum(curve, -np.expm1(np.minimum(epsilon, 0.0)))
    return found


def _of_curve(curve: Callable[[NDArray[np.float64]], NDArray[np.float64]], eps0: float) -> Any:
    """The privacy loss distribution, on [-eps0, eps0], of a curve of divergences, rounded up."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    reach = math.ceil(eps0 / _MESH)
    places = np.asarray(np.arange(-reach, reach + 1) * _MESH, np.float64)
    return PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(_MESH, -reach, reach, curve(places))
    )
