"""The account of a job: what its releases cost, charged before anybody is asked."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedsynth.errors import BudgetExceeded, PrivacyError
from fedsynth.privacy.accounting import Spent, charged, renyi, spent
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Budget, Terms

Counts = dict[Terms, int]


@dataclass(frozen=True)
class Planned:
    """Releases that a job means to make: ``count`` under ``terms``, for the task ``label``."""

    label: str
    terms: Terms
    count: int


@dataclass(frozen=True)
class Event:
    """One release: the task that answers, the round, and the terms that it is protected by.

    Attributes:
        steps: how often the terms are to be charged: more than once for a message that a client
            made of so many noisy sums of its own.
    """

    label: str
    round: int
    terms: Terms
    job: str = ""
    steps: int = 1

    def __post_init__(self) -> None:
        if type(self.steps) is not int or self.steps < 1:
            raise PrivacyError("a release takes at least one step, a whole number")

    def to_dict(self) -> dict[str, Any]:
        plain = {"label": self.label, "round": self.round, "job": self.job}
        steps = {"steps": self.steps} if self.steps > 1 else {}
        return {"kind": "event", **plain, "terms": self.terms.to_dict(), **steps}


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a ledger is about: its first line.

    Attributes:
        budget: what everything in this ledger together may cost.
        plan: the releases that the noise was calibrated for; they fit the budget together.
        participations: rounds after which each client refuses, where clients are sampled.
        schema_digest: hash of the schema in force.
        schema_provenance: "declared", or "private-data" where it was drafted from private rows.
        settings_digest: hash of the method and its settings; empty where they are not known.
        insecure: noise came from a known seed, so nothing is guaranteed.
        job: random name.
    """

    budget: Budget
    plan: tuple[Planned, ...] = ()
    participations: int | None = None
    schema_digest: str = ""
    schema_provenance: str = "declared"
    settings_digest: str = ""
    insecure: bool = False
    job: str = field(default_factory=lambda: uuid.uuid4().hex)


class Lines(Protocol):
    """Where the account is written."""

    def append(self, line: dict[str, Any]) -> None:
        """Write a line down; on disk when this returns. Raises PrivacyError where it is not."""
        ...


class Account:
    """Releases and their cost, under one job's budget."""

    def __init__(self, job: Job, lines: Lines) -> None:
        self.job = job
        self._lines = lines
        self._events: list[Event] = []
        self._counts: Counts = {}
        self._limits: dict[tuple[frozenset[tuple[Terms, int]], Terms], int] = {}

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
            PrivacyError: its unit is not the budget's, or it trusts somebody whom the budget does
                not; or the ledger cannot be written.
        """
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

        Rows of another unit are admitted where the job's moves them by a bounded number of clips,
        and everybody is asked.
        """
        budget = self.job.budget
        foreign = terms.unit != budget.unit
        if foreign and not (terms.unit in budget.protects.moved and terms.sampling == Everyone()):
            raise PrivacyError(f"this ledger accounts for {budget.unit}s, not for {terms.unit}s")
        if terms.trusts.protection < budget.trusts.protection:
            raise PrivacyError(
                f"this ledger promises {budget.trust} trust: a release under {terms.trust} trust "
                "would rely on somebody who is not to be relied on"
            )

    def count(self, event: Event) -> None:
        """Count a release that is written down."""
        self._events.append(event)
        self._counts[event.terms] = self._counts.get(event.terms, 0) + event.steps

    def spent(self) -> Spent:
        """Cost so far, against the server as well as against whoever holds the release.

        Where the server adds the noise, neither is told who was drawn. Where clients do, the server
        knows whom it drew, and to the others the noise in a sum tells how many there were, so that
        drawing clients hides nothing that could be counted on from anybody.
        """
        return spent(self._charged(self._counts), self.job.budget.resolved_delta)

    def would_exceed(self, terms: Terms, steps: int = 1) -> bool:
        """Whether so many more releases under ``terms`` would cost more than the budget."""
        budget = self.job.budget
        if not budget.private:
            return False
        wanted = {**self._counts, terms: self._counts.get(terms, 0) + steps}
        # Quick ways to say no: the whole plan is within the budget, or the looser bound is.
        if self._planned(wanted):
            return False
        if renyi(self._charged(wanted), budget.resolved_delta) <= budget.epsilon:
            return False
        return wanted[terms] > self._limit(wanted, terms)

    def _planned(self, wanted: Counts) -> bool:
        """Whether ``wanted`` stays within the plan, and the plan within the budget."""
        plan: Counts = {}
        for planned in self.job.plan:
            plan[planned.terms] = plan.get(planned.terms, 0) + planned.count
        return all(wanted[t] <= plan.get(t, 0) for t in wanted) and self._fits(plan)

    def _fits(self, counts: Counts) -> bool:
        budget = self.job.budget
        return spent(self._charged(counts), budget.resolved_delta).epsilon <= budget.epsilon

    def _charged(self, counts: Counts) -> Counts:
        return charged(counts, self.job.participations, self.job.budget.unit)

    def _limit(self, wanted: Counts, terms: Terms) -> int:
        """The most releases under ``terms`` that fit beside all the others, made ones included.

        The exact bound takes seconds, so it is not left for every release anew. Whatever is asked
        for first: a refusal must not stand for what was never weighed.
        """
        others = {t: n for t, n in wanted.items() if t != terms}
        key = (frozenset(others.items()), terms)
        if key not in self._limits:
            made = self._counts.get(terms, 0)
            low, high = made, wanted[terms]
            # A cap on participations can make more rounds free: then the search ends here.
            while high < 2**30 and self._fits({**others, terms: high}):
                low, high = high, 2 * high - made
            while high - low > 1:
                middle = (low + high) // 2
                fits = self._fits({**others, terms: middle})
                low, high = (middle, high) if fits else (low, middle)
            self._limits[key] = low
        return self._limits[key]
