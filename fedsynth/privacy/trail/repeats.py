"""What several jobs cost together that ask the same rows: no certificate of one of them says it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fedsynth.errors import PrivacyError
from fedsynth.privacy.accounting import charged
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.filters import least_epsilon
from fedsynth.privacy.trail.job import Planned, count_terms
from fedsynth.privacy.trail.ledger import Ledger


def cost_together(
    budget: Budget,
    releases: Iterable[Planned],
    participations: int | None,
    earlier: Iterable[Ledger],
) -> str:
    """What a job and earlier ones cost together, in words.

    The figure is the least epsilon with which an owner's own ledger admits all of it: the next job
    is chosen in view of the last one's release, so what a plan that is fixed in advance costs is
    too little (:mod:`fedsynth.privacy.filters`).

    Args:
        budget, releases, participations: of the job.
        earlier: what was asked before.
    """
    counts = charged(count_terms(releases), participations, budget.unit)
    try:
        for ledger in earlier:
            asked = charged(ledger.counts, ledger.job.participations, budget.unit)
            for terms, count in asked.items():
                counts[terms] = counts.get(terms, 0) + count
        epsilon = least_epsilon(counts, budget.resolved_delta)
    except PrivacyError:
        epsilon = math.inf
    if math.isinf(epsilon):
        return "no epsilon is known that holds for all of it together"
    return (
        f"all of it together costs epsilon {epsilon:.3g} at delta {budget.resolved_delta:g} (what "
        "an owner's own ledger would have to allow)"
    )
