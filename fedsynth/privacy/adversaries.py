"""What a job costs against each adversary: who holds its release, the server, other owners."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.selecting import Selecting
from fedsynth.privacy.terms import Terms
from fedsynth.views import Grid

HOLDER = "whoever holds the release"
SERVER = "the server"
ALL = "all other owners together"


@dataclass(frozen=True)
class Adversary:
    """Somebody who wants to know whether a unit is in the data.

    Attributes:
        who: in words.
        knows: beside its own records, in words.
        epsilon: at the budget's delta; infinite where nothing is known to hold.
        promised: whether the budget covers it.
    """

    who: str
    knows: str
    epsilon: float
    promised: bool


def known_to(counts: Mapping[Terms, int], colluding: int) -> dict[Terms, int]:
    """The same releases for so many owners that put what they know of them together.

    Each takes the share that it added off the noise of a round of the fewest answers: what is left
    is that of the other answers. Where clients add no shares, they know nothing of it.
    """
    found: dict[Terms, int] = {}
    for terms, count in counts.items():
        if terms.trusts.shares:
            others = max(0, terms.survivors - colluding)
            left = terms.noise_multiplier * terms.noise.left(others, terms.shares)
            terms = replace(terms, noise_multiplier=left)
        found[terms] = found.get(terms, 0) + count
    return found


def adversaries(
    counts: Mapping[Terms, int], budget: Budget, clients: int, participations: int | None
) -> tuple[Adversary, ...]:
    """Epsilon of the releases made or planned, for each adversary.

    Where clients add shares of the noise, owners who put theirs together are left with the noise of
    the other answers (:func:`known_to`), and the server adds nothing to what they know: of an
    answer it sees no more than the sum holds.

    Args:
        counts: how often each terms are to be charged.
        budget: for so many clients (:meth:`Budget.for_clients`).
        clients: 0 where their number is not known.
        participations: rounds after which a client refuses, None for no limit.
    """

    def epsilon(colluding: int) -> float:
        known = charged(known_to(counts, colluding), participations, budget.unit)
        return spent(known, budget.resolved_delta).epsilon

    outside = epsilon(0)
    release = "the release"
    if any(isinstance(terms, Selecting) for terms in counts):
        sent = "what the server sends them in every trial"
        return (
            Adversary(HOLDER, "the best trial alone", outside, promised=True),
            # How many there are has no bound.
            Adversary(ALL, sent, math.inf, promised=False),
            Adversary(SERVER, "what clients send, before the noise", math.inf, promised=False),
        )
    if budget.trusts.server_adds:
        return (
            Adversary(HOLDER, release, outside, promised=True),
            Adversary(ALL, "the release, and what the server sends them", outside, promised=True),
            Adversary(SERVER, "what clients send, before the noise", math.inf, promised=False),
        )
    if budget.trusts.alone:
        return (
            Adversary(HOLDER, release, outside, promised=True),
            Adversary(SERVER, "every client's noisy message", outside, promised=True),
            Adversary(ALL, "the same, with the server", outside, promised=True),
        )
    found = [
        Adversary(HOLDER, release, outside, promised=True),
        Adversary(SERVER, "noisy sums over clients, and who answered", outside, promised=True),
    ]
    curious = budget.curious or 0
    for colluding in sorted({1, curious, curious + 1}):
        if 0 < colluding < (clients or colluding + 1):
            who = "one owner" if colluding == 1 else f"{colluding} owners together"
            what = "its share" if colluding == 1 else "their shares"
            knows = f"the same, with the server, and {what} of the noise"
            found.append(Adversary(who, knows, epsilon(colluding), colluding <= curious))
    return tuple(found)


def adversary_grid(found: Iterable[Mapping[str, Any]]) -> Grid:
    """A line an adversary, as certificates hold them: fields of :class:`Adversary`, where epsilon
    is a number or "inf"."""
    return Grid(
        ("for", "who knows", "epsilon", "promised"),
        [
            (
                one["who"],
                one["knows"],
                f"{one['epsilon']:.4g}" if math.isfinite(float(one["epsilon"])) else "no bound",
                "yes" if one["promised"] else "no",
            )
            for one in found
        ],
        figures=(2,),
    )


def name_promised(found: tuple[Adversary, ...]) -> str:
    """Those that the budget covers, for a sentence."""
    names = [one.who for one in found if one.promised]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
