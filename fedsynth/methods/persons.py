"""What a method needs to protect persons: refused before anything is asked where it has it not."""

from __future__ import annotations

from collections.abc import Sequence

from fedsynth.errors import ConfigError
from fedsynth.federation.client.tasks import joins, knows
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.schema import ImageSchema, Schema


def demand_persons(schema: Schema | ImageSchema, budget: Budget, method: str, reason: str) -> None:
    """Raises ConfigError where persons are to be protected and nothing says whose a row is, or the
    method cannot, for a ``reason`` of its own."""
    if not budget.protects.joined:
        return
    if reason:
        raise ConfigError(f"{method} cannot protect persons: {reason}. AIM, for one, can")
    if isinstance(schema, ImageSchema):
        raise ConfigError("unit: person is for tables: nothing says whose an image is")
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


def person_cautions(schema: Schema | ImageSchema, budget: Budget) -> tuple[str, ...]:
    """That rows are protected one by one though the schema says whose they are; by these alone."""
    protects = budget.protects
    if not isinstance(schema, Schema) or schema.person is None:
        return ()
    if protects.joined or not protects.per_record:
        return ()
    return (
        f"the schema says whose a row is ({schema.person!r}), and `unit: record` protects rows one "
        "by one, not what a person's rows tell together: `unit: person` does",
    )
