"""One question and its replies, which come from anywhere in any order; added up in one order.

An answer that is next in the cohort is added at once, and let go of; others wait for those before
them. So a sum is the same to the last bit whoever was first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from fedsynth.errors import FederationError
from fedsynth.federation.client.grid import Adder, Grid
from fedsynth.federation.request import Answer, Incident, Request, Summed
from fedsynth.federation.secure.leader import Opened
from fedsynth.privacy.trail.job import Planned

Reply = Answer | Incident


class Gathering:
    """The replies to a request.

    Args:
        cohort: who is asked, in the order in which answers are added.
        single: whether answers are brought one by one, as those that are private on their own.
    """

    def __init__(self, request: Request, cohort: Sequence[str], *, single: bool) -> None:
        self.request, self._single = request, single
        self._left = list(cohort)
        self._early: dict[str, Reply] = {}
        self._added = Adder(request, len(cohort))
        self._answered = 0
        self.answers: list[Answer] = []
        self.incidents: list[Incident] = []

    @property
    def missing(self) -> tuple[str, ...]:
        """Of whom there is no reply."""
        return tuple(name for name in self._left if name not in self._early)

    def take(self, client: str, reply: Reply) -> None:
        """A reply of a client that is missing; of any other it changes nothing."""
        if client not in self.missing:
            return
        self._early[client] = _looked_at(reply, self.request)
        while self._left and self._left[0] in self._early:
            self._add(self._early.pop(self._left.pop(0)))

    def _add(self, reply: Reply) -> None:
        if isinstance(reply, Incident):
            self.incidents.append(reply)
            return
        self._answered += 1
        if self._single:
            self.answers.append(reply)
        else:
            self._added.add(reply.values)

    @property
    def summed(self) -> Summed:
        """The sum; of fewer answers than its noise needs, only how many there are.

        Raises:
            FederationError: as :meth:`demand_some`.
        """
        self.demand_some()
        incidents = tuple(self.incidents)
        if self._answered < self.request.terms.fewest:
            return Summed(np.zeros(self.request.dim), self._answered, incidents)
        return Summed(self._added.total, self._answered, incidents)

    def demand_some(self) -> None:
        """As the function of this name."""
        demand_some(self.request, self._answered, self.incidents)


def demand_some(request: Request, answered: int, incidents: Iterable[Incident]) -> None:
    """Raises FederationError where every client that was willing failed, and none was late: it is
    no client's fault then."""
    reasons = [one.reason for one in incidents]
    failed = [reason for reason in reasons if reason.startswith("failed: ")]
    late = any("no answer" in reason for reason in failed)
    silent = any(reason.startswith("did not") for reason in reasons)
    if failed and not (answered or late or silent):
        words = failed[0].removeprefix("failed: ")
        place = f"{request.task}, round {request.round}"
        raise FederationError(f"{place}: every client that was asked failed: {words}")


def open_sum(
    request: Request,
    grid: Grid,
    needed: int,
    opened: Opened | None,
    ready: Collection[str],
    heard: Collection[str],
    incidents: Sequence[Incident],
) -> Summed:
    """What a runtime brings of a round that was added up in secret.

    Args:
        needed: the threshold.
        opened: the sum; None where too few answered.
        ready: who had something to give.
        heard: who of these answered the last exchange.
        incidents: of those who had not.
    """
    silent = [name for name in ready if name not in (heard if opened is None else opened.owners)]
    lost = (Incident(name, request.round, "did not answer") for name in silent)
    incidents = (*incidents, *lost)
    if opened is None:
        few = min(len(ready) - len(silent), needed - 1)
        return Summed(np.zeros(request.dim), few, incidents, needed)
    return Summed(grid.decode(opened.total), len(opened.owners), incidents, needed)


def following(round: int, plan: Iterable[Planned]) -> int | None:
    """The round whose keys come with this one's; None for the last that is planned."""
    return round + 1 if round + 1 < sum(planned.count for planned in plan) else None


def _looked_at(reply: Reply, request: Request) -> Reply:
    """An answer that is one of finite numbers, or what is wrong with it."""
    if isinstance(reply, Incident):
        return reply
    reason = None
    if reply.values.shape != (request.dim,):
        reason = f"shape {reply.values.shape} instead of ({request.dim},)"
    elif not np.isfinite(reply.values).all():
        reason = "holds values that are not finite"
    return reply if reason is None else Incident(reply.client, request.round, reason)
