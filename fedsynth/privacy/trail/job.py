"""What a ledger says: of a job its budget and plan, of a release its terms. And how."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fedsynth.errors import PrivacyError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.spelling import read_terms, spell
from fedsynth.privacy.trust import SECURED

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True)
class Planned:
    """Releases that a job means to make: ``count`` under ``terms``, for the task ``label``."""

    label: str
    terms: Terms
    count: int

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "terms": spell(self.terms), "count": self.count}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Planned:
        return Planned(plain["label"], read_terms(plain["terms"]), plain["count"])


def count_terms(plan: Iterable[Planned]) -> dict[Terms, int]:
    """How often each terms are planned."""
    counts: dict[Terms, int] = {}
    for planned in plan:
        counts[planned.terms] = counts.get(planned.terms, 0) + planned.count
    return counts


def unclipped(counts: Mapping[Terms, int]) -> dict[Terms, int]:
    """The counts without regard to clips: noise goes with them, so none bears on the cost, and one
    may be chosen from what was released."""
    found: dict[Terms, int] = {}
    for terms, count in counts.items():
        bare = replace(terms, clip=1.0)
        found[bare] = found.get(bare, 0) + count
    return found


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
        if self.steps > 1 and not self.terms.protects.per_record:
            # A limit on rounds would be taken for one on steps.
            raise PrivacyError("only training that hides records takes several steps")

    def to_dict(self) -> dict[str, Any]:
        plain = {"label": self.label, "round": self.round, "job": self.job}
        steps = {"steps": self.steps} if self.steps > 1 else {}
        return {"kind": "event", **plain, "terms": spell(self.terms), **steps}


@dataclass(frozen=True)
class Closing:
    """What a release binds its ledger to: the last line, after which nothing is asked.

    Attributes:
        files: SHA-256 of every file of the release but ledger and certificate, by name.
        incidents: answers that rounds went without, by stage, owner and reason.
        edited: the rows are not as the model gave them.
        date: of the release, a day of UTC as 2026-01-31; empty in earlier ledgers.
    """

    files: Mapping[str, str]
    incidents: tuple[Mapping[str, Any], ...] = ()
    edited: bool = False
    date: str = ""

    def to_dict(self) -> dict[str, Any]:
        incidents = [dict(one) for one in self.incidents]
        later: dict[str, Any] = {"edited": True} if self.edited else {}
        later |= {"date": self.date} if self.date else {}
        return {"kind": "closing", "files": dict(self.files), "incidents": incidents, **later}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Closing:
        """Raises PrivacyError where ``plain`` is not what :meth:`to_dict` gives."""
        try:
            files, incidents = dict(plain["files"]), tuple(plain["incidents"])
            edited, day = plain.get("edited") is True, plain.get("date", "")
            closing = Closing(files, incidents, edited, day)
            intact = (
                closing.to_dict() == plain
                and _is_day(day)
                and all(isinstance(part, str) for entry in closing.files.items() for part in entry)
            )
        except (KeyError, TypeError, ValueError):
            intact = False
        if not intact:
            raise PrivacyError("no closing line")
        return closing


def _is_day(text: object) -> bool:
    return text == "" or (isinstance(text, str) and _DAY.fullmatch(text) is not None)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a ledger is about: its first line.

    Attributes:
        budget: what everything in this ledger together may cost.
        plan: the releases that the noise was calibrated for; they fit the budget together.
        participations: rounds after which each client refuses, where clients are sampled.
        schema_digest: hash of the schema in force.
        schema_provenance: "declared", or "private-data" where it was drafted from private rows.
        owners_provenance: "private-data" where private rows tell which owners there are.
        settings_digest: hash of the method and its settings; empty where they are not known.
        agreed_digest: hash of what else a resumed job keeps to (:mod:`.agreement`), likewise.
        insecure: noise came from a known seed, or owners were reached unencrypted: nothing is
            guaranteed.
        job: random name.
        method: that asks; empty where none does.
        clients: how many take part, a public number; 0 in an owner's own ledger.
        secure: where shares were added up by the whole protocol of secure sums, a key of
            :data:`fedsynth.privacy.trust.SECURED`: "simulated" among clients of one process,
            "apart" among owners on their own machines; empty where that is assumed.
        format: of the ledger; those of format 1 had no method, clients or last line.
    """

    budget: Budget
    plan: tuple[Planned, ...] = ()
    participations: int | None = None
    schema_digest: str = ""
    schema_provenance: str = "declared"
    owners_provenance: str = "declared"
    settings_digest: str = ""
    agreed_digest: str = ""
    insecure: bool = False
    job: str = field(default_factory=lambda: uuid.uuid4().hex)
    method: str = ""
    clients: int = 0
    secure: str = ""
    format: int = 2

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        if math.isinf(self.budget.epsilon):
            plain["budget"]["epsilon"] = "inf"
        # As ledgers were written before there were these: the same line, and so the same hash.
        for later in ("curious", "weigh", "person_clip", "person_share"):
            if plain["budget"][later] is None:
                del plain["budget"][later]
        for later in ("settings_digest", "agreed_digest", "method", "clients", "secure"):
            if not plain[later]:
                del plain[later]
        if self.owners_provenance == "declared":
            del plain["owners_provenance"]
        plain["plan"] = self.announced["releases"]
        return plain

    @property
    def sums(self) -> tuple[int, int, int] | None:
        """Cohort, threshold and curious owners of its secure sums; None where it has none."""
        if not (self.secure and self.budget.trusts.shares):
            return None
        sure = max((planned.terms.survivors for planned in self.plan), default=self.clients)
        return self.clients, sure, self.budget.for_clients(self.clients).curious or 0

    @property
    def announced(self) -> dict[str, Any]:
        """What clients are told of it before anything is asked."""
        releases = [planned.to_dict() for planned in self.plan]
        return {"releases": releases, "participations": self.participations}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Job:
        fields = dict(plain)
        budget = dict(fields.pop("budget"))
        if budget["epsilon"] == "inf":
            budget["epsilon"] = math.inf
        plan = tuple(Planned.from_dict(planned) for planned in fields.pop("plan"))
        job = Job(budget=Budget(**budget), plan=plan, **fields)
        numbers = job.clients, job.participations or 0, *(planned.count for planned in plan)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise PrivacyError("a job of no whole number of clients or releases")
        if job.secure not in ("", *SECURED):
            raise PrivacyError("a job of secure sums that this fedsynth does not know")
        return job


def chosen_clip(job: Job, events: Iterable[Event]) -> float:
    """How many rows' worth a person's were clipped to, where the plan left that open: so many times
    its clips were asked."""
    clips = [1.0]
    for event in events:
        noise = replace(event.terms, clip=1.0)
        alike = [one for one in job.plan if replace(one.terms, clip=1.0) == noise]
        # Of a plan's stages that differ by their clips alone each has its task's name.
        named = [one for one in alike if one.label == event.label] or alike
        clips += [event.terms.clip / one.terms.clip for one in named[:1]]
    return max(clips)
