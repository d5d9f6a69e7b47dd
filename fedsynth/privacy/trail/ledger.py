"""The ledger: an account on disk, written down before anybody answers, and read again.

One JSON object a line, appended, flushed to disk and chained by hashes, so that a crash loses
nothing, an edit shows, and no released value exists without its line. A lost answer stays charged:
its value may have been seen. Two processes cannot hold one ledger.

Clients may keep a ledger of their own across jobs: the same file with no plan, so that a privacy
filter says what it admits.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from io import FileIO
from pathlib import Path
from typing import Any

from fedsynth.durable import make_folder, sync
from fedsynth.errors import BudgetExceeded, FedsynthError, PrivacyError, ReleaseError
from fedsynth.files import LINES, demand_plain, read_plain
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail import chain
from fedsynth.privacy.trail.account import Account
from fedsynth.privacy.trail.chain import Chain
from fedsynth.privacy.trail.job import Closing, Event, Job
from fedsynth.privacy.trail.spelling import read_terms

FORMATS = (1, 2)
"""That are read: see :class:`Job`."""


def has_begun(path: Path) -> bool:
    """Whether a file holds a ledger: one without a whole line was never charged."""
    return path.exists() and chain.is_begun(path.read_bytes())


class Ledger(Account):
    """An append-only account of releases, on disk or (``path`` None) in memory.

    Use :meth:`create`, :meth:`open`, :meth:`of_owner` or :meth:`read`.
    """

    def __repr__(self) -> str:
        charged = sum(event.steps for event in self.events)
        return f"<{type(self).__name__}: {charged:,} releases charged to {self.job.budget!r}>"

    @classmethod
    def create(cls, job: Job, path: Path | None = None) -> Ledger:
        """Start a ledger, on disk when this returns.

        A file whose first line a crash cut short is none yet.

        Raises:
            PrivacyError: ``path`` exists, and no ledger is overwritten; or another process has it.
        """
        if path is None:
            ledger = cls(job, Chain(None, None))
            ledger._lines.append({"kind": "job", **job.to_dict()})
            return ledger
        make_folder(path.parent)
        with ExitStack() as failing:
            file, content = chain.locked(path, create=True)
            failing.enter_context(file)
            if chain.is_begun(content):
                raise PrivacyError(
                    f"{path} exists already: a ledger is never overwritten. Resume its job, or "
                    "choose another directory"
                )
            file.truncate(0)
            ledger = cls(job, Chain(path, file))
            ledger._lines.append({"kind": "job", **job.to_dict()})
            sync(path.parent)
            failing.pop_all()
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
        demand_plain(path, ReleaseError)
        with ExitStack() as failing:
            file, content = chain.locked(path, create=False)
            failing.enter_context(file)
            whole = content[: content.rfind(b"\n") + 1]
            ledger = cls._replay(whole, path, file)
            file.truncate(len(whole))
            file.seek(0, os.SEEK_END)
            failing.pop_all()
        return ledger

    @classmethod
    def of_owner(cls, path: Path, budget: Budget) -> Ledger:
        """An owner's own ledger, kept across jobs: continued where it has begun, else started.

        Of an infinite epsilon it counts, and refuses nothing. The first finite one that is given
        is its limit from then on, earlier releases included: chosen by what these released, it
        promises less than it says.

        Args:
            budget: with an infinite epsilon for whatever limit there is.

        Raises:
            PrivacyError: it exists with another budget, or more was released than the one given
                admits; what was promised once holds.
            ReleaseError: damaged, or not a ledger.
        """
        if not has_begun(path):
            # Of whose jobs its rows were part is its own to tell.
            make_folder(path.parent, private=True)
            started = cls.create(Job(budget=budget), path)
            path.chmod(0o600)
            return started
        ledger = cls.open(path)
        own = ledger.job.budget
        if own == budget or (own.unit == budget.unit and not budget.private):
            return ledger
        with closing(ledger):
            if own.unit != budget.unit:
                raise PrivacyError(
                    f"{path} accounts for {own.unit}s, and this job's unit is the {budget.unit}: "
                    "what one tells of the other is not known, so each needs an account, in a "
                    "folder of its own (federation: {ledgers: {folder: FOLDER}})"
                )
            ledger.limit_to(budget)
        return cls.open(path)

    def limit_to(self, budget: Budget) -> None:
        """Write the same events under another budget in the file's place, all of it or nothing.

        Raises:
            PrivacyError: there is a limit already, or more was released than this one admits.
        """
        assert self.path is not None
        if self.job.budget.private:
            raise PrivacyError(
                f"{self.path} was started with another budget than the one given: an owner's "
                "budget across jobs is set once"
            )
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.unlink(missing_ok=True)
        limited = Ledger.create(Job(budget=budget), fresh)
        fresh.chmod(0o600)
        with closing(limited):
            try:
                for event in self.events:
                    limited.charge(event)
            except BudgetExceeded:
                fresh.unlink()
                raise PrivacyError(
                    f"{self.path}: what was released before costs more than epsilon "
                    f"{budget.epsilon:g} at delta {budget.resolved_delta:g}, so that cannot be its "
                    "limit; `fedsynth account` says what it costs"
                ) from None
            fresh.replace(self.path)
            sync(self.path.parent)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Read a finished ledger without locking it; any incomplete line is damage.

        Raises:
            ReleaseError: missing, damaged, or not a ledger.
        """
        if not path.exists():
            raise ReleaseError(f"{path}: no such ledger")
        content = read_plain(path, ReleaseError, LINES)
        if not content.endswith(b"\n"):
            raise ReleaseError(f"{path}: the last line is cut short")
        return cls._replay(content, path, None)

    @classmethod
    def _replay(cls, content: bytes, path: Path, file: FileIO | None) -> Ledger:
        lines = list(chain.checked(content, path))
        if not lines or lines[0].get("kind") != "job" or lines[0].get("format") not in FORMATS:
            raise ReleaseError(f"{path}: not a ledger of this version of fedsynth")
        try:
            first, *others = [
                {k: v for k, v in line.items() if k not in chain.LINK} for line in lines
            ]
            job = Job.from_dict({k: v for k, v in first.items() if k != "kind"})
            ledger = cls(job, Chain(path, file, lines[-1]["hash"], len(lines)))
            for line in others:
                ledger._take(line)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, FedsynthError):
            raise ReleaseError(f"{path}: a line misses what a ledger line must say") from None
        return ledger

    def _take(self, line: dict[str, Any]) -> None:
        """A line that was written: an event, or at the end what a release is bound to."""
        if line["kind"] == "closing":
            self.closing = Closing.from_dict(line)
            return
        terms, steps = read_terms(line["terms"]), line.get("steps", 1)
        event = Event(line["label"], line["round"], terms, line["job"], steps)
        if line != event.to_dict() or self.closing is not None:
            raise ValueError("not an event, or one after the end")
        self.admit(terms)
        self.count(event)

    @property
    def path(self) -> Path | None:
        return self._lines.path

    @property
    def head(self) -> str:
        """Hash of the last line: it fixes the whole ledger."""
        return self._lines.head

    def close_at(self, path: Path, closing: Closing) -> Ledger:
        """The same lines in a file, and after them what a release is bound to.

        Appended where the ledger is that file, else written, all of it or nothing. A job that was
        lost before its certificate stood may be closed again; the last closing line counts.
        """
        if self.path is not None and self.path.absolute() == path.absolute():
            closed = Ledger.open(path)
            closed.close_by(closing)
        else:
            self.write_to(path, closing)
        return Ledger.read(path)

    def write_to(self, path: Path, closing: Closing | None = None) -> None:
        """Write the same lines to another file, all of them or none, and perhaps a last one."""
        fresh = path.with_name(path.name + ".new")
        fresh.unlink(missing_ok=True)
        copy = Ledger.create(self.job, fresh)
        for event in self.events:
            copy._lines.append(event.to_dict())  # noqa: SLF001
        if closing is not None:
            copy.close_by(closing)
        copy.close()
        fresh.replace(path)

    def close_by(self, closing: Closing) -> None:
        """Write what a release is bound to, unless that is said already, and let go of the file."""
        if self.closing != closing:
            self._lines.append(closing.to_dict())
            self.closing = closing
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._lines.close()
