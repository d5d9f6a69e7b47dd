"""Epsilon from releases, by dp-accounting.

RDP (the moments accountant) composes everything; privacy loss distributions (PLD) tighten the
figure where they are known. Both are upper bounds: the smaller is reported, and both are shown.
They are for terms that are fixed in advance, whatever is asked under them; else see `filters.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fedsynth.errors import PrivacyError
from fedsynth.privacy.curves import Curve, orders
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.units import unit_of

# Above this the privacy loss distribution needs gigabytes, and the figure protects nobody anyway.
_PLD_LIMIT = 30.0

Counts = Mapping[Terms, int]


@dataclass(frozen=True)
class Spent:
    """Cost at one delta: the smaller of the two bounds, and both; None where one is not known."""

    epsilon: float
    rdp: float
    pld: float | None


def charged(
    counts: Counts, participations: int | None = None, unit: str | None = None
) -> dict[Terms, int]:
    """The counts that a curious server must be charged with.

    A server that draws clients knows whom it drew. Where who takes part shows, drawing hides
    nothing, so every round counts in full, up to the number in which one client may take part.
    Records are drawn in secret at their client, so their amplification holds against all. Sums of
    another unit's rows than the job protects are charged for how far its own unit moves them.

    Args:
        participations: rounds after which a client refuses, None for no limit.
        unit: that the job protects; None where it is that of all terms.
    """
    found: dict[Terms, int] = {}
    for terms, count in counts.items():
        if unit is not None and terms.unit != unit:
            terms = _moved(terms, unit)
        elif not (terms.protects.per_record or terms.trusts.server_adds):
            if terms.sampling != Everyone() and participations is not None:
                count = min(count, participations)
            terms = unsampled(terms)
        found[terms] = found.get(terms, 0) + count
    return found


def _moved(terms: Terms, unit: str) -> Terms:
    """Terms of another unit's rows as they protect this unit, or PrivacyError: unamplified."""
    own, weigh = unit_of(unit), "person" if unit_of(unit).joined else None
    if terms.unit not in own.moved:
        raise PrivacyError(f"one {unit} may move a sum of {terms.unit}s without bound")
    noise = terms.noise_multiplier / own.moved[terms.unit]
    return replace(terms, unit=unit, noise_multiplier=noise, sampling=Everyone(), weigh=weigh)


def unsampled(terms: Terms) -> Terms:
    """The same release for those who know who took part: no amplification, same relation."""
    return replace(terms, sampling=terms.sampling.known())


def replaces_one(counts: Counts) -> bool:
    """Whether neighbours exchange a unit (forced by fixed-size samples) or add or remove one."""
    return any(terms.sampling.replaces_one for terms in counts)


def spent(counts: Counts, delta: float) -> Spent:
    """Cost of releases composed. Raises PrivacyError where no analysis covers them together."""
    return _spent(tuple(sorted(counts.items(), key=repr)), delta)


@lru_cache(maxsize=4096)
def _spent(counts: tuple[tuple[Terms, int], ...], delta: float) -> Spent:
    live: dict[Terms, int] = {}
    for terms, count in counts:
        if count:
            live[_bare(terms)] = live.get(_bare(terms), 0) + count
    if not live:
        return Spent(0.0, 0.0, 0.0)
    by_rdp = renyi(live, delta)
    # Under replace-one no loss distribution is known for a sample without replacement.
    known = all(terms.kind.composes for terms in live)
    if by_rdp > _PLD_LIMIT or replaces_one(live) or not known:
        return Spent(by_rdp, by_rdp, None)
    by_pld = tight(live, delta)
    return Spent(min(by_rdp, by_pld), by_rdp, by_pld)


@lru_cache(maxsize=4096)
def _bare(terms: Terms) -> Terms:
    """The terms with everything levelled that does not change the cost."""
    return replace(terms, clip=1.0, survivors=1, curious=0, trust="central")


def renyi(counts: Counts, delta: float, at: slice = slice(None)) -> float:
    """The bound by Renyi composition, which is quick, ``at`` some orders. Raises as `spent`."""
    from dp_accounting import rdp

    live = {terms: count for terms, count in counts.items() if count}
    if any(terms.noise_multiplier == 0 for terms in live):
        return math.inf
    exchange = replaces_one(live)
    total = sum((n * _curve(_bare(terms), exchange) for terms, n in live.items()), 0 * orders())
    return float(rdp.compute_epsilon(orders()[at], total[at], delta)[0]) if live else 0.0


@lru_cache(maxsize=4096)
def _curve(terms: Terms, exchange: bool) -> Curve:
    return terms.kind.renyi(terms.noise_multiplier, terms.sampling, exchange)


def tight(counts: Counts, delta: float) -> float:
    """The bound by loss distributions alone, of noisy releases under add/remove."""
    found, *others = (
        terms.kind.loss(terms.noise_multiplier, terms.sampling, count)
        for terms, count in counts.items()
    )
    for other in others:
        found = found.compose(other)
    return float(found.get_epsilon_for_delta(delta))
