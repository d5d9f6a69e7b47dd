"""What passes between server and clients, counted as it passes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fedsynth.federation.request import Plain, Request
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.trail.spelling import spell
from fedsynth.views import spell_bytes


@dataclass
class Traffic:
    """Calls and bytes of a federation so far, over all its clients.

    Bytes are those of the numbers themselves (arrays as they lie in memory, plain values as JSON),
    without what a network protocol wraps around them. Who was drawn by coin flips may be secret,
    and so is how many: of such rounds the expected number counts.

    Attributes:
        clients: of the federation.
        requests, answers: how many were sent, one for each client asked or answering.
        down, up: bytes from the server to clients, and from clients to the server.
    """

    clients: int
    requests: float = 0
    answers: float = 0
    down: float = 0
    up: float = 0

    @property
    def calls_per_client(self) -> float:
        """Requests and answers, a client."""
        return (self.requests + self.answers) / self.clients

    @property
    def bytes_per_client(self) -> float:
        """In both directions, a client."""
        return (self.down + self.up) / self.clients

    @property
    def words(self) -> str:
        """How many messages a client gets and sends, and their size."""
        size = spell_bytes(self.bytes_per_client)
        return f"{self.calls_per_client:.3g} a client, of {size} together"

    def add_announcement(self, value: Plain) -> None:
        """A plain value went to everybody."""
        self.down += self.clients * plain_bytes(value)

    def add_request(self, request: Request, clients: int) -> None:
        """A request went to so many clients."""
        participants = self._participants(request, clients)
        size = sum(array.nbytes for array in request.arrays.values()) + plain_bytes(
            request.settings
        )
        self.requests += participants
        self.down += participants * (size + plain_bytes(spell(request.terms)))

    def add_answers(self, request: Request, clients: int) -> None:
        """So many usable answers came back."""
        participants = self._participants(request, clients)
        self.answers += participants
        self.up += participants * request.dim * 8

    def _participants(self, request: Request, clients: int) -> float:
        """How many clients took part, as far as that may be told."""
        terms = request.terms
        if not terms.protects.per_record and isinstance(terms.sampling, Poisson):
            return terms.sampling.rate * self.clients
        return clients


def plain_bytes(value: object) -> int:
    """Of a plain value, as JSON."""
    return len(json.dumps(value, separators=(",", ":"), default=dict).encode())
