"""What goes wrong between machines: each fault in a job of three rounds, and what came of it."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Condition, Event, Thread, Timer
from typing import Any
from unittest.mock import patch

import pytest

from fedsynth.errors import ConfigError, FedsynthError, PrivacyError
from fedsynth.federation import keys as papers
from fedsynth.federation.kept import Kept
from fedsynth.federation.keys import load_keys
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.secure.frames import Step
from fedsynth.federation.secure.frames import read as read_parts
from fedsynth.federation.secure.leader import Leader
from fedsynth.federation.wire import (
    MAGIC,
    Frame,
    pack_request,
    read,
    unpack_request,
    unpack_step,
    write,
)
from fedsynth.jobs.joining import load_site, open_site
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.network.world import NAMES, ROUNDS, Died, World, in_thread, nothing, write_keys

SOON = 3.0
"""Seconds of a deadline that somebody misses."""
FAULTS: dict[str, Callable[[World], str]] = {}


def fault(name: str) -> Callable[[Callable[[World], str]], Callable[[World], str]]:
    def add(run: Callable[[World], str]) -> Callable[[World], str]:
        FAULTS[name] = run
        return run

    return add


def step_of(frame: Frame) -> Step | None:
    """Of a secure sum, that a site is asked for: alone, or with the question."""
    body = unpack_step(frame) if frame.kind == "ask" else frame.body
    return read_parts(body)[0].step if body and frame.kind in ("ask", "step") else None


def asks(frame: Frame, round: int) -> bool:
    return frame.kind == "ask" and frame.plain["round"] == round


def died(world: World, *, resume: bool) -> None:
    """A server that dies, or that its disk stops, before its job is finished."""
    with pytest.raises((Died, FedsynthError)):
        world.serve(resume=resume)


def happened(world: World, event: str) -> list[str]:
    """Codes, or kinds, that the server's log has of an event."""
    return [str(e.get("code", e.get("kind", ""))) for e in world.events.seen if e["event"] == event]


@fault("none")
def undisturbed(world: World) -> str:
    world.join(*NAMES)
    world.serve()
    world.wait()
    world.demand_nothing_lost()
    (told,) = [one for one in world.told if one.startswith("bytes to and from all owners")]
    assert told.endswith("(3 rounds)")
    return "finished"


@contextmanager
def impatient(
    world: World, late: str, hold: Callable[..., None], then: Callable[..., object] = nothing
) -> Iterator[None]:
    """A deadline that one site misses in round 1, by what it does when it is asked: it is over as
    soon as that is done (``hold``; ``then`` is done meanwhile), and nobody else is waited for."""
    genuine, held = Condition.wait_for, Event()

    def wait_for(turn: Condition, until: Callable[[], object], timeout: float | None = None) -> Any:
        hub = world.hub

        def over() -> object:
            ours = held.is_set() and hub is not None and turn is hub._turn
            asked = hub._asked if ours and hub is not None else None
            return until() or (asked and asked.round == 1 and asked.frames.keys() == {late})

        genuine(turn, over, timeout)
        return until()

    def before(name: str, frame: Frame) -> None:
        if name == late and asks(frame, 1) and not held.is_set():
            hold()
            held.set()
            assert world.hub is not None
            with world.hub._turn:
                world.hub._turn.notify_all()
            then()

    world.before = before
    with patch.object(Condition, "wait_for", wait_for):
        yield


def missed(world: World) -> None:
    world.demand_nothing_lost()
    assert "ready" in happened(world, "late")


@fault("a network that is partitioned for longer than the deadline")
def partition(world: World) -> str:
    way, after = world.ways["south"], world.after

    def flowing(name: str, frame: Frame, reply: bytes | None) -> bytes | None:
        if name == "north" and asks(frame, 2):
            way.flow()
        return after(name, frame, reply)

    world.after = flowing
    with impatient(world, "south", way.halt):
        world.join(*NAMES)
        world.serve()
        world.wait()
    missed(world)
    return "its round went on without the site, whose answer came late and was let go of"


STILL = 0.3
"""Seconds; `python -m tests.network` waits for 30."""


@fault("a network that stands still for 30 s, within the deadline")
def still(world: World) -> str:
    way, timers = world.ways["south"], list[Timer]()

    def before(name: str, frame: Frame) -> None:
        if name == "south" and asks(frame, 1) and not timers:
            way.halt()
            timers.append(Timer(STILL, way.flow))
            timers[0].start()

    world.before = before
    world.join(*NAMES)
    began = time.monotonic()
    world.serve()
    world.wait()
    assert timers and time.monotonic() - began >= STILL
    world.demand_nothing_lost()
    assert all(world.answered(name) == ROUNDS for name in NAMES) and not happened(world, "late")
    assert len(happened(world, "joined")) == len(NAMES)
    return "the round waited for the site; its stream held"


