"""A client: whose data they are, and what it has agreed to, whatever the jobs that it serves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fedsynth.errors import BudgetExceeded, PrivacyError
from fedsynth.federation.client.memory import Memory
from fedsynth.federation.request import Request
from fedsynth.privacy.accounting import unsampled
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger


@dataclass
class Client:
    """One owner of data.

    Attributes:
        name: names are public.
        data: its records, as the tasks in use understand them.
        records: how many; private at the record level.
        ledger: its own account across jobs; a round that would exceed it is refused.
        coins: its own randomness, which nobody else may predict: of secret samples and of noise.
        memories: what it keeps of each job, by the job's name.
    """

    name: str
    data: Any
    records: int
    ledger: Ledger | None = None
    coins: NoiseSource = field(default_factory=NoiseSource)
    memories: dict[str, Memory] = field(default_factory=dict)

    def memory(self, job: str) -> Memory:
        """What it keeps of a job; nothing yet of one that is new to it."""
        return self.memories.setdefault(job, Memory())

    def forget(self, job: str) -> None:
        """Let go of all that it kept of a job."""
        self.memories.pop(job, None)

    def consent(self, request: Request) -> str | None:
        """Charge the client's own ledger for a round, or say why it refuses.

        A drawn client knows that it was drawn and charges only then, so without amplification.
        Rounds that draw clients are limited to those that the job accounts for.
        """
        event, limit = request.event, request.participations
        if not event.terms.protects.per_record:
            event = replace(event, terms=unsampled(event.terms))
        memory = self.memory(request.job)
        if limit is not None and max(memory.participations, self._count_rounds(event)) >= limit:
            return f"has taken part in {limit} rounds, the most that this job accounts for"
        if self.ledger is not None:
            try:
                self.ledger.charge(event)
            except BudgetExceeded:
                return "its own budget is spent"
            except PrivacyError:
                return "its own ledger does not admit these terms, or cannot be written"
        if limit is not None:
            memory.participations += 1
        return None

    def _count_rounds(self, event: Event) -> int:
        """Rounds like this one in the client's ledger, which remembers those before a restart.

        Rounds that ask everybody are charged in full beside the limit, so they do not count.
        """
        written = self.ledger.events if self.ledger is not None else ()
        return sum((e.job, e.terms) == (event.job, event.terms) for e in written)
