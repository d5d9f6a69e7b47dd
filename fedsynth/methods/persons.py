"""What a method needs to protect persons and to invent some: refused before anything is asked where
it has it not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedsynth.errors import ConfigError
from fedsynth.federation.client.tasks import joins, knows
from fedsynth.methods.sampling.following import route
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.persons import LABEL, RowsAPerson
from fedsynth.schema import ImageSchema, Schema


def demand_persons(schema: Schema | ImageSchema, budget: Budget, method: str, reason: str) -> None:
    """Raises ConfigError where persons are to be protected and nothing says whose a row is, or the
    method cannot, for a ``reason`` of its own."""
    if not budget.protects.joined:
        return
    if reason:
        raise ConfigError(f"{method} cannot protect persons: {reason}. AIM, for one, can")
    if schema.person is None and isinstance(schema, ImageSchema):
        raise ConfigError(
            "unit: person needs a schema that says whose an image is: `person`, the name of the "
            "array of the .npz file that holds each image's person. It is never learned, and "
            "never leaves its owner"
        )
    if schema.person is None:
        raise ConfigError(
            "unit: person needs a schema that says whose a row is: the column that holds the "
            "person's key, declared an identifier and named under `person`. It is never learned, "
            "and never leaves its owner"
        )


def demand_joined(releases: Sequence[Planned], budget: Budget, method: str) -> None:
    """Raises ConfigError for releases whose rows cannot be added up by person."""
    if not budget.protects.joined:
        return
    for planned in releases:
        own = planned.terms.unit == budget.unit
        # A label that is no task's is of several tasks, of which the method says that they can.
        fits = joins(planned.label) if own and knows(planned.label) else own
        if not (fits or (planned.terms.unit in budget.protects.moved and not own)):
            raise ConfigError(
                f"{method} cannot protect persons: what it asks as {planned.label} has no rows "
                "that can be added up by person. AIM, for one, can"
            )
    if budget.chooses_clip and LABEL not in [planned.label for planned in releases]:
        raise ConfigError(
            f"{method} does not ask how many rows persons have, so weigh: row needs person_clip"
        )


def demand_invented(
    schema: Schema | ImageSchema, method: str, learned: type[Any], where: Mapping[str, Any] | None
) -> None:
    """Raises ConfigError where rows of invented persons could not be drawn, whatever a fit learns.

    Args:
        learned: the class of what the method learns.
        where: conditions on what is drawn.
    """
    if isinstance(schema, ImageSchema):
        raise ConfigError("persons: images are not drawn by person, tables' rows may be")
    if schema.person is None:
        raise ConfigError(
            "persons: rows can be those of invented persons where the schema says whose a row is "
            "(`person`), which this one does not"
        )
    if not hasattr(learned, "draw_persons"):
        raise ConfigError(
            f"persons: {method} cannot draw further rows of a person, given what of it is `of: "
            "person`. AIM, MST and PrivBayes can"
        )
    if totals := route(schema, where)[1]:
        raise ConfigError(
            f"persons: a condition on {', '.join(totals)}, which follows from other columns, is "
            "met by single rows that are drawn again, and not by persons: leave one of the two out"
        )


def demand_sizes(budget: Budget) -> None:
    """Raises ConfigError where a job tells nothing of how many rows a person has."""
    if not budget.protects.joined:
        raise ConfigError(
            f"persons: how many rows a person has is released where persons are protected (unit: "
            f"person), and nothing of it with unit: {budget.unit}"
        )
    if not budget.sizes_share:
        raise ConfigError(
            "persons: how many rows a person has is not asked with person_share: 0, so there is "
            "nothing to invent persons by: leave it out"
        )


def tell_invented(schema: Schema) -> str:
    """What rows of invented persons keep, and what they do not."""
    if not schema.of_person:
        return (
            "rows of an invented person share its key and nothing else: no column is `of: person`. "
            "Declare those that have one value in all rows of a person"
        )
    return (
        f"rows of an invented person share {', '.join(schema.of_person)}, and are independent "
        "given these: their order, and what else of them hangs together, is not kept"
    )


def person_cautions(schema: Schema | ImageSchema, budget: Budget) -> tuple[str, ...]:
    """That rows are protected one by one though the schema says whose they are; by these alone."""
    protects = budget.protects
    if schema.person is None:
        return ()
    if protects.joined or not protects.per_record:
        return ()
    return (
        f"the schema says whose a row is ({schema.person!r}), and `unit: record` protects rows one "
        "by one, not what a person's rows tell together: `unit: person` does",
    )


def person_remarks(known: RowsAPerson | None, budget: Budget) -> tuple[str, ...]:
    """What the histogram of rows a person told, and what was chosen by it."""
    if known is None:
        return ()
    if not known.told:
        told = (
            "the histogram of rows a person shows no bin beyond its noise: how many persons there "
            "are is not known, and each is taken to have one row"
        )
    else:
        told = (
            f"about {known.persons:,.0f} persons (noise deviates by {known.deviation:,.0f}) have "
            f"{known.mean:.3g} rows each on average. Persons of more than {known.most:,} are too "
            "few to be told from noise"
        )
    if not budget.chooses_clip:
        alone, clip = known.told and known.sizes[0] > 0.5, budget.person_clip or 1.0
        if budget.weigh == "person" and alone and clip < 1:
            told += (
                f". Most have a single row, which counts {clip:g} beside others' rows: with "
                "person_clip: 1 it would count whole, at more noise"
            )
        return (told,)
    clip = known.choose_clip()
    return (
        told,
        f"a person's rows were clipped to {clip:g} rows' worth (person_clip), chosen from that: "
        f"noise is {known.price(clip):.3g} times that of one row a person at the most. Rows of "
        "persons with more count less",
    )


def count_all(known: RowsAPerson | None, budget: Budget, counted: float) -> float:
    """By how much all counts are too low where persons are clipped, a factor of at least 1.

    A person whose rows are clipped counts less than 1, or than its rows; how much less differs from
    table to table. How many there are the histogram of rows a person tells.

    Args:
        budget: with the clip that was asked.
        counted: persons, or where rows weigh alike rows, as the clipped tables have them.
    """
    if known is None or budget.person_clip is None or not known.told:
        return 1.0
    clip = budget.person_clip
    if budget.weigh == "person":
        # Rows of weights 1/k add up to one at the most.
        found, noise, most = known.persons, known.deviation, 1 / clip
    else:
        found, noise, most = known.rows, known.rows_deviation, known.most / clip
    factor = min(found / counted, most)
    return factor if found - counted > noise and factor > 1 else 1.0