@fault("a site that is slower than the deadline")
def slow(world: World) -> str:
    asked = Event()

    def after(name: str, frame: Frame, reply: bytes | None) -> bytes | None:
        if name == "north" and asks(frame, 2):
            asked.set()
        return reply

    world.after = after
    with impatient(world, "south", nothing, asked.wait):
        world.join(*NAMES)
        world.serve()
        world.wait()
    missed(world)
    return "as above"


@fault("clocks that are two hours wrong, and one that is set anew meanwhile")
def clocks(world: World) -> str:
    genuine, ahead = time.time, {"south": 7200.0, "west": -7200.0}

    class Wrong(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(now(), tz)

    def now() -> float:
        whose = next((name for name in NAMES if in_thread(name)), "server")
        return genuine() + ahead.get(whose, 0.0)

    def before(name: str, frame: Frame) -> None:
        if asks(frame, 1):
            ahead["server"] = 7200.0

    world.before = before
    with patch("time.time", now), patch.object(papers, "datetime", Wrong):
        world.join(*NAMES)
        world.serve()
        world.wait()
    world.demand_nothing_lost()
    assert not happened(world, "late")
    return "nothing: no decision rests on clocks but certificates'"


@fault("a site that dies before it accepts, after its charge, after its numbers, while it opens")
def site_dies(world: World) -> str:
    left = ["accept", "charge", "masked", "unmask"]
    keep = Kept.keep

    def dies(what: str) -> None:
        if in_thread("south") and left[:1] == [what]:
            del left[0]
            raise Died

    def before(name: str, frame: Frame) -> None:
        if name == "south" and frame.kind == "offer":
            dies("accept")

    def after(name: str, frame: Frame, reply: bytes | None) -> bytes | None:
        if name == "south" and (step := step_of(frame)):
            dies("masked" if step == Step.MASKED and frame.plain["round"] == 1 else "")
            dies("unmask" if step == Step.UNMASK and frame.plain["round"] == 2 else "")
        return reply

    def keeping(*given: object) -> None:
        dies("charge")
        keep(*given)

    world.before, world.after = before, after
    with patch.object(Kept, "keep", keeping):
        world.join(*NAMES)
        world.serve()
        world.wait()
    assert not left
    world.demand_nothing_lost()
    return "it came back each time, gave what it had given, and paid for each round once"


@fault("a server that dies before its charge, after it, among numbers, after the sum, releasing")
def server_dies(world: World) -> str:
    charge, receive, total, counts = Ledger.charge, Leader.receive, Hub.sum, {"masked": 0}
    left = ["before", "after", "masked", "sum", "release"]

    def dies(what: str) -> None:
        if left[:1] == [what]:
            del left[0]
            raise Died

    def charging(ledger: Ledger, event: object) -> None:
        ours = ledger.path is not None and ledger.path.parent == world.out
        if ours:
            dies("before")
        charge(ledger, event)
        if ours:
            dies("after")

    def receiving(leader: Leader, name: str, reply: bytes) -> None:
        receive(leader, name, reply)
        counts["masked"] += leader._step == Step.MASKED
        if counts["masked"] == 2:
            dies("masked")

    def summing(hub: Hub, *given: object) -> object:
        found = total(hub, *given)
        dies("sum")
        return found

    def flushing(path: Path) -> None:
        if world.out in path.parents and world.out.joinpath("ledger.jsonl").exists():
            rounds = len(Ledger.read(world.out / "ledger.jsonl").events)
            if rounds == len(ROUNDS) and path.suffix == ".csv":
                dies("release")

    world.flushing = flushing
    world.join(*NAMES)
    with (
        patch.object(Ledger, "charge", charging),
        patch.object(Leader, "receive", receiving),
        patch.object(Hub, "sum", summing),
    ):
        for attempt in range(len(left)):
            died(world, resume=attempt > 0)
        assert not left
        world.serve(resume=True)
    world.wait()
    world.demand_nothing_lost()
    return "resumed each time; sites came back by themselves; each round was opened once"


class Full:
    """Disks that take nothing more in a place, until there is room again."""

    def __init__(self) -> None:
        self.places: list[tuple[str, Callable[[], bool]]] = []
        self.met: list[str] = []

    def __call__(self, path: Path) -> None:
        for place, when in self.places:
            if place in str(path) and when():
                self.met.append(place)
                self.places.remove((place, when))
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@fault("a site's disk that is full at its sums' journal, at an answer, at its account")
def full_site(world: World) -> str:
    disk, now = Full(), [-1]

    def before(name: str, frame: Frame) -> None:
        if name == "south" and frame.kind in ("ask", "step"):
            now[0] = frame.plain["round"] if frame.kind == "ask" else 10 + frame.plain["round"]

    disk.places = [
        (place, lambda at=at: in_thread("south") and now[0] == at)
        for place, at in (("/party", 10), ("/answers", 1), ("/south.jsonl", 2))
    ]
    world.before, world.flushing = before, disk
    world.join(*NAMES)
    world.serve()
    world.wait()
    assert disk.met == ["/party", "/answers", "/south.jsonl"]
    # What an account could not write down for sure stays charged: it may be on the disk.
    lost = {1} | (set(world.charged("south")) - world.answered("south"))
    world.demand_nothing_lost({"south": lost})
    assert happened(world, "refuse").count("file") == 1
    assert sorted(happened(world, "fail") + happened(world, "refuse")) == ["file", "file", "ledger"]
    return "codes `file`, `file` and `ledger`; nothing left it; rounds went on without it"


@fault("a server's disk that is full at its ledger, at its checkpoint, at the release")
def full_server(world: World) -> str:
    disk, places = Full(), ("/out/ledger.jsonl", "/out/checkpoint/state", "/out/rows.csv")
    world.flushing = disk
    world.join(*NAMES)
    for attempt, place in enumerate(places):
        # The first line of a ledger is written before anybody is asked.
        disk.places = [(place, lambda a=attempt: a > 0 or bool(rounds(world)))]
        with pytest.raises(FedsynthError, match="No space left on device") as caught:
            world.serve(resume=attempt > 0)
        world.told.append(str(caught.value))
    world.serve(resume=True)
    world.wait()
    assert tuple(disk.met) == places
    world.demand_nothing_lost()
    return "it stopped before it asked or released, and was resumed when there was room"


def small_disk(world: World) -> Path:
    """A file system of its own, of 128 KiB: a file there that may fill it up."""
    folder = world.folder / "disk"
    folder.mkdir()
    given = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(given, capture_output=True).returncode:
        pytest.skip("file systems are mounted by the superuser alone, and not everywhere")
    world.closing.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
    return folder / "full"


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@fault("a site's disk that is really full for two rounds")
def filled_site(world: World) -> str:
    filler = small_disk(world)
    world.homes["south"] = "disk"
    world.write_site("south")

    def before(name: str, frame: Frame) -> None:
        # What is left of a page that a file has still takes an entry or two.
        if name == "south" and asks(frame, 0):
            fill(filler)
        elif name == "south" and asks(frame, 2):
            filler.unlink()

    world.before = before
    world.join(*NAMES)
    world.serve()
    world.wait()
    world.demand_nothing_lost({"south": set(world.charged("south")) - world.answered("south")})
    codes = happened(world, "fail") + happened(world, "refuse")
    assert codes and set(codes) <= {"file", "ledger"} and 2 in world.answered("south")
    return f"code `{codes[0]}`; nothing left it; rounds went on without it, and it was in the third"


@fault("a server's disk that is really full, before a job and within it")
def filled_server(world: World) -> str:
    filler = small_disk(world)
    world.out = filler.parent / "out"

    def stops() -> None:
        with pytest.raises(FedsynthError, match="No space left on device") as caught:
            world.serve()
        world.told.append(str(caught.value))
        filler.unlink()

    def before(name: str, frame: Frame) -> None:
        if asks(frame, 1):
            fill(filler)

    world.join(*NAMES)
    fill(filler)
    stops()
    assert not any(map(world.charged, NAMES))
    shutil.rmtree(world.out, ignore_errors=True)
    world.before = before
    stops()
    world.before = nothing
    world.serve(resume=True)
    world.wait()
    world.demand_nothing_lost()
    return "it stopped, with nothing asked or released that it had not written, and was resumed"


def rounds(world: World) -> Sequence[object]:
    with suppress(FedsynthError):
        return Ledger.read(world.out / "ledger.jsonl").events
    return ()


@fault("all sites gone until the deadline")
def all_gone(world: World) -> str:
    def before(name: str, frame: Frame) -> None:
        assert world.hub is not None
        if step_of(frame) == Step.UNMASK and frame.plain["round"] == 0:
            world.hub._deadline = SOON
        if asks(frame, 1):
            world.lead_to(None)

    world.before = before
    world.join(*NAMES)
    with pytest.raises(FedsynthError) as caught:
        world.serve()
    assert caught.value.exit_code == 5
    world.told.append(str(caught.value))
    world.before = nothing
    world.serve(resume=True)
    world.wait()
    # Sites that were asked when the way broke off answer the same again.
    world.demand_nothing_lost()
    words = str(caught.value).partition(" (")[0]
    return f"exit 5 ({words}); resumed when they were back"


@fault("an account with too little for the whole plan")
def small_account(world: World) -> str:
    world.write_site("south", account={"path": "accounts/south.jsonl", "epsilon": 1.0})
    world.join(*NAMES)
    with pytest.raises(PrivacyError, match="south has too little left") as caught:
        world.serve()
    world.leave(*NAMES)
    assert caught.value.exit_code == 4 and not any(map(world.charged, NAMES))
    world.demand_no_canary()
    return "the offer was refused, and the job never began"


GARBAGE = {
    0: pickle.dumps({"a": 1}),
    1: MAGIC + (2 * 10**5).to_bytes(4, "big") + b"[" * 10**5 + b"]" * 10**5,
}


@fault("a site that sends a pickle, and lists within lists")
def garbage(world: World) -> str:
    def after(name: str, frame: Frame, reply: bytes | None) -> bytes | None:
        if name == "south" and frame.kind == "ask":
            return GARBAGE.get(frame.plain["round"], reply)
        return reply

    world.after = after
    world.join(*NAMES)
    world.serve()
    world.wait()
    world.demand_nothing_lost({"south": {0, 1}})
    codes = happened(world, "bad")
    assert codes == ["version", "nested"]
    return f"its stream was closed ({', '.join(codes)}), it came back, and rounds went on without"


@fault("frames again, of an earlier round, of another job")
def replays(world: World) -> str:
    sent: list[bytes] = []

    def before(name: str, frame: Frame) -> None:
        hub = world.hub
        if name == "north" and asks(frame, 2) and hub is not None and not sent:
            # What it has answered of this round, if it was the faster, is not late.
            mine = [
                said.reply
                for said in world.log
                if said.name == "south" and said.reply and read(said.reply).plain.get("round") != 2
            ]
            other = [
                write(replace(frame, plain={**frame.plain, "job": "another"}))
                for frame in map(read, mine)
                if "job" in frame.plain and frame.kind != "accept"
            ]
            sent.extend([*mine, *mine, *other])
            for body in sent:
                hub.take("south", hub._links["south"], body)

    world.before = before
    world.join(*NAMES)
    world.serve()
    world.wait()
    world.demand_nothing_lost()
    assert world.hub is not None and len(happened(world, "late")) == len(sent) > 10
    return f"{len(sent)} of {len(sent)} let go of, and counted"


@fault("papers: expired, of another authority, of a stranger, a server's, none")
def wrong_papers(world: World) -> str:
    """South comes with each in turn, and then with its own."""

    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=60)

    def past() -> Any:
        return patch.object(papers, "datetime", Past)

    wrong = world.folder / "wrong"
    with past():
        write_keys(wrong / "expired", ["south"], ca=world.authority)
    write_keys(wrong / "other", ["south"])
    shutil.copytree(world.folder / "keys/stranger", wrong / "stranger")
    cases = {
        "expired": "wrong/expired/south",
        "unknown": "wrong/other/south",
        "stranger": "wrong/stranger",
        "server": "keys/server",
        "none": None,
    }
    said: dict[str, str] = {}

    def come() -> None:
        world.join("north", "west")
        while len([one for one in world.told if "is connected" in one]) < 2:
            time.sleep(0.01)
        for case, keys in cases.items():
            given = {"keys": keys} if keys else {}
            name = {"stranger": "stranger", "server": "localhost"}.get(case, "south")
            rules = {"trust": "central", "job_epsilon": 1.0}
            world.write_site("south", **{**given, "name": name, "rules": rules, "identity": None})
            count = len(world.told)
            with past() if case == "expired" else nullcontext():
                world.join("south", insecure=keys is None)
                while len(world.told) == count:
                    time.sleep(0.01)
                world.leave("south")
            said[case] = world.told[count]
        world.write_site("south")
        world.join("south")

    coming = Thread(target=come)
    serving = world.lead_to

    def lead_to(target: int | None) -> None:
        serving(target)
        if target is not None:
            coming.start()

    world.lead_to = lead_to  # type: ignore[method-assign]
    world.serve()
    coming.join()
    world.wait()
    world.demand_nothing_lost()
    assert "certificate" in said["unknown"] and "not on the roster" in said["stranger"], said
    assert all(one.startswith("localhost:") for one in said.values()), said
    world.write_site("south", keys="wrong/expired/south")
    with pytest.raises(ConfigError, match="is good from"):
        load_keys(wrong / "expired/south")
    return "each told in a sentence; the others did not notice"


