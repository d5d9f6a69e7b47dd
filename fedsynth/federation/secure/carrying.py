"""The loop that carries a secure sum, whatever lies between the server and the owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fedsynth.errors import FederationError
from fedsynth.federation.secure.leader import Leader, Opened

Exchange = Callable[[Mapping[str, bytes]], Iterable[tuple[str, bytes]]]
"""From what is sent to owners to what comes back in time: owners' names, and their answers."""


def add_up(leader: Leader, exchange: Exchange) -> Opened:
    """Carry an attempt that has begun to its end.

    An answer that cannot be used is as good as none.

    Raises:
        FederationError: the attempt is lost.
    """
    opened = None
    while opened is None:
        for name, reply in exchange(leader.requests()):
            try:
                leader.receive(name, reply)
            except FederationError:
                continue
        opened = leader.advance()
    return opened
