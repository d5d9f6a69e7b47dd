"""Secure sums in a job: who must answer, who may drop out, and how much more noise that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fedsynth.errors import ConfigError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.trail.job import Job, Planned

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules


def rules_for(budget: Budget, clients: int, threshold: int) -> Rules:
    """What owners insist on.

    Args:
        threshold: how many are sure to answer a round.

    Raises:
        ConfigError: the budget's trust adds up no shares, or the numbers would let a server open
            two sums of a round.
    """
    from fedsynth.federation.secure.rules import Rules, least_threshold

    if not budget.trusts.shares:
        raise ConfigError(
            f"secure: under {budget.trust} trust no shares of noise are added up, so there is "
            "nothing to add up in secret: say secure: false, or trust: distributed"
        )
    curious = budget.for_clients(clients).curious or 0
    least = least_threshold(clients, curious)
    if threshold < least <= clients:
        raise ConfigError(
            f"survivors: of {clients} owners {threshold} would be sure to answer, and secure sums "
            f"with {curious} curious take {least} at least: below, a server could open two sums "
            f"that differ by one owner. Say survivors {_share(least, clients)} or more"
        )
    return Rules(clients, threshold, curious)


def rules_of(job: Job) -> Rules | None:
    """Those of a job that has begun, from its ledger's first line."""
    if job.sums is None:
        return None
    clients, threshold, _ = job.sums
    return rules_for(job.budget, clients, threshold)


def demand_everybody(releases: Iterable[Planned]) -> None:
    """Raises ConfigError for a plan that draws clients: then another cohort answers each round, and
    owners of secure sums know each other by name beforehand."""
    for one in releases:
        if not one.terms.protects.per_record and one.terms.sampling != Everyone():
            raise ConfigError(
                f"secure: {one.label} draws clients each round, and secure sums are over all who "
                "answer: ask everybody (rate 1), or leave secure out"
            )


def tell_rules(rules: Rules) -> str:
    """Who may drop out and what it costs, beside the other ends of what may be chosen."""
    from fedsynth.federation.secure.rules import list_rules

    said = (
        f"secure sums: {rules.threshold} of {rules.cohort} owners must answer every round, and "
        f"{_drops(rules)}. Together they add {rules.noise:.2f} times the noise of a trusted server"
    )
    every = list_rules(rules.cohort, rules.curious)
    others = [one for one in (every[0], every[-1]) if one != rules]
    choices = [
        f"survivors {_share(one.threshold, one.cohort)}: {_drops(one)}, {one.noise:.2f} times"
        for one in dict.fromkeys(others)
    ]
    return f"{said}. Or {'; or '.join(choices)}." if choices else f"{said}."


def _drops(rules: Rules) -> str:
    return f"{rules.may_drop or 'nobody'} may drop out"


def _share(count: int, owners: int) -> str:
    """A share of at most 100 owners that is the count once it is rounded up."""
    return f"{math.floor(1000 * count / owners + 1e-9) / 1000:g}"
