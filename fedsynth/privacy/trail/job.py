"""What a ledger says: of a job its budget and plan, of a release its terms. And how."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from fedsynth.errors import PrivacyError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms


@dataclass(frozen=True)
class Planned:
    """Releases that a job means to make: ``count`` under ``terms``, for the task ``label``."""

    label: str
    terms: Terms
    count: int


def count_terms(plan: Iterable[Planned]) -> dict[Terms, int]:
    """How often each terms are planned."""
    counts: dict[Terms, int] = {}
    for planned in plan:
        counts[planned.terms] = counts.get(planned.terms, 0) + planned.count
    return counts


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

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        if math.isinf(self.budget.epsilon):
            plain["budget"]["epsilon"] = "inf"
        if not self.settings_digest:
            # As ledgers were written before it was: the same line, and so the same hash.
            del plain["settings_digest"]
        plain["plan"] = [
            {"label": p.label, "terms": p.terms.to_dict(), "count": p.count} for p in self.plan
        ]
        return plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Job:
        fields = dict(plain)
        budget = dict(fields.pop("budget"))
        if budget["epsilon"] == "inf":
            budget["epsilon"] = math.inf
        plan = tuple(
            Planned(p["label"], Terms.from_dict(p["terms"]), int(p["count"]))
            for p in fields.pop("plan")
        )
        return Job(budget=Budget(**budget), plan=plan, **fields)
