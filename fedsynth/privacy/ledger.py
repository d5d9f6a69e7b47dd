"""The ledger: what was asked, written down before anybody answers.

One JSON object a line, appended, flushed to disk and chained by hashes, so that a crash loses
nothing, an edit shows, and no released value exists without its line. A lost answer stays charged:
its value may have been seen. Two processes cannot hold one ledger.

Clients may keep a ledger of their own across jobs: the same file with no plan.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fedsynth.errors import BudgetExceeded, PrivacyError, ReleaseError
from fedsynth.privacy.accounting import Spent, charged, spent
from fedsynth.privacy.terms import Budget, Terms

FORMAT = 1
_START = "0" * 64


@dataclass(frozen=True)
class Planned:
    """Releases that a job means to make: ``count`` under ``terms``, for the task ``label``."""

    label: str
    terms: Terms
    count: int


@dataclass(frozen=True)
class Event:
    """One release: the task that answers, the round, and the terms that it is protected by."""

    label: str
    round: int
    terms: Terms
    job: str = ""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a ledger is about: its first line.

    Attributes:
        budget: what everything in this ledger together may cost.
        plan: the releases that the noise was calibrated for; they fit the budget together.
        participations: rounds after which each client refuses, where clients are sampled.
        schema_digest: hash of the schema in force.
        schema_provenance: "declared", or "private-data" where it was drafted from private rows.
        insecure: noise came from a known seed, so nothing is guaranteed.
        job: random name.
    """

    budget: Budget
    plan: tuple[Planned, ...] = ()
    participations: int | None = None
    schema_digest: str = ""
    schema_provenance: str = "declared"
    insecure: bool = False
    job: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        if math.isinf(self.budget.epsilon):
            plain["budget"]["epsilon"] = "inf"
        plain["plan"] = [
            {"label": p.label, "terms": p.terms.to_dict(), "count": p.count} for p in self.plan
        ]
        return plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Job:
        fields = dict(plain)
        budget = dict(fields.pop("budget"))
        budget["epsilon"] = float(budget["epsilon"])
        plan = tuple(
            Planned(p["label"], Terms.from_dict(p["terms"]), int(p["count"]))
            for p in fields.pop("plan")
        )
        return Job(budget=Budget(**budget), plan=plan, **fields)


