"""A server and three sites over mutual TLS on this machine, all that they say to each other, and
what goes wrong when it is told to.

Sites are threads that run `fedsynth join`'s own function, the server is `fedsynth serve`'s: files,
accounts, streams and commands are the real ones. Kills of processes are in
`tests/federation/runtimes/test_processes.py`.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from typing import Any
from unittest.mock import patch

from fedsynth.errors import FedsynthError
from fedsynth.federation import keys as papers
from fedsynth.federation.runtimes import stream
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.wire import Frame, FrameError, read
from fedsynth.jobs.config import load_config
from fedsynth.jobs.joining import join
from fedsynth.jobs.serving import by_streams, go_on, serve
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import make_key
from fedsynth.privacy.verify.verification import verify
from fedsynth.yaml_files import write_yaml
from tests.federation.runtimes.processes import Way
from tests.small_jobs import SCHEMA, table

NAMES = ("north", "south", "west")
ROUNDS = {0, 1, 2}
CANARY = "Zeppelin-4711"
EPSILON = 5.0
AGAIN = 0.05
"""Seconds after which a site whose stream broke off dials again, at first."""


class Died(BaseException):
    """What stops a server, or a site, where it stands."""


@dataclass
class Said:
    """A frame that a site got, and what left it then."""

    name: str
    got: bytes
    reply: bytes | None

    @property
    def given(self) -> Frame | None:
        with suppress(FrameError):
            return None if self.reply is None else read(self.reply)
        return None


class Events(logging.Handler):
    """What a server's log says."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Mapping[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, dict):
            self.seen.append(record.args)


def nothing(*_: object) -> None:
    """For hooks."""


