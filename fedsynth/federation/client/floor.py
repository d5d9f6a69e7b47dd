"""A client's floor: the least protection under which it answers, whatever a server asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedsynth.errors import ConfigError, FederationError, FedsynthError, PrivacyError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.filters import admits
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.account import Account
from fedsynth.privacy.trail.chain import Chain
from fedsynth.privacy.trail.job import Event, Job, Planned


class Tally(Account):
    """What one job has cost a client so far. No single release is remembered, only how many."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, Chain(None, None))

    def count(self, event: Event) -> None:
        self._counts[event.terms] = self._counts.get(event.terms, 0) + event.steps

    def would_exceed(self, terms: Terms, steps: int = 1) -> bool:
        """Whether so many more would be beyond the plan, and more than a privacy filter admits."""
        budget = self.job.budget
        if not budget.private:
            return False
        wanted = {**self._counts, terms: self._counts.get(terms, 0) + steps}
        return not self._planned(wanted) and not admits(
            self._charged(wanted), budget.epsilon, budget.resolved_delta
        )


@dataclass(frozen=True, kw_only=True)
class Floor:
    """What a client insists on, job by job.

    Attributes:
        budget: unit, trust, and the epsilon and delta that any one job may cost at the most. A job
            that announces its plan may use all of it. Whatever else is asked is held to what a
            privacy filter admits, which is a fifth less or so: an honest server asks for more than
            its plan where it lost answers and asks again. Of a server that is not, which chooses
            between the two, the whole is epsilon at twice delta. An infinite epsilon admits
            rounds without noise.
        cohort: the fewest clients that answer a round, as the owner knows, at least 1: shares of
            noise that are whole only if more of them answer are refused.
        secure: under distributed trust nothing is answered but to secure sums
            (:mod:`fedsynth.federation.secure`).
    """

    budget: Budget
    cohort: int = 1
    secure: bool = False

    def __post_init__(self) -> None:
        if self.cohort < 1:
            raise ConfigError(f"a floor's cohort must be at least 1, not {self.cohort}")

    def demand(self, event: Event, tally: Tally) -> None:
        """Raises PrivacyError for a release that the floor does not admit, saying why.

        Args:
            tally: of the releases of the job so far.
        """
        terms = event.terms
        tally.admit(terms)
        if terms.fewest > self.cohort:
            raise PrivacyError(
                f"a share of the noise for {terms.fewest} answers, where {self.cohort} are sure"
            )
        if self.budget.private and terms.noise_multiplier == 0:
            raise PrivacyError("no noise")
        if tally.would_exceed(terms, event.steps):
            raise PrivacyError(
                "with it the job would cost more than epsilon "
                f"{self.budget.epsilon:g} at delta {self.budget.resolved_delta:g}"
            )


def read_plan(plan: Mapping[str, Any]) -> tuple[tuple[Planned, ...], int | None]:
    """What a job plans, and the most rounds in which it draws a client.

    Args:
        plan: :attr:`fedsynth.privacy.trail.job.Job.announced`, as it came.

    Raises:
        FederationError: it is not.
    """
    try:
        releases = tuple(Planned.from_dict(planned) for planned in plan["releases"])
        limit = plan["participations"]
        if any(p.count < 0 for p in releases) or not (limit is None or type(limit) is int):
            raise ValueError("no numbers of rounds")
    except (KeyError, TypeError, ValueError, FedsynthError):
        raise FederationError("the plan that the server announced cannot be read") from None
    return releases, limit
