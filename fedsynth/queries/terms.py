"""Terms of a release that everybody is asked for, whose rows have a norm that is known."""

from __future__ import annotations

from typing import TypedDict

from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms

# A hair above the norm of honest rows, so that clipping leaves them as they are.
HAIR = 1 + 1e-5


class CountedOn(TypedDict):
    """Fields of :class:`Terms`."""

    survivors: int
    curious: int
    weigh: str | None


def count_on(budget: Budget, survivors: int) -> CountedOn:
    """Of so many sure answers, whose shares carry the whole noise where clients add them; and how
    the budget weighs rows."""
    curious = (budget.curious or 0) if budget.trusts.shares else 0
    return {
        "survivors": max(survivors, curious + 1),
        "curious": curious,
        "weigh": budget.weigh,
    }


def terms_for_everyone(
    budget: Budget,
    bound: float,
    noise_multiplier: float,
    survivors: int,
    mechanism: str = "gaussian",
    alpha: float | None = None,
    *,
    groups: bool = False,
) -> Terms:
    """As the budget says whom to protect and to trust.

    Args:
        bound: the largest norm of an honest row, in the norm that goes with the mechanism.
        survivors: answers that a round is sure to bring.
        alpha: index of stable noise; None for the others.
        groups: rows are of groups of records, and the bound is on how far a unit moves their sum.
    """
    norm = norm_of(mechanism)
    return Terms(
        unit=budget.unit,
        trust=budget.trust,
        clip=bound * HAIR * (1.0 if groups else budget.reach(norm)),
        noise_multiplier=noise_multiplier,
        norm=norm,
        mechanism=mechanism,
        sampling=Everyone(),
        **count_on(budget, survivors),
        alpha=alpha,
    )
