"""The rounds of a job, in order: each is paid for once, and its value had once, over crashes too.

A value is kept before a method gets it. A job that is resumed goes on at its last checkpoint and
asks what it asked then, so it gets the values that were kept since, at no cost. Where the last
round that is charged has none, it is asked again, under its charge; clients give again what they
gave then, or make what they never gave. Its value, if it had one, was of no use to anybody: no
checkpoint or release has it, and what is asked in view of it has a later line in the ledger. Only
what is announced has not; so where the server draws the noise, which it would draw anew, values are
on disk before a method gets them. Elsewhere a power cut may take them, and brings back the same.

Not so where that would be a second release: of a round for which the server draws clients it would
draw others; of what is kept at a client the next answer was made already. They stay lost, as does a
round whose sum was opened and refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fedsynth.codec import pack, unpack
from fedsynth.errors import BudgetExceeded, FederationError
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import Collected, Incident, Released, Request
from fedsynth.federation.server.checks import Unopened, draws_clients, paid
from fedsynth.federation.server.incidents import Dropped, names_clients
from fedsynth.federation.server.rest import demand_rest
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.ledger import Ledger


@dataclass(frozen=True)
class Chosen:
    """Which block a round chose."""

    index: int


V = TypeVar("V", Released, Collected, Chosen)


class Rounds:
    """Numbers a job's rounds, and keeps their values until a checkpoint holds them.

    Args:
        ledger: of the job.
        dropped: whose answers were missing; what rounds that are had again went without is added.
        settle: tells the runtime below which number no round is asked again.
        path: of the file of values; None keeps none. One that is not there has none: then all
            rounds that are charged are lost.
        done: of a resumed job, how many rounds the last checkpoint holds; None for all.
    """

    def __init__(
        self,
        ledger: Ledger,
        dropped: Dropped,
        settle: Callable[[int], None],
        path: Path | None = None,
        done: int | None = None,
    ) -> None:
        charged = len(ledger.events)
        self._ledger, self._dropped, self._settle = ledger, dropped, settle
        self._kept: Kept | None = None
        self._next = charged
        # Then clients must not give again what it noised, and it must have that for good.
        self._noises = ledger.job.budget.trusts.server_adds
        if path is None:
            return
        if not path.exists():
            self._kept = Kept.create(path, charged, durable=self._noises)
            return
        self._kept = Kept(path, durable=self._noises)
        if done is not None:
            self._next = min(max(done, self._kept.settled), charged)

    @property
    def next(self) -> int:
        """Number of the round that is asked next."""
        return len(self._ledger.events) if self._kept is None else self._next

    def once(self, request: Request, kind: type[V], ask: Callable[[Request], V]) -> V:
        """What a round gives: as it was kept, or asked now and kept.

        Args:
            request: its number is that of :attr:`next`.
            kind: of what is given.
            ask: has the request answered; charges it, unless it is paid for.

        Raises:
            BudgetExceeded: a lost round cannot be paid for again, or not with what comes after it.
            MachineError: the value cannot be kept; it is had again when the job is resumed.
            FederationError: too few usable answers.
        """
        asked = "" if self._kept is None else request.digest
        if self.next < len(self._ledger.events):
            known = self._kept.find(self.next) if self._kept is not None else None
            if known is not None and known[0] == asked:
                self._next += 1
                value, told = known[2]
                self._dropped.add(request, (Incident(**incident) for incident in told))
                return unpack(kind, known[1], value, {})
            if known is not None or not paid(request, self._ledger.events):
                # The method asks something else than it did, or the round is lost.
                self.give_up()
                request = replace(request, round=self.next)
                asked = request.digest
                if self._ledger.would_exceed(request.terms, request.steps or 1):
                    raise BudgetExceeded(
                        f"{request.task}: the answer that was paid for was lost, or this run asks "
                        "something else than the one that was interrupted did, on another machine "
                        "or by another version; asking anew would cost more than the budget. "
                        "Resume once more: the job then ends with the answers that it has, if "
                        "these are enough"
                    )
        if not paid(request, self._ledger.events):
            demand_rest(request.event, self._ledger)
        try:
            value = ask(request)
        except Unopened:
            raise
        except FederationError:
            self.give_up()
            raise
        if self._kept is not None:
            arrays, plain = pack(value)
            told = [vars(incident) for incident in self._dropped.latest]
            if not names_clients(self._ledger.job.budget):
                # Who was asked is secret: it is told in this process, and written nowhere.
                told, plain = [], {**plain, "incidents": []}
            self._kept.keep(request.round, asked, arrays, [plain, told])
        self._next = request.round + 1
        if self._noises or self._kept is None:
            self._settle(self._next)
        return value

    def affords(self, terms: Terms, kept: bool = False) -> bool:
        """Whether one more round is within the budget, or was paid for; see the channel's."""
        number, events = self.next, self._ledger.events
        if self._kept is not None and number < len(events) and events[number].terms == terms:
            again = number == len(events) - 1 and not (kept or draws_clients(terms))
            if not self._kept.unsent(number) or again:
                return True
        return not self._ledger.would_exceed(terms)

    def give_up(self) -> None:
        """Count all rounds so far as lost; they stay charged."""
        self._next = len(self._ledger.events)
        self.settle()

    def settle(self) -> None:
        """Let go of the values of all rounds so far: a checkpoint holds them, or they are lost."""
        self._settle(self.next)
        if self._kept is not None:
            self._kept.settle(self.next)

    def close(self, *, finished: bool) -> None:
        """Let go of the file, and of what is in it where the job is finished."""
        if self._kept is not None:
            self._kept.close(delete=finished)
