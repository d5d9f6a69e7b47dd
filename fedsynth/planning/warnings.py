"""Where a guarantee is next to empty, and the nearest setting where it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fedsynth.privacy.adversaries import Adversary
from fedsynth.privacy.budget import LEAST_SIGNAL, Budget
from fedsynth.queries.plan import Plan

EMPTY = 20.0
"""An epsilon beyond which a bound on odds, e^epsilon, bounds nothing in practice."""
MOST = 10.0
"""What `Budget.cautions` takes for the most that promises something."""
_FEW = 100


def settle_two(budget: Budget, clients: int) -> Budget:
    """The budget, where a job of two owners would have somebody choose whether the other is held
    off, with the choice that holds it off."""
    undecided = budget.trusts.shares and budget.private and budget.curious is None
    return replace(budget, curious=1) if undecided and clients == 2 else budget


def warn_of_two(careless: Sequence[Adversary]) -> str:
    """That of two owners somebody has to choose, in a sentence.

    Args:
        careless: adversaries of the same job with ``curious: 0``.
    """
    other = max(one.epsilon for one in careless)
    return (
        "A federation of two: whether the other owner, who knows its share of the noise, is held "
        "off must be chosen before a job. Planned here with curious: 1, where each adds all of the "
        f"noise. With curious: 0 there would be half of its variance, and epsilon {other:.4g} "
        "against the other owner."
    )


def _known(budget: Budget, records: int | None) -> Budget:
    """The budget with the number of its units, which a job may not know of; its delta stays."""
    if records is None or budget.units is not None or not budget.protects.per_record:
        return budget
    if budget.protects.joined:
        return budget  # How many persons the records are of is not known.
    return replace(budget, units=records, delta=budget.resolved_delta)


def warnings_for(
    made: Plan, epsilon: float, adversaries: Sequence[Adversary], records: int | None
) -> tuple[str, ...]:
    """What to know before believing a plan, in sentences.

    Args:
        epsilon: what the plan costs.
    """
    budget = made.budget
    found = list(_known(budget, records).cautions())
    # What the plan's own say beside its budget's.
    found += [one for one in made.cautions() if one not in budget.cautions()]
    if EMPTY < epsilon < math.inf:
        factor = f"{math.exp(epsilon):.1e}" if epsilon < 700 else "more than 1e+300"
        found.append(
            f"epsilon {epsilon:.4g} is beyond {EMPTY:g}: odds may change by a factor of {factor}, "
            "which protects nobody."
        )
    for one in adversaries:
        if not (one.promised or budget.curious) and epsilon < one.epsilon < math.inf:
            found.append(f"{one.who}: epsilon {one.epsilon:.4g}, more than is promised.")
    return tuple(found)


def suggestions_for(
    budget: Budget, epsilon: float, adversaries: Sequence[Adversary], records: int | None
) -> tuple[str, ...]:
    """The nearest settings that promise something, in sentences."""
    return tuple(_suggest(_known(budget, records), epsilon, adversaries))


def _suggest(budget: Budget, epsilon: float, adversaries: Sequence[Adversary]) -> Iterator[str]:
    units = budget.units
    if units is not None and budget.resolved_delta >= 1 / units:
        yield f"delta: {float(f'{units**-1.1:.1e}'):g} lies below one in {units:,} {budget.unit}s"
    if units is not None and budget.private and budget.epsilon * units < LEAST_SIGNAL:
        enough = LEAST_SIGNAL / units
        more = f"epsilon: {enough:.2g}, or " if enough <= MOST else ""
        least = math.ceil(LEAST_SIGNAL / budget.epsilon)
        yield f"{more}{budget.unit}s: {least:,} and more leave a count more than noise"
    if not math.isfinite(epsilon):
        yield "epsilon: 1 is usual; `fedsynth plan` with it says what that asks of noise"
    elif epsilon > MOST:
        yield f"epsilon: {MOST:g} is the most that promises something; fewer rounds cost less too"
    if not budget.protects.per_record and units is not None and units < _FEW:
        yield "unit: record protects each row, which a few owners can afford"
    shared = budget.trusts.shares and not budget.curious
    if shared and any(one.epsilon > epsilon for one in adversaries):
        yield "curious: 1 holds the other owners off as well as anybody"
