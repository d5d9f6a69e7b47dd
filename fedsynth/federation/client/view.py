"""What a task sees of a client: its records and one job's memory, and nothing else of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fedsynth.federation.client.client import Client
from fedsynth.federation.client.memory import Board, PrivateVector
from fedsynth.federation.client.persons import Persons
from fedsynth.privacy.noise import NoiseSource

T = TypeVar("T")


class View:
    """A client as the tasks of one job see it.

    Args:
        client: whose records they are.
        job: its memory of another job, its ledger and its consent are out of reach.
    """

    __slots__ = ("_client", "_memory")

    def __init__(self, client: Client, job: str) -> None:
        self._client, self._memory = client, client.memory(job)

    @property
    def name(self) -> str:
        """The client's name, which is public."""
        return self._client.name

    @property
    def data(self) -> Any:
        """Its records, as the task understands them."""
        return self._client.data

    @property
    def records(self) -> int:
        """How many; private at the record level."""
        return self._client.records

    @property
    def persons(self) -> Persons | None:
        """Whose its records are; None where nobody said."""
        return self._client.persons

    @property
    def coins(self) -> NoiseSource:
        """Randomness that nobody else may predict."""
        return self._client.coins

    @property
    def board(self) -> Board:
        """What the job's server announced."""
        return self._memory.board

    @property
    def vector(self) -> PrivateVector:
        """A vector that the client keeps from round to round of this job."""
        return self._memory.vector

    def derive(self, announced: str, compute: Callable[[View], T]) -> T:
        """What ``compute`` makes of the client's data and the announcement; computed once.

        A newer announcement under the same key makes it anew: codes of an encoding that is no
        longer in force would be counted in the wrong cells.
        """
        version = self.board.version(announced)
        kept = self._memory.derived.get((announced, compute))
        if kept is None or kept[0] != version:
            kept = version, compute(self)
            self._memory.derived[announced, compute] = kept
        value: T = kept[1]
        return value
