"""A site: one owner's data and what only that owner may see."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import BudgetExceeded, FederationError, PrivacyError
from fedsynth.federation.request import Plain
from fedsynth.privacy.accounting import unsampled
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger

T = TypeVar("T")
Floats = NDArray[np.float32]


class PrivateState(Protocol):
    """A vector that a client keeps from round to round and nobody else sees."""

    def load(self) -> Floats | None:
        """The vector, or None before the first :meth:`save`."""
        ...

    def save(self, values: Floats) -> None: ...


class MemoryState:
    """A private vector in memory: right for one client's own process."""

    def __init__(self) -> None:
        self._values: Floats | None = None

    def load(self) -> Floats | None:
        return self._values

    def save(self, values: Floats) -> None:
        self._values = values


class StateFile:
    """The private vectors of many simulated clients in one sparse file.

    Read and written in place rather than mapped, so that neither memory nor the resident set grows
    with the number of clients; a client never touched takes no disk either.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.size = size
        self._bytes = 4 * size
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def slot(self, index: int) -> PrivateState:
        return _Slot(self, index)

    def read(self, index: int) -> Floats | None:
        raw = os.pread(self._file, self._bytes + 1, index * (self._bytes + 1))
        if len(raw) <= self._bytes or raw[-1] == 0:
            return None
        return np.frombuffer(raw[:-1], np.float32).copy()

    def write(self, index: int, values: Floats) -> None:
        if values.size != self.size:
            raise FederationError(
                f"a private state of {values.size} numbers does not fit its slot of {self.size}"
            )
        # The byte behind the values says that they are there: a hole in the file reads as zeros.
        raw = np.ascontiguousarray(values, np.float32).tobytes() + b"\x01"
        os.pwrite(self._file, raw, index * (self._bytes + 1))

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True)
class _Slot:
    file: StateFile
    index: int

    def load(self) -> Floats | None:
        return self.file.read(self.index)

    def save(self, values: Floats) -> None:
        self.file.write(self.index, values)


class Board:
    """Public values that the server sent to everybody, as plain data.

    Simulated sites share one board, so that thousands of them read an encoding once.
    """

    def __init__(self) -> None:
        self._posted: dict[str, Any] = {}
        self._read: dict[tuple[str, Callable[[Any], Any]], Any] = {}

    def post(self, key: str, value: Plain) -> None:
        self._posted[key] = value
        self._read = {k: v for k, v in self._read.items() if k[0] != key}

    def read(self, key: str, parse: Callable[[Any], T]) -> T:
        """The posted value as ``parse`` understands it; parsed once.

        Raises:
            FederationError: nothing was announced under ``key``.
        """
        if key not in self._posted:
            raise FederationError(f"the server asks before it has announced {key!r}")
        if (key, parse) not in self._read:
            self._read[key, parse] = parse(self._posted[key])
        value: T = self._read[key, parse]
        return value


@dataclass
class Site:
    """One data owner.

    Attributes:
        name: how the owner is called; names are public.
        data: its records, as the tasks in use understand them.
        records: how many; private at the record level.
        state: a vector that persists from round to round.
        ledger: the owner's own account across jobs; a round that would exceed it is refused.
        coins: the owner's own randomness, which nobody else may predict.
        board: what the server announced.
        derived: what tasks computed from data and announcements; private.
        participations: rounds so far of those that a job limits.
    """

    name: str
    data: Any
    records: int
    state: PrivateState = field(default_factory=MemoryState)
    ledger: Ledger | None = None
    coins: NoiseSource = field(default_factory=NoiseSource)
    board: Board = field(default_factory=Board)
    derived: dict[str, Any] = field(default_factory=dict)
    participations: int = 0

    def consent(self, event: Event, limit: int | None) -> str | None:
        """Charge the owner's own ledger for a round, or say why the owner refuses.

        A drawn client knows that it was drawn and charges only then, so without amplification.

        Args:
            limit: rounds of this job in which a drawn client takes part; None where everybody is
                asked, or drawing is secret.
        """
        if not event.terms.protects.per_record:
            event = replace(event, terms=unsampled(event.terms))
        if limit is not None and self._taken(event) >= limit:
            return f"has taken part in {limit} rounds, the most that this job accounts for"
        if self.ledger is not None:
            try:
                self.ledger.charge(event)
            except BudgetExceeded:
                return "its own budget is spent"
            except PrivacyError:
                return "its own ledger does not admit these terms"
        if limit is not None:
            self.participations += 1
        return None

    def _taken(self, event: Event) -> int:
        """Rounds like this one so far; the owner's ledger remembers those before a restart.

        Rounds that ask everybody are charged in full beside the limit, so they do not count.
        """
        written = self.ledger.events if self.ledger is not None else ()
        alike = sum((e.job, e.terms) == (event.job, event.terms) for e in written)
        return max(self.participations, alike)
