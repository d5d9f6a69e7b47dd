"""What a client keeps of one job, and nobody else sees; apart for every job that it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError
from fedsynth.federation.client.floor import Tally
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import Plain

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules

T = TypeVar("T")
Floats = NDArray[np.float32]


class PrivateVector(Protocol):
    """A vector that a client keeps from round to round."""

    def load(self) -> Floats | None:
        """The vector, or None before the first :meth:`save`."""
        ...

    def save(self, values: Floats) -> None: ...


class MemoryVector:
    """A private vector in memory: right for one client's own process."""

    def __init__(self) -> None:
        self._values: Floats | None = None

    def load(self) -> Floats | None:
        return self._values

    def save(self, values: Floats) -> None:
        self._values = values


class Board:
    """Public values that a job's server sent to everybody, as plain data.

    Clients simulated in one process share a job's board, so that thousands of them read an encoding
    once.
    """

    def __init__(self) -> None:
        self._posted: dict[str, Any] = {}
        self._versions: dict[str, int] = {}
        self._read: dict[tuple[str, Callable[[Any], Any]], Any] = {}

    def post(self, key: str, value: Plain) -> None:
        self._posted[key] = value
        self._versions[key] = self.version(key) + 1
        self._read = {k: v for k, v in self._read.items() if k[0] != key}

    def version(self, key: str) -> int:
        """How often something was announced under ``key``."""
        return self._versions.get(key, 0)

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
class Memory:
    """What a client keeps of one job.

    Attributes:
        board: what the job's server announced.
        vector: a vector that persists from round to round.
        derived: what was computed from the client's data and an announcement, with the version of
            the announcement that it goes with.
        groups: the client's records in groups, once a task has asked for them.
        by_person: whether all records of a person are in one group.
        participations: rounds so far of those that the job limits.
        latest: number of the last round that it answered, -1 before the first.
        tally: what the job has cost so far, under the client's floor.
        answers: what was given of the job's rounds; None where nothing is kept, and a round that
            was charged may have been answered.
        rules: of cohort, threshold and curious owners, where the job's sums of shares are secure
            ones (:mod:`fedsynth.federation.secure`); None where that is assumed.
        busy: a thread that is at work on a round whose deadline is over.
    """

    board: Board = field(default_factory=Board)
    vector: PrivateVector = field(default_factory=MemoryVector)
    derived: dict[tuple[str, Any], tuple[int, Any]] = field(default_factory=dict)
    groups: tuple[Any, ...] | None = None
    by_person: bool = False
    participations: int = 0
    latest: int = -1
    tally: Tally | None = None
    answers: Kept | None = None
    rules: Rules | None = None
    busy: Thread | None = None
