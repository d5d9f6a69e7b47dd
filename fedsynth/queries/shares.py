"""A budget shared out among Gaussian releases, with the noise of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate, optimal_gaussian_sigma
from fedsynth.privacy.mechanisms.gaussian import Gaussian
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Planned, count_terms

_MARGIN = 2e-4


@dataclass(frozen=True)
class Stage:
    """Releases of one kind.

    Attributes:
        label: of the task.
        share: of the budget that all of them together may use, as a share of the squared
            signal-to-noise ratio that a single Gaussian release could have: those of several
            releases add up.
        terms: for a noise multiplier.
        count: how many releases, alike.
    """

    label: str
    share: float
    terms: Callable[[float], Terms]
    count: int = 1

    def plan(self, alone: float) -> Planned:
        """With the noise, given that of a single release that had the whole budget."""
        multiplier = alone * (self.count / self.share) ** 0.5
        return Planned(self.label, self.terms(multiplier), self.count)


def share_out(stages: Sequence[Stage], budget: Budget) -> tuple[Planned, ...]:
    """The releases of a job with their noise: its whole cost is the budget, hardly less.

    Shares are taken in proportion, so they need not sum to 1.

    Raises:
        PrivacyError: no noise makes the plan affordable.
    """
    live = [stage for stage in stages if stage.count]
    whole = sum(stage.share for stage in live)
    scaled = [Stage(s.label, s.share / whole, s.terms, s.count) for s in live]

    def plan(alone: float) -> tuple[Planned, ...]:
        return tuple(stage.plan(alone) for stage in scaled)

    if not budget.private:
        return plan(0.0)
    epsilon, delta = budget.epsilon, budget.resolved_delta
    if all(isinstance(p.terms.kind, Gaussian) for p in plan(1.0)):
        # The closed form of all of them together, and what the accountant's mesh adds to it.
        alone = optimal_gaussian_sigma(epsilon, delta) * (1 + _MARGIN)
        if spent(_counts(plan(alone), budget), delta).epsilon <= epsilon:
            return plan(alone)
    return plan(calibrate(lambda alone: _counts(plan(alone), budget), epsilon, delta))


def _counts(plan: Sequence[Planned], budget: Budget) -> dict[Terms, int]:
    """How often each terms are to be charged."""
    return charged(count_terms(plan), unit=budget.unit)