@dataclass
class World:
    """Three owners and a server in a folder.

    Attributes:
        log: all frames, as they came and left; nothing of fedsynth writes it.
        told: what anybody printed.
        ways: by which sites reach the server.
        before: called with a site's name and a frame that it gets.
        after: called with a site's name, a frame and its reply; brings what leaves in its place.
        flushing: called with a file that is to be on disk now; what it raises, the disk does.
        errors: that ended sites.
        closing: what is undone at the end.
        homes: folders of accounts that lie elsewhere than the others, by their owners.
        events: of the server's log.
    """

    folder: Path
    log: list[Said] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    ways: dict[str, Way] = field(default_factory=dict)
    before: Callable[[str, Frame], None] = nothing
    after: Callable[[str, Frame, bytes | None], bytes | None] = lambda *given: given[2]
    flushing: Callable[[Path], None] = nothing
    errors: dict[str, FedsynthError] = field(default_factory=dict)
    events: Events = field(default_factory=Events)
    hub: Hub | None = None
    closing: ExitStack = field(default_factory=ExitStack)
    homes: dict[str, str] = field(default_factory=dict)
    authority: Any = None
    out: Path = field(init=False)
    _threads: dict[str, tuple[Thread, Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.out = self.folder / "out"

    def account(self, name: str) -> Path:
        return self.folder / self.homes.get(name, "accounts") / f"{name}.jsonl"

    def write_files(self) -> None:
        self.authority = write_keys(self.folder / "keys", [*NAMES, "stranger"])
        columns = [*SCHEMA["columns"], {"kind": "identifier", "name": "note"}]
        write_yaml({**SCHEMA, "columns": columns}, self.folder / "schema.yaml")
        job = {
            "schema": "schema.yaml",
            "privacy": {"epsilon": EPSILON, "trust": "distributed", "curious": 0},
            "method": "mst",
            "settings": {"iterations": 5},
            "federation": {
                "runtime": "stream",
                "owners": list(NAMES),
                "listen": "localhost:0",
                "secure": True,
                # Of three one may drop out.
                "survivors": 0.6,
            },
            "sample": {"rows": 20},
        }
        write_yaml(job, self.folder / "job.yaml")
        for seed, name in enumerate(NAMES):
            make_key(self.folder / name)
            table(90, seed).assign(note=CANARY).to_csv(self.folder / f"{name}.csv", index=False)
            self.write_site(name)

    def write_site(self, name: str, /, **changes: object) -> None:
        content = {
            "name": name,
            "server": f"localhost:{self.ways[name].port}",
            "keys": f"keys/{name}",
            "data": {"path": f"{name}.csv"},
            "schema": "schema.yaml",
            "account": {"path": str(self.account(name)), "epsilon": 8.0},
            "identity": f"{name}.key",
            "rules": {
                "trust": "distributed",
                "job_epsilon": EPSILON,
                "methods": ["mst"],
                "cohort": 3,
                "curious": 0,
                "peers": {other: f"{other}.pub" for other in NAMES if other != name},
            },
            **changes,
        }
        write_yaml(content, self.folder / f"{name}.yaml")

    def join(self, *names: str, insecure: bool = False) -> None:
        """Have sites dial, each in a thread of its own; one that dies starts again."""
        for name in names:
            over = Event()
            given = (name, over, insecure)
            thread = Thread(target=self._join, args=given, name=name, daemon=True)
            self._threads[name] = thread, over
            thread.start()

    def _join(self, name: str, over: Event, insecure: bool) -> None:
        path, tell = self.folder / f"{name}.yaml", self.told.append
        while True:
            try:
                join(path, tell, tell, over=over, insecure=insecure)
            except Died:
                continue
            except FedsynthError as error:
                self.errors[name] = error
                tell(str(error))
            return

    def leave(self, *names: str) -> None:
        """Stop sites, and wait until their files are let go of."""
        for name in names:
            thread, over = self._threads.pop(name)
            over.set()
            thread.join()

    def wait(self) -> None:
        """Until all sites have left by themselves."""
        for thread, _ in self._threads.values():
            thread.join()
        self._threads.clear()

    def lead_to(self, target: int | None) -> None:
        for way in self.ways.values():
            way.lead_to(target)

    def serve(self, *, resume: bool = False) -> None:
        """Run the job, or go on with it, at the end of the ways that sites dial."""

        def tell(sentence: str) -> None:
            self.told.append(sentence)
            if sentence.startswith("listening at"):
                self.lead_to(int(sentence.split()[2].rpartition(":")[2]))

        carry = by_streams(self.folder / "keys/server", tell)
        if resume:
            go_on(self.out, carry, nothing, self.told.append)
        else:
            job = load_config(self.folder / "job.yaml")
            serve(*job, self.out, carry, nothing, self.told.append)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Writes down what sites get and say, and has hooks called."""
        genuine, flush, greet, turn = Site.receive, os.fsync, Hub.agree, Lock()

        def receive(site: Site, body: bytes) -> bytes | None:
            frame = read(body)
            self.before(site.name, frame)
            reply = self.after(site.name, frame, genuine(site, body))
            with turn:
                self.log.append(Said(site.name, body, reply))
            return reply

        def fsync(descriptor: int) -> None:
            self.flushing(Path(f"/proc/self/fd/{descriptor}").readlink())
            flush(descriptor)

        def agree(hub: Hub, *given: Any, **named: Any) -> None:
            self.hub = hub
            greet(hub, *given, **named)

        log = logging.getLogger("fedsynth.hub")
        level = log.level
        with ExitStack() as closing:
            log.addHandler(self.events)
            log.setLevel(logging.INFO)
            closing.callback(log.setLevel, level)
            closing.callback(log.removeHandler, self.events)
            closing.enter_context(patch.object(Site, "receive", receive))
            closing.enter_context(patch.object(Hub, "agree", agree))
            closing.enter_context(patch("os.fsync", fsync))
            closing.enter_context(patch.object(stream, "_BACK_OFF", AGAIN))
            closing.callback(lambda: self.leave(*list(self._threads)))
            yield

    # What holds after every fault.

    def answered(self, name: str) -> set[int]:
        """Rounds of which the log says that a site said that it had something to give."""
        mine = (said.given for said in self.log if said.name == name)
        return {one.plain["round"] for one in mine if one is not None and one.kind == "ready"}

    def charged(self, name: str) -> list[int]:
        path = self.account(name)
        while path.exists() and not path.read_bytes().endswith(b"\n"):
            time.sleep(0.01)  # its owner is at it
        return [event.round for event in Ledger.read(path).events] if path.exists() else []

    def costs(self) -> tuple[float, float, float]:
        """Epsilon: that the job accounts for, of the server's ledger, and the most of an owner."""
        ledger = Ledger.read(self.out / "ledger.jsonl")
        delta = ledger.job.budget.resolved_delta
        paid = [spent(Ledger.read(self.account(name)).counts, delta).epsilon for name in NAMES]
        return ledger.job.budget.epsilon, spent(ledger.counts, delta).epsilon, max(paid)

    def demand_nothing_lost(self, lost: Mapping[str, set[int]] | None = None) -> None:
        """A release that verifies; accounts that are what the log of frames says; and no canary
        anywhere but with its owner.

        Args:
            lost: rounds that an owner paid for, and could not answer, or whose answer was no frame.
        """
        for name in NAMES:
            rounds = Counter(self.charged(name))
            assert not rounds or max(rounds.values()) == 1, (name, rounds)
            told = self.answered(name) | (lost or {}).get(name, set())
            assert told == set(rounds), (name, told, rounds)
        asked = [event.round for event in Ledger.read(self.out / "ledger.jsonl").events]
        assert asked == sorted(ROUNDS), asked
        accounted, ledger, owners = self.costs()
        assert owners <= ledger + 1e-9 <= accounted + 2e-9, self.costs()
        assert [one.name for one in verify(self.out) if not one.passed] == []
        for place in {self.account(name).parent for name in NAMES}:
            own = {self.account(name) for name in NAMES if self.account(name).parent == place}
            assert set(place.iterdir()) == own
        self.demand_no_canary()

    def demand_no_canary(self) -> None:
        canary = CANARY.encode()
        for said in self.log:
            assert canary not in said.got + (said.reply or b"")
        assert not [one for one in [*self.told, *map(str, self.events.seen)] if CANARY in one]
        for path in self.folder.rglob("*"):
            own = path.suffix == ".csv" and path.parent == self.folder
            assert not path.is_file() or own or canary not in path.read_bytes(), path


def write_keys(folder: Path, names: list[str], *, ca: tuple[Any, Any] | None = None) -> Any:
    """Keys of a server and of sites, by an authority that stays; which is brought."""
    secret = papers._make_key() if ca is None else ca[0]
    subject = papers._subject("consortium")
    shown = papers._sign(subject, secret, None, secret, authority=True) if ca is None else ca[1]
    for name in names if ca else ["server", *names]:
        own = papers._make_key()
        host = "localhost" if name == "server" else None
        signed = papers._sign(papers._subject(host or name), own, shown, secret, host=host)
        (folder / name).mkdir(parents=True)
        papers._write_key(folder / name / papers.KEY, own)
        (folder / name / papers.CERTIFICATE).write_bytes(papers._pem(signed))
        (folder / name / papers.AUTHORITY).write_bytes(papers._pem(shown))
    return secret, shown


def in_thread(name: str) -> bool:
    return current_thread().name == name


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Files written, and nobody started."""
    made = World(folder)
    with made.closing as closing:
        for name in NAMES:
            made.ways[name] = Way()
            closing.callback(made.ways[name].close)
        made.write_files()
        closing.enter_context(made.watched())
        yield made
