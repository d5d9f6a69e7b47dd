"""Sites around a hub: carried by nothing at all, or by gRPC on this machine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

from fedsynth.federation.client.client import Client
from fedsynth.federation.keys import Keys
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.rules import Rules
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.runtimes.stream import Listener, attend
from fedsynth.federation.secure.masks import identity_of
from fedsynth.federation.secure.rules import Rules as Sums
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger

ANY = Budget(math.inf, delta=0.5, unit="record", trust="central")


class Unplanned(Rules):
    """Rules of owners of jobs without a plan, which would say how many are to answer."""

    def sums(self, job: Job) -> Sums:
        return sums_of(job.clients)


OPEN = Unplanned(budget=ANY, insecure=True)


def identity(name: str) -> bytes:
    """An owner's secret one."""
    return hashlib.sha256(name.encode()).digest()


def pinned(name: str, names: Iterable[str], rules: Rules = OPEN) -> Rules:
    """The same rules with all others' keys."""
    peers = {other: identity_of(identity(other)) for other in names if other != name}
    return replace(rules, peers=peers)


def sums_of(count: int) -> Sums:
    """Of so many owners all but one are enough."""
    return Sums(count, max(2, count - 1), 0)


class Offering(Hub):
    """A hub that makes up a job where none is told: one of secure sums."""

    def open(self, job, participations, offered=None):
        known = Job(
            budget=replace(ANY, trust="distributed"),
            job=job,
            insecure=True,
            clients=len(self.clients),
            secure="apart",
        )
        super().open(job, participations, offered or known)


class Direct:
    """A link whose other end is in this process, and answers before anybody waits."""

    def __init__(self, hub: Hub, site: Site) -> None:
        self.hub, self.site, self.open = hub, site, True
        self.seen: list[bytes] = []

    def join(self) -> str | None:
        return self.hub.greet(self.site.name, self.site.hello(), self)

    def send(self, body: bytes) -> None:
        reply = self.site.receive(body)
        if reply is not None and self.open:
            self.hub.take(self.site.name, self, reply)

    def close(self) -> None:
        self.open = False


Carry = Callable[[Hub, Sequence[Site]], None]


def carry_directly(hub: Hub, sites: Sequence[Site]) -> None:
    for site in sites:
        assert Direct(hub, site).join() is None


class Machines:
    """Builds runtimes to sites that outlive them, as owners' machines do.

    Args:
        folder: of the machines' disks.
    """

    def __init__(self, folder: Path, carry: Carry = carry_directly) -> None:
        self.folder, self.carry = folder, carry
        self.accounts: dict[Path, Ledger] = {}
        self.sites: list[Site] = []

    def __call__(self, clients: Sequence[Client], private: Path | None = None) -> Hub:
        self.close()
        for site in self.sites:
            site.close()
        names = [client.name for client in clients]
        self.sites = [self.site(client, private, names) for client in clients]
        hub = Offering([client.name for client in clients])
        hub.agree(None, None, sums_of(len(clients)))
        self.carry(hub, self.sites)
        return hub

    def close(self) -> None:
        """Let go of what carries them."""

    def site(self, client: Client, private: Path | None, names: Sequence[str]) -> Site:
        if client.ledger is None:
            kind = "memory" if private is None else "disk"
            path = self.folder / kind / f"{client.name}.jsonl"
            if path in self.accounts:
                self.accounts[path].close()
            client.ledger = self.accounts[path] = Ledger.of_owner(path, ANY)
        folder, rules = (private or self.folder) / client.name, pinned(client.name, names)
        return Site(client, rules, folder, identity=identity(client.name))


class Loopback(Machines):
    """The same over gRPC on this machine, each site in a thread of its own."""

    def __init__(self, folder: Path, keys: dict[str, Keys] | None = None) -> None:
        super().__init__(folder, self._dial)
        self._keys, self._closing = keys, ExitStack()

    def _dial(self, hub: Hub, sites: Sequence[Site]) -> None:
        self.close()
        over = Event()
        self.listener = Listener(hub, "localhost:0", self._keys and self._keys["server"])
        threads = [Thread(target=self._attend, args=(site, over)) for site in sites]
        for thread in threads:
            thread.start()
            self._closing.callback(thread.join)
        self._closing.callback(over.set)
        self._closing.callback(self.listener.close)
        assert hub.wait() == ()

    def _attend(self, site: Site, over: Event) -> None:
        keys = self._keys and self._keys[site.name]
        attend(site, self.listener.address, keys, over=over, stay=True)

    def close(self) -> None:
        self._closing.close()
