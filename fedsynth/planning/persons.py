"""What it costs that persons are protected, told before it is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from fedsynth.agreed import shown
from fedsynth.errors import ConfigError
from fedsynth.queries.persons import LABEL, PRICE, RowsAPerson
from fedsynth.queries.plan import Plan
from fedsynth.queries.tasks.persons import BINS, ENDS, bins_of


def expect_persons(
    plan: Plan, records: int | None, rows_a_person: Sequence[float] | None
) -> RowsAPerson | None:
    """How many rows a person is taken to have, by public figures; None where they do not tell.

    Args:
        records: of all clients together.
        rows_a_person: persons, or their shares, of 1, 2, 3, 4, 5 to 8, .. rows. By default, of
            known numbers of persons and records, each row more is as likely as the one before.

    Raises:
        ConfigError: numbers of persons that are none.
    """
    if rows_a_person is not None:
        return _read(plan, rows_a_person)
    persons = plan.budget.units
    if not plan.budget.protects.joined or persons is None or records is None or records < persons:
        return None
    going_on = 1 - persons / records
    # All but a millionth of them, and one more.
    most = 1 + math.ceil(math.log(1e-6) / math.log(going_on)) if going_on > 0 else 1
    rows = np.arange(1, min(most, int(ENDS[-1])) + 1)
    counts = np.bincount(bins_of(rows), going_on ** (rows - 1), BINS)
    return RowsAPerson(tuple((counts * persons / counts.sum()).tolist()), 0.0)


def _read(plan: Plan, rows_a_person: Sequence[float]) -> RowsAPerson:
    if not plan.budget.protects.joined:
        raise ConfigError(f"rows_a_person is for unit: person, not {plan.budget.unit}")
    try:
        counts = [float(one) for one in rows_a_person]
    except (TypeError, ValueError):
        counts = []
    fits = all(math.isfinite(one) and one >= 0 for one in counts) and sum(counts) > 0
    if not fits or len(counts) > BINS:
        raise ConfigError(
            f"rows_a_person must be at most {BINS} numbers of persons, of 1, 2, 3, 4, 5 to 8, .. "
            f"rows, not {shown(rows_a_person)}"
        )
    return RowsAPerson((*counts, *[0.0] * (BINS - len(counts))), 0.0)


def say_price(plan: Plan, known: RowsAPerson | None) -> Iterator[str]:
    """What protecting persons costs, in sentences.

    Args:
        plan: as it will be asked.
        known: how many rows a person is taken to have.
    """
    budget = plan.budget
    if not budget.protects.joined:
        return
    if budget.weigh == "person":
        clip = budget.person_clip
        yield (
            f"Of persons, each of k rows that weigh 1/k (weigh: person): noise is {clip:g} times "
            "what it is of one row a person, where a record is protected. Persons whose rows all "
            f"agree count {clip:g}."
        )
    else:
        yield " ".join(_say_rows(plan, known))
    if LABEL in plan.labels:
        noise = plan.terms(LABEL).noise.deviation(plan.terms(LABEL).summed_scale(plan.clients))
        share = budget.sizes_share
        yield (
            f"How many persons have 1, 2, 3, 4, 5 to 8, .. rows is asked first, at {share:g} of "
            f"the budget: all other noise is {1 / math.sqrt(1 - share):.4g} times what it were "
            f"without. Each count is off by {noise:,.3g} (its noise's deviation)."
        )


def _say_rows(plan: Plan, known: RowsAPerson | None) -> Iterator[str]:
    """Of rows that weigh alike."""
    clip = plan.budget.person_clip
    named = "C" if clip is None else f"{clip:g}"
    rule = f"{named} x persons / sum of min(k, {named}) times that of one row a person, of k rows"
    yield (
        f"Of persons, whose rows weigh 1 and together {named} at the most (weigh: row): noise in a "
        f"count of rows is {named} times what it is of records. Beside how many rows count it is "
        f"at most {rule}."
    )
    if clip is None:
        yield (
            "C is chosen once the histogram of rows a person is released: as large as keeps that "
            f"at {PRICE:g} at the most."
        )
        if known is None:
            yield (
                "All figures here are for C = 1: say how many rows persons are taken to have, or "
                "how many persons and records there are, for those of the C that is to be expected."
            )
        else:
            clip = known.choose_clip()
            yield f"Of persons as they are taken to be C would be {clip:g}: figures are for that."
    elif known is None:
        yield (
            f"From 1, where all have {named} rows and more, to {named}, where each has one. Where "
            f"it is {PRICE:g}, more has hardly helped."
        )
    if known is not None and clip is not None:
        yield (
            f"Of persons of {known.mean:.3g} rows on average, and {known.most:,} at the most, that "
            f"would be {known.price(clip):.3g}."
        )
