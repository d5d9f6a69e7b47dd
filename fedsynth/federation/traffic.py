"""What passes between server and clients, counted as it passes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from fedsynth.federation.request import Answer, Plain, Request


@dataclass
class Traffic:
    """Calls and bytes of a federation so far, over all its clients.

    Bytes are those of the numbers themselves (arrays as they lie in memory, plain values as JSON),
    without what a network protocol wraps around them. How many answered is known to a server; under
    sampling of clients it may be secret from others.

    Attributes:
        clients: of the federation.
        requests, answers: how many were sent, one for each client asked or answering.
        down, up: bytes from the server to clients, and from clients to the server.
    """

    clients: int
    requests: int = 0
    answers: int = 0
    down: int = 0
    up: int = 0

    @property
    def calls_per_client(self) -> float:
        """Requests and answers, a client."""
        return (self.requests + self.answers) / self.clients

    @property
    def bytes_per_client(self) -> float:
        """In both directions, a client."""
        return (self.down + self.up) / self.clients

    def announced(self, value: Plain) -> None:
        """A plain value went to everybody."""
        self.down += self.clients * _size(value)

    def asked(self, request: Request, clients: int) -> None:
        """A request went to so many clients."""
        size = sum(array.nbytes for array in request.arrays.values()) + _size(request.settings)
        self.requests += clients
        self.down += clients * (size + _size(request.terms.to_dict()))

    def answered(self, answers: Sequence[Answer]) -> None:
        """Usable answers came back."""
        self.answers += len(answers)
        self.up += sum(one.values.nbytes for one in answers)


def _size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), default=dict).encode())
