"""Whose answers were missing, in how many rounds, and why: what a release has to tell of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedsynth.federation.client.faults import KINDS
from fedsynth.federation.request import Incident, Request
from fedsynth.privacy.budget import Budget

# Reasons by how they begin. They may be a client's words, so only these are handed on.
_KINDS = {
    "did not answer": "did not answer",
    "refuses: its own budget": "its own budget is spent",
    "refuses: its own ledger": "its own ledger does not admit the terms, or cannot be written",
    "refuses: has taken part": "has taken part as often as the job accounts for",
    "refuses: is still": "is still at work on an earlier round",
    "refuses": "refuses",
    **{f"failed: {kind}": kind for _, kind in KINDS},
    "failed: no answer within": "did not answer by the deadline",
    "answered more than once": "answered more than once",
    "answers round": "answered another round",
    "shape": "sent numbers of another shape",
    "holds values": "sent values that are not finite",
    "norm above": "sent more than its clip and its noise explain",
    "not an": "sent no answer",
    "was not asked": "answered without being asked",
}
OTHER, UNKNOWN = "another reason", "unknown"
_NAMED = 10


class Dropped:
    """In how many rounds each client's answer was missing so far, by stage and reason.

    Args:
        clients: their names; whoever else an incident names is told as "unknown".

    Attributes:
        latest: incidents of the last round.
    """

    def __init__(self, clients: Sequence[str]) -> None:
        self._clients = frozenset(clients)
        self._rounds: Counter[tuple[str, str, str]] = Counter()
        self.latest: tuple[Incident, ...] = ()

    def add(self, request: Request, incidents: Iterable[Incident]) -> None:
        """The incidents of one round; several alike of one client are one."""
        self.latest = tuple(incidents)
        self._rounds.update(
            {
                (
                    request.task,
                    incident.client if incident.client in self._clients else UNKNOWN,
                    kind_of(incident.reason),
                )
                for incident in self.latest
            }
        )

    def recall(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """What :meth:`entries` gave before the job was interrupted."""
        self._rounds.update(
            {(one["stage"], one["client"], one["reason"]): one["rounds"] for one in entries}
        )

    def entries(self) -> tuple[dict[str, Any], ...]:
        """Plain values, sorted: ``stage`` (the task asked), ``client``, ``reason`` (one of a fixed
        set) and ``rounds``."""
        return tuple(
            {"stage": stage, "client": client, "reason": reason, "rounds": rounds}
            for (stage, client, reason), rounds in sorted(self._rounds.items())
        )


def kind_of(reason: str) -> str:
    """A reason without what was particular to a round, or to whoever worded it."""
    return next((kind for start, kind in _KINDS.items() if reason.startswith(start)), OTHER)


def names_clients(budget: Budget) -> bool:
    """Whether what is published under a budget may name clients that were dropped, or count them.

    Not where a client's own presence is hidden: the server is trusted with it, and a client that
    is named, or adds to a count, was there, and drawn in that round.
    """
    return budget.protects.per_record or not budget.trusts.server_adds


def tell(entries: Iterable[Mapping[str, Any]], rounds: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence for each stage and reason.

    Args:
        entries: of :meth:`Dropped.entries`.
        rounds: of each stage in all.
    """
    missing: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for one in entries:
        missing[one["stage"], one["reason"]].append((-one["rounds"], one["client"]))
    sentences = []
    for (stage, reason), clients in missing.items():
        named = [f"{client} in {-count}" for count, client in sorted(clients)[:_NAMED]]
        if len(clients) > _NAMED:
            named.append(f"{len(clients) - _NAMED} others in fewer")
        whole = rounds.get(stage, 0)
        sentences.append(
            f"{stage} ({whole} round{'' if whole == 1 else 's'}) lacks {', '.join(named)}: {reason}"
        )
    return tuple(sentences)
