"""A group: some records of one client, and what tasks keep of it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

from fedsynth.federation.client.memory import Board
from fedsynth.privacy.noise import NoiseSource


@dataclass(frozen=True, eq=False)
class Group:
    """Some records of one client.

    Attributes:
        client: its name, which is public.
        number: of the group, from 0.
        data: the group's own records, as the client's data (any type with ``take(positions)``).
        records: how many; perhaps none.
        board: what the server announced.
        coins: randomness that nobody else may predict.
        memory: what tasks keep of this group from round to round; private. It lives as long as the
            assignment of records to groups, so what it holds never saw another group's records.
    """

    client: str
    number: int
    data: Any
    records: int
    board: Board
    coins: NoiseSource
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Public, and of this group alone: for weights that nothing private rests on."""
        return zlib.crc32(f"{self.client}/{self.number}".encode())
