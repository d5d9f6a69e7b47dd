"""Renyi curves and privacy loss distributions, by dp-accounting."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError

Curve = NDArray[np.float64]
# dp-accounting's, which has no types: a DpEvent, a PrivacyLossDistribution.
DpEvent = Any
Loss = Any

# Width of the mesh of loss distributions, which are rounded up onto it.
MESH = 1e-4
# As many losses at the most are dp-accounting's to keep in a dictionary.
_SPARSE = 1000


@lru_cache(maxsize=1)
def orders() -> Curve:
    """The orders at which Renyi curves are known: dp-accounting's."""
    return np.asarray(_accounting().RdpAccountant().orders, np.float64)


def _accounting() -> Any:
    """dp-accounting's RDP, which logs every order that it leaves out of the minimum: that is sound,
    and of no use to a user."""
    from dp_accounting import rdp

    logging.getLogger("absl").setLevel(logging.ERROR)
    return rdp


def of_event(event: DpEvent, replace_one: bool) -> Curve:
    """RDP of one event at :func:`orders`. Raises PrivacyError where no analysis covers it."""
    from dp_accounting import NeighboringRelation as Relation

    relation = Relation.REPLACE_ONE if replace_one else Relation.ADD_OR_REMOVE_ONE
    accountant = _accounting().RdpAccountant(orders().tolist(), relation)
    if not accountant.supports(event):
        raise PrivacyError(
            "no analysis covers these releases together: fixed-size samples cannot be combined "
            "with Poisson samples, and Laplace noise cannot be amplified by sampling"
        )
    return np.asarray(accountant.compose(event).rdp, np.float64)


def loss_of(divergence: Callable[[Curve], Curve], eps0: float) -> Loss:
    """The loss distribution, on [-eps0, eps0], of hockey-stick divergences, rounded up.

    A pair of distributions whose divergences are at least a mechanism's for every epsilon, of any
    sign, *dominates* it, and dominating pairs compose, adaptively too (Zhu, Dong, Wang 2022,
    "Optimal accounting of differential privacy via characteristic function", theorem 10).
    """
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.PrivacyLossDistribution(_rounded(divergence, -eps0, eps0))


def _rounded(divergence: Callable[[Curve], Curve], lower: float, upper: float) -> Any:
    """dp-accounting's rounded masses of losses in between, from divergences.

    Its ``create_pmf_pessimistic_connect_dots_fixed_gap`` to the last bit, without the dictionary
    that it goes through, which takes most of its time: masses of many losses stay an array.
    """
    from dp_accounting.pld import pld_pmf

    low, high = math.floor(lower / MESH), math.ceil(upper / MESH)
    deltas = divergence(np.asarray(np.arange(low, high + 1) * MESH, np.float64))
    if len(deltas) <= _SPARSE:
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(MESH, low, high, deltas)
    # Doroshenko et al. 2022, "Connect the dots", algorithm 1, for losses at equal distances.
    # Rounding may let divergences rise by a little; more would be a fault.
    if not (deltas.min() >= 0 and deltas.max() <= 1 and np.diff(deltas).max() <= 1e-12):
        raise ValueError("divergences lie in [0, 1] and fall")
    deltas = np.minimum.accumulate(deltas)
    steps, masses = np.diff(deltas), np.zeros_like(deltas)
    masses[0] = 1 - deltas[0] + steps[0] / math.expm1(MESH)
    masses[1:-1] = (steps[1:] - steps[:-1] * math.exp(MESH)) / math.expm1(MESH)
    masses[-1] = steps[-1] / math.expm1(-MESH)
    return pld_pmf.DensePLDPmf(MESH, low, np.maximum(0.0, masses), deltas[-1], True)


def composed(loss: Loss, count: int) -> Loss:
    """The loss of so many such releases; that of one as it is, where most of dp-accounting's time
    would go to where the tails of a composition may be cut."""
    return loss if count == 1 else loss.self_compose(count)


def gaussian_loss(noise: float, rate: float, count: int) -> Loss:
    """The loss distribution of Gaussian releases of Poisson samples, as dp-accounting has it, which
    computes it number by number. A loss 10 deviations out counts as infinite.

    Divergences of samples follow from those of everybody, ``delta``: where a unit of the sample
    leaves, ``rate delta(log(1 + (e^epsilon - 1) / rate))``; where it joins,
    ``(1 - (1 - rate) e^epsilon) delta(-log(1 + (e^-epsilon - 1) / rate))``.
    """
    from dp_accounting.pld import privacy_loss_distribution
    from scipy.special import log_ndtr, ndtr

    def everybody(epsilon: Curve) -> Curve:
        """Balle and Wang 2018, theorem 8."""
        shift, half = epsilon * noise, 0.5 / noise
        lost = np.exp(epsilon + log_ndtr(-half - shift))
        return np.asarray(np.clip(ndtr(half - shift) - lost, 0, 1), np.float64)

    def leaving(epsilon: Curve) -> Curve:
        odds = np.expm1(epsilon) / rate
        found = rate * everybody(np.log1p(np.maximum(odds, np.nextafter(-1, 0))))
        return np.where(odds > -1, found, -np.expm1(epsilon))

    def joining(epsilon: Curve) -> Curve:
        odds = np.expm1(-epsilon) / rate
        found = everybody(-np.log1p(np.maximum(odds, np.nextafter(-1, 0))))
        return np.where(odds > -1, -np.expm1(epsilon + math.log1p(-rate)) * found, 0.0)

    if rate == 1:
        # Exactly one release with less noise, so that the mesh rounds once.
        noise /= math.sqrt(count)
        return loss_of(everybody, 0.5 / noise**2 + 10 / noise)
    reach = 0.5 / noise**2 + 10 / noise
    ends = (float(np.logaddexp(math.log1p(-rate), math.log(rate) + x)) for x in (-reach, reach))
    lower, upper = ends
    one = privacy_loss_distribution.PrivacyLossDistribution(
        _rounded(leaving, lower, upper), _rounded(joining, -upper, -lower)
    )
    return composed(one, count)
