"""The ledger: what was asked, written down before anybody answers.

One JSON object a line, appended, flushed to disk and chained by hashes, so that a crash loses
nothing, an edit shows, and no released value exists without its line. A lost answer stays charged:
its value may have been seen. Two processes cannot hold one ledger.

Clients may keep a ledger of their own across jobs: the same file with no plan.
"""

from __future__ import annotations

import math
import os
import uuid
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from fedsynth.errors import BudgetExceeded, FedsynthError, PrivacyError, ReleaseError
from fedsynth.privacy.accounting import Spent, charged, renyi, spent
from fedsynth.privacy.terms import PROTECTION, Budget, Everyone, Terms
from fedsynth.privacy.trail import chain

FORMAT = 1


@dataclass(frozen=True)
class Planned:
    """Releases that a job means to make: ``count`` under ``terms``, for the task ``label``."""

    label: str
    terms: Terms
    count: int


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


class Ledger:
    """An append-only account of releases, on disk or (``path`` None) in memory.

    Use :meth:`create` or :meth:`open`.
    """

    def __init__(self, job: Job, path: Path | None, file: FileIO | None) -> None:
        self.job = job
        self.path = path
        self._file = file
        self._events: list[Event] = []
        self._counts: dict[Terms, int] = {}
        self._head = chain.START
        self._lines = 0
        self._limits: dict[tuple[frozenset[tuple[Terms, int]], Terms], int] = {}

    @classmethod
    def create(cls, job: Job, path: Path | None = None) -> Ledger:
        """Start a ledger. Raises PrivacyError where ``path`` exists: no ledger is overwritten."""
        file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = chain.locked(path, create=True)
            except FileExistsError:
                raise PrivacyError(
                    f"{path} exists already: a ledger is never overwritten. Resume its job, or "
                    "choose another directory"
                ) from None
        ledger = cls(job, path, file)
        ledger._append({"kind": "job", "format": FORMAT, **job.to_dict()})
        return ledger

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Continue a ledger after checking its chain.

        A last line that a crash cut short was never answered for (answers wait for the disk), so it
        is dropped.

        Raises:
            ReleaseError: damaged, or not a ledger.
            PrivacyError: in use by another process.
        """
        if not path.exists():
            raise ReleaseError(f"{path}: no such ledger")
        file = chain.locked(path, create=False)
        try:
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            ledger = cls._replay(whole, path, file)
            file.truncate(len(whole))
            file.seek(0, os.SEEK_END)
        except BaseException:
            file.close()
            raise
        return ledger

    @classmethod
    def of_owner(cls, path: Path, budget: Budget) -> Ledger:
        """An owner's own ledger, kept across jobs: continued where it exists, else started.

        Raises:
            PrivacyError: it exists with another budget; what was promised once holds.
            ReleaseError: damaged, or not a ledger.
        """
        if not path.exists():
            return cls.create(Job(budget=budget), path)
        ledger = cls.open(path)
        if ledger.job.budget != budget:
            ledger.close()
            raise PrivacyError(
                f"{path} was started with another budget than the one given: an owner's budget "
                "across jobs is set once"
            )
        return ledger

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Read a finished ledger without locking it; any incomplete line is damage.

        Raises:
            ReleaseError: missing, damaged, or not a ledger.
        """
        if not path.exists():
            raise ReleaseError(f"{path}: no such ledger")
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            raise ReleaseError(f"{path}: the last line is cut short")
        return cls._replay(content, path, None)

    @classmethod
    def _replay(cls, content: bytes, path: Path, file: FileIO | None) -> Ledger:
        lines = list(chain.checked(content, path))
        if not lines or lines[0].get("kind") != "job" or lines[0].get("format") != FORMAT:
            raise ReleaseError(f"{path}: not a ledger of this version of fedsynth")
        head = dict(lines[0])
        for key in ("kind", "format", "line", "previous", "hash"):
            head.pop(key)
        try:
            ledger = cls(Job.from_dict(head), path, file)
            for line in lines[1:]:
                terms = Terms.from_dict(line["terms"])
                steps = line.get("steps", 1)
                event = Event(line["label"], line["round"], terms, line["job"], steps)
                if line != ledger._line(event, line):
                    raise ValueError("not an event")
                ledger._admit(terms)
                ledger._record(event)
        except (KeyError, TypeError, ValueError, FedsynthError):
            raise ReleaseError(f"{path}: a line misses what a ledger line must say") from None
        ledger._head, ledger._lines = lines[-1]["hash"], len(lines)
        return ledger

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def counts(self) -> dict[Terms, int]:
        """How often each terms are to be charged."""
        return dict(self._counts)

    @property
    def head(self) -> str:
        """Hash of the last line: it fixes the whole ledger."""
        return self._head

    def spent(self) -> Spent:
        """Cost so far, against the server as well as against whoever holds the release.

        Where the server adds the noise, neither is told who was drawn. Where clients do, the server
        knows whom it drew, and to the others the noise in a sum tells how many there were, so that
        drawing clients hides nothing that could be counted on from anybody.
        """
        return spent(self._charged(self._counts), self.job.budget.resolved_delta)

    def _charged(self, counts: dict[Terms, int]) -> dict[Terms, int]:
        return charged(counts, self.job.participations, self.job.budget.unit)

    def would_exceed(self, terms: Terms, steps: int = 1) -> bool:
        """Whether so many more releases under ``terms`` would cost more than the budget."""
        if not self.job.budget.private:
            return False
        wanted = {**self._counts, terms: self._counts.get(terms, 0) + steps}
        if self._planned(wanted) or self._renyi(wanted) <= self.job.budget.epsilon:
            return False
        return wanted[terms] > self._limit(wanted, terms)

    def _planned(self, wanted: dict[Terms, int]) -> bool:
        """Whether ``wanted`` stays within the plan, and the plan within the budget."""
        plan: dict[Terms, int] = {}
        for planned in self.job.plan:
            plan[planned.terms] = plan.get(planned.terms, 0) + planned.count
        if any(wanted[t] > plan.get(t, 0) for t in wanted):
            return False
        return self._cost(plan) <= self.job.budget.epsilon

    def _limit(self, wanted: dict[Terms, int], terms: Terms) -> int:
        """The most releases under ``terms`` that the budget allows beside all the others.

        Whatever is asked for first: a refusal must not stand for what was never weighed.
        """
        others = {t: n for t, n in wanted.items() if t != terms}
        key = (frozenset(others.items()), terms)
        if key not in self._limits:
            spent = self._counts.get(terms, 0)
            self._limits[key] = self._most(others, terms, spent, wanted[terms])
        return self._limits[key]

    def _most(self, others: dict[Terms, int], terms: Terms, spent: int, wanted: int) -> int:
        """Largest n >= ``spent`` such that n releases under ``terms`` fit beside ``others``.

        ``spent`` where no more fit. The exact bound takes seconds, so it is not left for every
        release anew.
        """
        budget = self.job.budget.epsilon
        low, high = spent, wanted
        # A cap on participations can make more rounds free: then the search ends here.
        while high < 2**30 and self._cost({**others, terms: high}) <= budget:
            low, high = high, 2 * high - spent
        while high - low > 1:
            middle = (low + high) // 2
            if self._cost({**others, terms: middle}) <= budget:
                low = middle
            else:
                high = middle
        return low

    def _renyi(self, counts: dict[Terms, int]) -> float:
        budget = self.job.budget
        return renyi(self._charged(counts), budget.resolved_delta)

    def _cost(self, counts: dict[Terms, int]) -> float:
        budget = self.job.budget
        return spent(self._charged(counts), budget.resolved_delta).epsilon

    def charge(self, event: Event) -> None:
        """Write an event down, on disk when this returns: only then may anybody be asked.

        Raises:
            BudgetExceeded: it would cost more than the budget; nothing was written.
            PrivacyError: its unit is not the budget's, or it trusts somebody whom the budget does
                not; or the ledger cannot be written.
        """
        self._admit(event.terms)
        if self.would_exceed(event.terms, event.steps):
            raise BudgetExceeded(
                f"{event.label}, round {event.round}: one more release would cost more than "
                f"epsilon {self.job.budget.epsilon:g} at delta {self.job.budget.resolved_delta:g} "
                f"({self.spent().epsilon:.4g} is spent); nothing was asked of anybody"
            )
        self._append(self._line(event, {}))
        self._record(event)

    def write_to(self, path: Path) -> None:
        """Write the same lines to another file, all of them or none; its head is the same."""
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        copy = Ledger.create(self.job, fresh)
        for event in self._events:
            copy._append(self._line(event, {}))
        copy.close()
        fresh.replace(path)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _admit(self, terms: Terms) -> None:
        """Raises PrivacyError for a release that protects another unit or trusts more people."""
        budget = self.job.budget
        whole = terms.unit == "client" and terms.sampling == Everyone()
        if terms.unit != budget.unit and not whole:
            raise PrivacyError(f"this ledger accounts for {budget.unit}s, not for {terms.unit}s")
        if PROTECTION[terms.trust] < PROTECTION[budget.trust]:
            raise PrivacyError(
                f"this ledger promises {budget.trust} trust: a release under {terms.trust} trust "
                "would rely on somebody who is not to be relied on"
            )

    @staticmethod
    def _line(event: Event, link: dict[str, Any]) -> dict[str, Any]:
        """An event as a line, with the numbering and hashes of ``link``."""
        return {
            **{key: link[key] for key in ("line", "previous", "hash") if key in link},
            "kind": "event",
            "label": event.label,
            "round": event.round,
            "job": event.job,
            "terms": event.terms.to_dict(),
            **({"steps": event.steps} if event.steps > 1 else {}),
        }

    def _record(self, event: Event) -> None:
        self._events.append(event)
        self._counts[event.terms] = self._counts.get(event.terms, 0) + event.steps

    def _append(self, line: dict[str, Any]) -> None:
        line = {"line": self._lines, **line, "previous": self._head}
        line["hash"] = chain.digest(line)
        if self.path is not None:
            self._write(chain.canonical(line) + b"\n")
        self._head = line["hash"]
        self._lines += 1

    def _write(self, line: bytes) -> None:
        if self._file is None:
            raise PrivacyError(f"{self.path}: this ledger is closed")
        try:
            whole = self._file.write(line) == len(line)
            os.fsync(self._file.fileno())
        except OSError:
            whole = False
        if not whole:
            # Part of the line may be there: nothing may follow it before `open` has cut it off.
            self.close()
            raise PrivacyError(
                f"{self.path}: cannot be written, so nothing may be released. Make room on the "
                "disk, then resume"
            )
