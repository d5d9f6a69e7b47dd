"""A client: whose data they are, and what it has agreed to, whatever the jobs that it serves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedsynth.errors import BudgetExceeded, FederationError, PrivacyError
from fedsynth.federation.client.floor import Floor, Tally, read_plan
from fedsynth.federation.client.memory import Memory
from fedsynth.federation.client.persons import Persons
from fedsynth.federation.request import PLAN, Request
from fedsynth.privacy.accounting import unsampled
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules


@dataclass
class Client:
    """One owner of data.

    Attributes:
        name: names are public.
        data: its records, as the tasks in use understand them.
        records: how many; private at the record level.
        ledger: its own account across jobs; a round that would exceed it is refused.
        coins: its own randomness, which nobody else may predict: of secret samples and of noise.
        floor: what it insists on in every job. With neither floor nor ledger it leaves that to the
            server, so it answers nothing under local trust, where no server is trusted, and
            nothing without noise.
        memories: what it keeps of each job, by the job's name.
    """

    name: str
    data: Any
    records: int
    ledger: Ledger | None = None
    coins: NoiseSource = field(default_factory=NoiseSource)
    floor: Floor | None = None
    memories: dict[str, Memory] = field(default_factory=dict)

    @cached_property
    def persons(self) -> Persons | None:
        """Whose its records are, as its data know; None where they do not."""
        return Persons.of(self.data)

    def memory(self, job: str) -> Memory:
        """What it keeps of a job; of one that is new to it, what its ledger remembers."""
        if job not in self.memories:
            rounds = (event.round for event in self._written(job))
            self.memories[job] = Memory(latest=max(rounds, default=-1))
        return self.memories[job]

    def forget(self, job: str) -> None:
        """Let go of all that it kept of a job."""
        self.memories.pop(job, None)

    def consent(self, request: Request) -> str | None:
        """Count and charge a round, or say why the client refuses.

        A round has one life: of a job that was copied and resumed twice, only one copy is answered.
        One whose answer never left, since the client was stopped or failed, is answered under the
        charge that it has.
        A drawn client knows that it was drawn and charges its ledger only then, so without
        amplification. Rounds that draw clients are limited to those that the job accounts for.
        """
        event, memory = request.event, self.memory(request.job)
        charge = replace(event, terms=_known(event.terms))
        if memory.busy is not None and memory.busy.is_alive():
            return "is still at work on an earlier round"
        if self._owes(request, charge):
            return None
        if request.round <= memory.latest:
            return (
                f"has answered round {memory.latest} of this job, and none is answered twice or "
                "out of order: the job was resumed from a copy, or from an older state"
            )
        if self.floor is None and self.ledger is None:
            if event.terms.trusts.alone:
                return "has no floor and no ledger, and under local trust nobody decides for it"
            if event.terms.noise_multiplier == 0:
                return "has no floor that admits rounds without noise"
        if event.terms.protects.joined and self.persons is None:
            return "its rows do not say whose they are (the schema's person), so none can be hidden"
        reason = self._insist(event.terms, memory.rules)
        if reason is not None:
            return f"below its floor: {reason}"
        try:
            tally = self._tally(request.job)
            if self.floor is not None and tally is not None:
                self.floor.demand(event, tally)
        except (PrivacyError, FederationError) as error:
            return f"below its floor: {error}"
        limit = _limit(request, tally)
        if limit is not None and max(memory.participations, self._count_rounds(charge)) >= limit:
            return f"has taken part in {limit} rounds, the most that this job accounts for"
        if self.ledger is not None:
            try:
                self.ledger.charge(charge)
            except BudgetExceeded:
                return "its own budget is spent"
            except PrivacyError:
                return "its own ledger does not admit these terms, or cannot be written"
        memory.latest = request.round
        if limit is not None:
            memory.participations += 1
        if tally is not None:
            tally.count(event)
        return None

    def _insist(self, terms: Terms, rules: Rules | None) -> str | None:
        """What is wrong with how shares of noise would be added up, or None."""
        if not terms.trusts.shares:
            return None
        if rules is None:
            insists = self.floor is not None and self.floor.secure
            return "nobody adds up in secret what it would send (secure sums)" if insists else None
        if terms.scale > 0 and terms.shares > rules.shares:
            return (
                f"a share of the noise for {terms.shares} honest answers, where a sum is opened of "
                f"{rules.shares}"
            )
        return None

    def _owes(self, request: Request, charge: Event) -> bool:
        """Whether a round is paid for and nothing of it was ever given.

        An answer is kept, on disk, before it is given (:mod:`fedsynth.federation.kept`), so one
        that is not kept is known to nobody: neither the server nor, of what stays at the client,
        any later answer, for there is none. Where nothing was to be kept, nobody can tell.
        """
        memory = self.memory(request.job)
        return (
            memory.answers is not None
            and request.round == memory.latest
            and not request.kept
            and memory.answers.unsent(request.round)
            and self._written(request.job)[-1:] == [charge]
        )

    def _tally(self, job: str) -> Tally | None:
        """What a job has cost the client so far, for its floor; of a plan that is announced anew
        it takes no notice.

        Raises:
            FederationError: the job announced a plan that cannot be read.
        """
        memory = self.memory(job)
        if memory.tally is None and self.floor is not None:
            known = memory.board.version(PLAN)
            plan, limit = memory.board.read(PLAN, read_plan) if known else ((), None)
            tally = Tally(Job(budget=self.floor.budget, plan=plan, participations=limit, job=job))
            # Plans name sampled terms; a client's own ledger holds what they are to the client.
            planned = {_known(one.terms): one.terms for one in tally.job.plan}
            for event in self._written(job):
                tally.count(replace(event, terms=planned.get(event.terms, event.terms)))
            memory.tally = tally
        return memory.tally

    def _written(self, job: str) -> list[Event]:
        """A job's rounds in the client's ledger, which remembers those before a restart."""
        written = self.ledger.events if self.ledger is not None else ()
        return [event for event in written if event.job == job]

    def _count_rounds(self, event: Event) -> int:
        """Rounds like this one in the client's ledger.

        Rounds that ask everybody are charged in full beside the limit, so they do not count.
        """
        return sum(e.terms == event.terms for e in self._written(event.job))


def _known(terms: Terms) -> Terms:
    """Terms as they are to a client that knows that it was drawn; records are drawn in secret."""
    return terms if terms.protects.per_record else unsampled(terms)


def _limit(request: Request, tally: Tally | None) -> int | None:
    """The most rounds that draw this client, by what the request and the plan say; None where
    everybody is asked, or drawing is secret."""
    terms, limits = request.terms, [request.participations]
    if tally is not None and not terms.protects.per_record and terms.sampling != Everyone():
        limits.append(tally.job.participations)
    return min((limit for limit in limits if limit is not None), default=None)
