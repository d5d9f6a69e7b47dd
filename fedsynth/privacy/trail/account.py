"""The account of a job: what its releases cost, charged before anybody is asked."""

from __future__ import annotations

from fedsynth.errors import BudgetExceeded, PrivacyError
from fedsynth.privacy.accounting import Spent, charged, renyi, spent
from fedsynth.privacy.filters import admits
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.chain import Chain
from fedsynth.privacy.trail.job import Closing, Event, Job, count_terms, unclipped
from fedsynth.privacy.trail.limits import Counts, Limits


class Account:
    """Releases and their cost, under one job's budget."""

    def __init__(self, job: Job, lines: Chain) -> None:
        self.job = job
        self._lines = lines
        self._events: list[Event] = []
        self._counts: Counts = {}
        self.closing: Closing | None = None
        self._limits = Limits(self._fits)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def counts(self) -> Counts:
        """How often each terms are to be charged."""
        return dict(self._counts)

    def charge(self, event: Event) -> None:
        """Write an event down, on disk when this returns: only then may anybody be asked.

        Raises:
            BudgetExceeded: it would cost more than the budget; nothing was written.
            PrivacyError: as :meth:`admit`, or the ledger cannot be written.
        """
        if self.closing is not None:
            raise PrivacyError("this job is closed: its release is written, nothing more is asked")
        self.admit(event.terms)
        if self.would_exceed(event.terms, event.steps):
            raise BudgetExceeded(
                f"{event.label}, round {event.round}: one more release would cost more than "
                f"epsilon {self.job.budget.epsilon:g} at delta {self.job.budget.resolved_delta:g} "
                f"({self.spent().epsilon:.4g} is spent); nothing was asked of anybody"
            )
        self._lines.append(event.to_dict())
        self.count(event)

    def admit(self, terms: Terms) -> None:
        """Raises PrivacyError for a release that protects another unit or trusts more people.

        Rows of another unit are admitted where the job's moves their sum by a bounded number of
        clips, and everybody is asked.
        """
        budget = self.job.budget
        foreign = terms.unit != budget.unit
        if foreign and not (terms.unit in budget.protects.moved and terms.sampling == Everyone()):
            raise PrivacyError(f"this ledger accounts for {budget.unit}s, not for {terms.unit}s")
        if terms.trusts.protection < budget.trusts.protection:
            raise PrivacyError(f"this ledger promises {budget.trust} trust, not {terms.trust}")
        if terms.trusts.shares and terms.curious < (budget.curious or 0):
            raise PrivacyError(
                f"this ledger holds off {budget.curious} owners, not {terms.curious}"
            )

    def count(self, event: Event) -> None:
        """Count a release that is written down."""
        self._events.append(event)
        self._counts[event.terms] = self._counts.get(event.terms, 0) + event.steps

    def spent(self) -> Spent:
        """Cost so far, against the server as well as against whoever holds the release: where
        clients add the noise, a sum's noise tells everybody how many were drawn."""
        return spent(self._charged(self._counts), self.job.budget.resolved_delta)

    def would_exceed(self, terms: Terms, steps: int = 1) -> bool:
        """Whether so many more releases under ``terms`` would cost more than the budget."""
        budget = self.job.budget
        if not budget.private:
            return False
        wanted = {**self._counts, terms: self._counts.get(terms, 0) + steps}
        if not self.job.plan:  # Then terms are chosen as one goes.
            return not admits(self._charged(wanted), budget.epsilon, budget.resolved_delta)
        # Quick ways to say no: the whole plan is within the budget, or the looser bound is.
        if self._planned(wanted):
            return False
        if renyi(self._charged(wanted), budget.resolved_delta) <= budget.epsilon:
            return False
        # The exact bound takes seconds, so how many more it allows is found once, and remembered.
        return wanted[terms] > self._limits.of(self._counts, terms, wanted[terms])

    def _planned(self, wanted: Counts) -> bool:
        """Whether ``wanted`` stays within the plan, and the plan within the budget."""
        plan, made = unclipped(count_terms(self.job.plan)), unclipped(wanted)
        return all(made[t] <= plan.get(t, 0) for t in made) and self._fits(plan)

    def _fits(self, counts: Counts) -> bool:
        budget = self.job.budget
        return spent(self._charged(counts), budget.resolved_delta).epsilon <= budget.epsilon

    def _charged(self, counts: Counts) -> Counts:
        return charged(counts, self.job.participations, self.job.budget.unit)
