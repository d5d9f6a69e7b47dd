"""A post in memory, at each of whose nodes every message has a process of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread

from fedsynth.federation.client.client import Client
from fedsynth.federation.runtimes.courier import Courier
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.messages import open_parcel
from fedsynth.federation.runtimes.site import Site
from tests.federation.runtimes.carriers import Machines

Start = Callable[[], AbstractContextManager[Site]]
"""Starts a site's process, which knows what is on its disk."""


class Post:
    """:class:`fedsynth.federation.runtimes.courier.Mail` to nodes in this process.

    Attributes:
        fate: what becomes of a node's next messages, one each: `lost`, `dies` before its reply is
            sent, `twice`, `late` (behind the next) or `damaged` on its way; others arrive.
        sent: nodes and parcels, as they were sent.
        away: nodes that are not there.
    """

    def __init__(self, starts: dict[int, Start]) -> None:
        self.starts = starts
        self.fate: dict[int, list[str]] = {node: [] for node in starts}
        self.sent: list[tuple[int, list[bytes]]] = []
        self.away: set[int] = set()
        self._names = itertools.count()
        self._came: list[tuple[str, list[bytes] | None]] = []
        self._late: list[tuple[str, list[bytes]]] = []

    def nodes(self) -> Collection[int]:
        return set(self.starts) - self.away

    def send(self, parcels: Sequence[tuple[int, Sequence[bytes]]]) -> list[str]:
        names = []
        for node, parcel in parcels:
            names.append(name := str(next(self._names)))
            self.sent.append((node, list(parcel)))
            fates = self.fate.get(node, [])
            fate = fates.pop(0) if fates and parcel else ""
            if fate == "lost":
                continue
            bodies = [body[:-1] for body in parcel] if fate == "damaged" else list(parcel)
            for _ in range(2 if fate == "twice" else 1):
                with self.starts[node]() as site:
                    said = open_parcel(site, bodies)
            if fate == "late":
                self._late.append((name, said))
                continue
            self._came.append((name, None if fate == "dies" else said))
            self._came += self._late
            self._late = []
        return names

    def fetch(self, names: Collection[str]) -> list[tuple[str, list[bytes] | None]]:
        came = [one for one in self._came if one[0] in names]
        self._came = [one for one in self._came if one[0] not in names]
        return came


def carrying(courier: Courier) -> Callable[[], None]:
    """Has a courier carry, until what it gives is called."""
    over = Event()

    def turn() -> None:
        while not over.wait(0.0005):
            courier.turn()

    thread = Thread(target=turn, daemon=True)
    thread.start()

    def end() -> None:
        over.set()
        thread.join()

    return end


class Posted(Machines):
    """Builds runtimes by messages to sites that remember nothing but what is on their disks."""

    def __init__(self, folder) -> None:
        super().__init__(folder, self._post)
        self.end: Callable[[], None] = lambda: None

    def __call__(self, clients, private=None) -> Hub:
        self.clients = clients, private
        return super().__call__(clients, private)

    def _post(self, hub: Hub, sites: Sequence[Site]) -> None:
        clients, private = self.clients
        names = [client.name for client in clients]

        @contextmanager
        def start(client: Client) -> Iterator[Site]:
            client.memories.clear()
            site = self.site(client, private, names)
            try:
                yield site
            finally:
                site.close()

        post = Post({100 + i: lambda one=one: start(one) for i, one in enumerate(clients)})
        self.end = carrying(Courier(hub, post))
        assert hub.wait() == ()

    def close(self) -> None:
        self.end()