class Ledger:
    """An append-only account of releases, on disk or (``path`` None) in memory.

    Use :meth:`create` or :meth:`open`.
    """

    def __init__(self, job: Job, path: Path | None, file: BinaryIO | None) -> None:
        self.job = job
        self.path = path
        self._file = file
        self._events: list[Event] = []
        self._counts: dict[Terms, int] = {}
        self._head = _START
        self._lines = 0
        self._limits: dict[tuple[frozenset[tuple[Terms, int]], Terms], int] = {}

    @classmethod
    def create(cls, job: Job, path: Path | None = None) -> Ledger:
        """Start a ledger. Raises PrivacyError where ``path`` exists: no ledger is overwritten."""
        file = None
        if path is not None:
            if path.exists():
                raise PrivacyError(
                    f"{path} exists already: a ledger is never overwritten. Resume its job, or "
                    "choose another directory"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            file = _locked(path, create=True)
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
        file = _locked(path, create=False)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        ledger = cls._replay(whole, path, file)
        file.truncate(len(whole))
        file.seek(0, os.SEEK_END)
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
    def _replay(cls, content: bytes, path: Path, file: BinaryIO | None) -> Ledger:
        lines = list(_checked(content, path))
        if not lines or lines[0].get("kind") != "job" or lines[0].get("format") != FORMAT:
            raise ReleaseError(f"{path}: not a ledger of this version of fedsynth")
        head = dict(lines[0])
        for key in ("kind", "format", "line", "previous", "hash"):
            head.pop(key)
        try:
            ledger = cls(Job.from_dict(head), path, file)
            for line in lines[1:]:
                terms = Terms.from_dict(line["terms"])
                ledger._record(Event(line["label"], line["round"], terms, line["job"]))
        except (KeyError, TypeError, ValueError):
            raise ReleaseError(f"{path}: a line misses what a ledger line must say") from None
        ledger._head, ledger._lines = lines[-1]["hash"], len(lines)
        return ledger

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def counts(self) -> dict[Terms, int]:
        """How many releases were made under each terms."""
        return dict(self._counts)

    @property
    def head(self) -> str:
        """Hash of the last line: it fixes the whole ledger."""
        return self._head

    def spent(self) -> Spent:
        """Cost so far, against the server as well as against whoever holds the release."""
        return spent(charged(self._counts, self.job.participations), self.job.budget.resolved_delta)

    def released(self) -> Spent:
        """Cost so far against those who see the release alone, who cannot know who was drawn."""
        return spent(self._counts, self.job.budget.resolved_delta)

    def would_exceed(self, terms: Terms) -> bool:
        """Whether one more release under ``terms`` would cost more than the budget."""
        if not self.job.budget.private:
            return False
        count = self._counts.get(terms, 0) + 1
        if self._planned(terms, count):
            return False
        return count > self._limit(terms)

    def _planned(self, terms: Terms, count: int) -> bool:
        """Whether ``count`` under ``terms``, beside all else so far, stays within the plan."""
        plan: dict[Terms, int] = {}
        for planned in self.job.plan:
            plan[planned.terms] = plan.get(planned.terms, 0) + planned.count
        wanted = {**self._counts, terms: count}
        if any(wanted[t] > plan.get(t, 0) for t in wanted):
            return False
        return self._cost(plan) <= self.job.budget.epsilon

    def _limit(self, terms: Terms) -> int:
        """The most releases under ``terms`` that the budget allows beside all the others."""
        others = {t: n for t, n in self._counts.items() if t != terms}
        key = (frozenset(others.items()), terms)
        if key not in self._limits:
            self._limits[key] = self._most(others, terms)
        return self._limits[key]

    def _most(self, others: dict[Terms, int], terms: Terms) -> int:
        """Largest n such that n releases under ``terms`` fit beside ``others``, by bisection."""
        budget = self.job.budget.epsilon
        low, high = 0, 1
        while high < 2**30 and self._cost({**others, terms: high}) <= budget:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self._cost({**others, terms: middle}) <= budget:
                low = middle
            else:
                high = middle
        return low

    def _cost(self, counts: dict[Terms, int]) -> float:
        budget = self.job.budget
        return spent(charged(counts, self.job.participations), budget.resolved_delta).epsilon

    def charge(self, event: Event) -> None:
        """Write an event down, on disk when this returns: only then may anybody be asked.

        Raises:
            BudgetExceeded: it would cost more than the budget; nothing was written.
            PrivacyError: its unit is not the budget's.
        """
        if event.terms.unit != self.job.budget.unit:
            raise PrivacyError(
                f"this ledger accounts for {self.job.budget.unit}s, not for {event.terms.unit}s"
            )
        if self.would_exceed(event.terms):
            raise BudgetExceeded(
                f"{event.label}, round {event.round}: one more release would cost more than "
                f"epsilon {self.job.budget.epsilon:g} at delta {self.job.budget.resolved_delta:g} "
                f"({self.spent().epsilon:.4g} is spent); nothing was asked of anybody"
            )
        self._append(
            {
                "kind": "event",
                "label": event.label,
                "round": event.round,
                "job": event.job,
                "terms": event.terms.to_dict(),
            }
        )
        self._record(event)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _record(self, event: Event) -> None:
        self._events.append(event)
        self._counts[event.terms] = self._counts.get(event.terms, 0) + 1

    def _append(self, line: dict[str, Any]) -> None:
        line = {"line": self._lines, **line, "previous": self._head}
        line["hash"] = _digest(line)
        if self.path is not None:
            if self._file is None:
                raise PrivacyError(f"{self.path}: this ledger is closed")
            self._file.write(_canonical(line) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self._head = line["hash"]
        self._lines += 1


def _locked(path: Path, *, create: bool) -> BinaryIO:
    file = path.open("x+b" if create else "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise PrivacyError(f"{path}: another process is writing this ledger") from None
    if create:
        _sync_directory(path.parent)
    return file


def _sync_directory(folder: Path) -> None:
    """A new file survives a crash only once its directory entry is on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _canonical(line: dict[str, Any]) -> bytes:
    return json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _digest(line: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical({k: v for k, v in line.items() if k != "hash"})).hexdigest()


def _checked(content: bytes, path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a ledger, each checked against its hash and its predecessor's."""
    previous = _START
    for number, raw in enumerate(content.splitlines()):
        try:
            line = json.loads(raw)
            intact = (
                line["line"] == number
                and line["previous"] == previous
                and line["hash"] == _digest(line)
            )
        except (ValueError, KeyError, TypeError):
            intact = False
        if not intact:
            raise ReleaseError(
                f"{path}, line {number + 1}: damaged or changed since it was written"
            )
        previous = line["hash"]
        yield line
