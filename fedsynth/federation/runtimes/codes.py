"""Why a site takes no part: a word of a fixed list, which is all that leaves it; and what it means.

What went wrong in detail, which may speak of rows, is told at the site alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from fedsynth.federation.client.faults import KINDS

_CONSENT: Mapping[str, tuple[str, str]] = {
    # By how a client's own words begin (:meth:`Client.consent`).
    "answered": ("has answered round", "refuses: has answered another request, or a later one"),
    "busy": ("is still at work", "refuses: is still at work on an earlier round"),
    "floor": ("below its floor", "refuses: below its floor"),
    "floorless": ("has no floor", "refuses: has no floor, and under these terms nobody decides"),
    "part": ("has taken part", "refuses: has taken part in {limit} rounds, the most of this job"),
    "budget": ("its own budget", "refuses: its own budget is spent"),
    "ledger": ("its own ledger", "refuses: its own ledger does not admit these terms, or is full"),
}
_FAULTS: Mapping[str, str] = dict(
    zip(("memory", "file", "fault"), (w for _, w in KINDS), strict=True)
)

ROUND: Mapping[str, str] = {
    **{code: words for code, (_, words) in _CONSENT.items()},
    "refused": "refuses",
    "joined": "refuses: is not in this job",
    "limits": "refuses: more numbers or rounds than it gives",
    "sums": "refuses: distributed trust needs secure sums, and this job has none",
    "step": "refuses: a step of a secure sum that does not fit what went before, or its own file",
    "known": "failed: its fedsynth does not know the task",
    "asked": "failed: its task needs what was not announced, or set",
    "promise": "failed: its task breaks its promise",
    **{code: f"failed: {words}" for code, words in _FAULTS.items()},
}
"""Of a round, as the server words it."""

OFFER: Mapping[str, str] = {
    "version": "runs another version of fedsynth",
    "unit": "protects another unit",
    "trust": "asks for more protection than the job's trust gives",
    "sums": "refuses distributed trust: it needs secure sums (federation: secure), and this job "
    "has none",
    "identity": "has no identity key, or no peers, in its site file: secure sums need both",
    "peers": "has other owners among its peers than the job",
    "threshold": "insists on a higher threshold, or on more curious owners",
    "epsilon": "allows a job less epsilon or delta",
    "plan": "finds no plan that is within the job's budget",
    "method": "does not allow the method",
    "schema": "has another schema",
    "roster": "is not on the roster, or misses owners there",
    "limits": "allows fewer rounds, or smaller messages",
    "account": "has too little left in its account for the whole plan",
    "insecure": "refuses a job whose noise somebody knows, or which is not encrypted",
    "another": "was in a job of this name that said something else",
    "declined": "takes no part",
    "file": "could not read or write a file",
    "damaged": "could not read the offer",
}
"""Of a job that is offered."""


def code_of(reason: str) -> str:
    """Of a client's own words for not consenting."""
    bare = reason.removeprefix("refuses: ")
    return next((c for c, (start, _) in _CONSENT.items() if bare.startswith(start)), "refused")


def fault_of(error: Exception) -> str:
    """Of a fault at a site, by its class alone."""
    place = next(i for i, (kinds, _) in enumerate(KINDS) if isinstance(error, kinds))
    return list(_FAULTS)[place]


def word_round(code: str, limit: int | None) -> str:
    """What a code of a round means.

    Args:
        limit: the most rounds of the job in which a client takes part.
    """
    words = ROUND.get(code, "refuses: for a reason that this fedsynth does not know")
    return words.format(limit=limit)


def word_offer(code: str) -> str:
    """What a code of an offer means."""
    return OFFER.get(code, "refuses, for a reason that this fedsynth does not know")