@fault("a server that asks what it may not")
def wrong_asks(world: World) -> str:
    """Of a site whose account is empty: offers and questions of a real job, each with one lie."""
    world.join(*NAMES)
    world.serve()
    world.wait()
    world.demand_nothing_lost()
    frames = [read(said.got) for said in world.log if said.name == "north"]
    offer = next(frame for frame in frames if frame.kind == "offer")
    ask = unpack_request(next(frame for frame in frames if asks(frame, 0)))
    last = unpack_request(next(frame for frame in frames if asks(frame, 2)))
    world.write_site("north", account={"path": "fresh/north.jsonl", "epsilon": 8.0})
    got: dict[str, str] = {}

    genuine = replace(Job.from_dict(offer.plain["job"]), job="lies")

    def lie(job: Job = genuine, **plain: object) -> bytes:
        return write(Frame("offer", {**offer.plain, "job": job.to_dict(), **plain}))

    def under(**changes: Any) -> Job:
        plan = (replace(one, terms=replace(one.terms, **changes)) for one in genuine.plan)
        return replace(genuine, plan=tuple(plan))

    plainly = {"trust": "central", "survivors": 1, "curious": 0}
    offers = {
        "trust: central": lie(
            replace(under(**plainly), budget=replace(genuine.budget, trust="central"), secure="")
        ),
        "no secure sums": lie(replace(genuine, secure="")),
        "no noise": lie(under(noise_multiplier=0.0)),
        "1,000 survivors": lie(under(survivors=1000)),
        "a threshold of 1": lie(under(survivors=1)),
        "a cohort of 2": lie(replace(genuine, clients=2), roster=["north", "south"]),
        "an owner that is made up": lie(replace(genuine, clients=4), roster=[*NAMES, "east"]),
        "more epsilon": lie(replace(genuine, budget=replace(genuine.budget, epsilon=6.0))),
    }
    noisy = ask.terms
    questions = {
        "no noise": replace(ask, terms=replace(noisy, noise_multiplier=0.0)),
        "less noise": replace(ask, terms=replace(noisy, noise_multiplier=noisy.scale / 100)),
        "trust: central": replace(ask, terms=replace(noisy, trust="central", survivors=1)),
        "1,000 survivors": replace(ask, terms=replace(noisy, survivors=1000)),
        "an unknown task": replace(ask, task="os.system"),
        "10^9 numbers": replace(ask, dim=10**9),
    }
    with open_site(load_site(world.folder / "north.yaml"), world.folder, nothing) as site:
        for words, body in offers.items():
            reply = read(site.receive(body) or b"")
            got[f"offers {words}"] = f"{reply.kind} {reply.plain.get('code')}"
        assert read(site.receive(write(offer)) or b"").kind == "accept"
        for words, request in questions.items():
            reply = read(site.receive(pack_request(request)) or b"")
            got[f"asks for {words}"] = f"{reply.kind} {reply.plain.get('code')}"
        assert not site._client.ledger.events
        # And in a job that goes on: of one round twice, of more than was planned.
        for said in [frame for frame in frames if frame.kind == "post"]:
            site.receive(write(said))
        assert read(site.receive(pack_request(ask)) or b"").kind == "ready"
        again = replace(ask, settings={**ask.settings, "other": 1})
        beyond = [replace(last, round=2 + more) for more in range(20)]
        replies = [read(site.receive(pack_request(one)) or b"") for one in [again, *beyond]]
        got["asks otherwise in a round"] = f"{replies[0].kind} {replies[0].plain['code']}"
        got["asks more than planned"] = f"{replies[-1].kind} {replies[-1].plain['code']}"
        charged = [event.round for event in site._client.ledger.events]
        assert charged == [0, *range(2, 2 + len(charged) - 1)] and len(charged) <= len(ROUNDS)
    assert all(reply.startswith(("refuse", "fail")) for reply in got.values()), got
    codes = {words: reply.split()[1] for words, reply in got.items()}
    assert "damaged" not in codes.values() and codes["offers trust: central"] == "trust"
    world.told.append(str(got))
    world.demand_no_canary()
    return "; ".join(f"{words}: `{code}`" for words, code in codes.items())
