"""A job that is killed, resumed, verified, held against a log of its own, and resumed again.

The log is kept outside the product: every answer that leaves a client is in it before the server
has it, so what a ledger does not say shows.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedsynth.cli import app as cli
from fedsynth.federation.request import Summed
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.trail.ledger import Ledger, has_begun
from fedsynth.privacy.verify.verification import verify
from fedsynth.registry import ENTRIES, SYNTHESIZERS
from tests.crash.kills import Killer, Point
from tests.methods.contract import QUICK
from tests.small_jobs import table, write_job

FILES = {
    "certificate.html",
    "certificate.json",
    "config.yaml",
    "ledger.jsonl",
    "model.json",
    "model.safetensors",
    "rows.csv",
    "schema.yaml",
}
ACCOUNTS = {"folder": "accounts", "epsilon": 20.0, "delta": 1e-4}
VOID = {"fusion"}
"""Methods without privacy, which owners with accounts refuse."""
ALONE = {"fusion", "fusion-gan"}
"""Methods whose clients send messages of their own."""
_SETTINGS = {
    **{name: dict(QUICK.get(name, {})) for name in ENTRIES},
    "fedvae": {**QUICK["fedvae"], "rounds": 4, "encoder": "private"},
    "private-fusion": {},
}


def write(folder: Path, method: str, **changes: Any) -> Path:
    """A small job of a method."""
    trust = {"trust": "local"} if method in ALONE else {}
    privacy: Any = {"epsilon": 5.0, "delta": 1e-4, **trust}
    settings = {k: list(v) if isinstance(v, tuple) else v for k, v in _SETTINGS[method].items()}
    job: dict[str, Any] = {
        "method": method,
        "settings": settings or None,
        "privacy": "none" if method in VOID else privacy,
        "federation": None
        if method in VOID
        else {"ledgers": ACCOUNTS, "secure": method not in ALONE},
        "holdout": 0,
        "sample": {"rows": 3} if method in SYNTHESIZERS else None,
    }
    return write_job(folder, table(60), **{**job, **changes})


def _files_of(method: str) -> set[str]:
    return FILES if method in SYNTHESIZERS else FILES - {"rows.csv"}


@dataclass
class Trial:
    """What became of a job that was killed.

    Attributes:
        outcome: "ok"; "dead end", where no release came of it; "lost", where what is promised of
            a release or a ledger does not hold.
    """

    method: str
    point: Point | None
    outcome: str = "ok"
    codes: list[int] = field(default_factory=list)
    said: str = ""
    faults: list[str] = field(default_factory=list)


def fork(work: Callable[[], int], out: Path) -> int:
    """Begin a child process that does some work; its id."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        said = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(child: int) -> int:
    """Its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_cli(*arguments: object) -> int:
    return cli.run([str(argument) for argument in arguments])


class Place:
    """Folders of one trial: the job's, its release's, owners' accounts, and what is told of it."""

    def __init__(self, base: Path, method: str) -> None:
        shutil.rmtree(base, ignore_errors=True)
        self.method, self.base = method, base
        self.inside = base / "inside"
        self.job = write(self.inside, method)
        self.folder = self.inside / "r"
        self.out, self.answers, self.points = base / "out", base / "answers", base / "points"

    @property
    def resume(self) -> tuple[object, ...]:
        """The arguments that go on with the job."""
        return "run", "--resume", self.folder, "--quiet"

    def start(self, at: int = 0, told: Path | None = None, *, again: bool = False) -> int:
        """The job, or the rest of it, in a child process that is killed at a point; its id."""
        begin = ("run", self.job, "--out", self.folder, "--quiet")

        def work() -> int:
            killer = Killer(self.inside, at, told)
            log_answers(self.answers, killer)
            code = run_cli(*(self.resume if again else begin))
            killer.reach("end", "")
            return code

        return fork(work, self.out)

    def call(self, *arguments: object) -> tuple[int, str]:
        """A command in a child process: its exit code and what it said."""

        def work() -> int:
            log_answers(self.answers)
            return run_cli(*arguments)

        code = wait(fork(work, self.out))
        return code, self.out.read_text()

    def look(self) -> list[str]:
        """What is wrong with the release, its ledger and the owners' accounts."""

        def work() -> int:
            return self._told(find_faults(self))

        wait(fork(work, self.out))
        found: list[str] = json.loads(self.out.read_text().splitlines()[-1])
        return found

    @staticmethod
    def _told(found: list[str]) -> int:
        print(json.dumps(found))
        return 0


def log_answers(path: Path, killer: Killer | None = None) -> None:
    """Has everything that leaves the clients together leave a line first."""

    def logged(real: Any) -> Any:
        def asked(self: Any, request: Any, cohort: Any) -> Any:
            given = real(self, request, cohort)
            incidents = given.incidents if isinstance(given, Summed) else given[1]
            values = [given.total] if isinstance(given, Summed) else [a.values for a in given[0]]
            line = {
                "clients": sorted(set(cohort) - {one.client for one in incidents}),
                "job": request.job,
                "round": request.round,
                "task": request.task,
                "steps": request.steps or 1,
                "values": hashlib.sha256(b"".join(v.tobytes() for v in values)).hexdigest(),
            }
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, (json.dumps(line) + "\n").encode())
            os.close(descriptor)
            if killer is not None:
                killer.reach("answer", request.task)
            return given

        return asked

    for name in ("sum", "collect"):
        setattr(LocalRuntime, name, logged(getattr(LocalRuntime, name)))
    # Few rounds, and yet some between checkpoints.
    keywords: Any = Synthesizer.fit.__kwdefaults__
    keywords["checkpoint_every"] = 2


def read_answers(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def find_faults(place: Place, *, finished: bool = True) -> list[str]:
    """What does not hold of a job's files, in words; of one that is not finished, of its ledger."""
    found, folder = [], place.folder
    answers = read_answers(place.answers)
    if finished:
        allowed = {"not void"} if place.method in VOID else set()
        checks = verify(folder)
        found += [f"{c.name}: {c.found}" for c in checks if not (c.passed or c.name in allowed)]
        names = {path.name for path in folder.iterdir()}
        found += [f"left: {name}" for name in sorted(names ^ _files_of(place.method))]
    elif not has_begun(folder / "ledger.jsonl"):
        return ["answers without a ledger"] if answers else []
    ledger = read_whole(folder / "ledger.jsonl")
    rounds = {event.round: event for event in ledger.events}
    if list(rounds) != list(range(len(ledger.events))):
        found.append(f"rounds {list(rounds)}")
    if place.method not in VOID and ledger.spent().epsilon > ledger.job.budget.epsilon:
        found.append("more was spent than the budget")
    given: dict[int, dict[str, Any]] = {}
    for one in answers:
        event = rounds.get(one["round"])
        if event is None or (event.label, event.steps) != (one["task"], one["steps"]):
            found.append(f"round {one['round']} was answered, and the ledger does not have it")
        if given.setdefault(one["round"], one) != one:
            found.append(f"round {one['round']} was answered twice, and not alike")
    if place.method not in VOID:
        found += _of_accounts(place.inside / "accounts", given.values(), finished=finished)
    return found


def _of_accounts(
    folder: Path, answers: Iterable[dict[str, Any]], *, finished: bool
) -> Iterator[str]:
    if not folder.exists():
        yield from ["answers without accounts"] * bool(answers)
        return
    files = {path.stem: path for path in folder.iterdir() if path.suffix == ".jsonl"}
    if finished:
        yield from (f"left: {p.name}" for p in folder.iterdir() if p not in files.values())
    written = {
        name: {(event.job, event.round) for event in read_whole(path).events}
        for name, path in files.items()
        if has_begun(path)
    }
    for one in answers:
        for client in one["clients"]:
            if (one["job"], one["round"]) not in written.get(client, ()):
                yield f"{client} answered round {one['round']} without writing it down"


def read_whole(path: Path) -> Ledger:
    """A ledger up to its last whole line."""
    body = path.read_bytes()
    return Ledger._replay(body[: body.rfind(b"\n") + 1], path, None)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def follow(place: Place, point: Point | None, code: int) -> Trial:
    """Go on with a job that was killed, as its user would."""
    trial = Trial(place.method, point, codes=[code])
    asked = bool(read_answers(place.answers))
    code, said = place.call(*place.resume)
    if code == 2 and "start it anew" in said and not asked:
        trial.codes.append(code)
        code, said = place.call("run", place.job, "--out", place.folder, "--quiet")
    trial.codes.append(code)
    if code != 0:
        trial.outcome, trial.said = "dead end", said.strip().splitlines()[-1]
        trial.faults = find_faults_apart(place)
    else:
        trial.faults = place.look()
        before = contents(place.inside)
        code, said = place.call(*place.resume)
        trial.codes.append(code)
        if code != 0 or contents(place.inside) != before:
            trial.faults.append(f"resumed again: {code}, {said.strip()[-300:]}")
    if trial.faults:
        trial.outcome = "lost"
    return trial


def find_faults_apart(place: Place) -> list[str]:
    def work() -> int:
        return Place._told(find_faults(place, finished=False))

    wait(fork(work, place.out))
    found: list[str] = json.loads(place.out.read_text().splitlines()[-1])
    return found


def enumerate_points(base: Path, method: str) -> list[Point]:
    """Every point of a job of this method, in order. The job ends well."""
    place = Place(base, method)
    code = wait(place.start(told=place.points))
    if code != 0:
        raise AssertionError(f"{method}: {code}, {place.out.read_text()}")
    lines = [line.split("\t") for line in place.points.read_text().splitlines()]
    return [Point(int(number), kind, name) for number, kind, name in lines]


def kill_at(base: Path, method: str, point: Point) -> Trial:
    """One trial."""
    place = Place(base, method)
    code = wait(place.start(point.number))
    if code != -signal.SIGKILL:
        raise AssertionError(f"{method}: not killed at {point}: {code}, {place.out.read_text()}")
    return follow(place, point, code)


def kill_after(base: Path, method: str, *seconds: float) -> Trial:
    """One trial, killed at an instant, and perhaps at another one when it is resumed."""
    place = Place(base, method)
    for again, instant in enumerate(seconds):
        child = place.start(again=again > 0)
        time.sleep(instant)
        os.kill(child, signal.SIGKILL)
        code = wait(child)
    kind = "any instant" if len(seconds) == 1 else "two instants"
    return follow(place, Point(0, kind, ", ".join(f"{one:.3f} s" for one in seconds)), code)


def kill_all(
    base: Path, method: str, instants: int, rng: random.Random, most: int | None = None
) -> Iterator[Trial]:
    """Trials at every point, and at random instants.

    Args:
        instants: trials of one random kill, and as many of two.
        most: points of one kind at one file, spread over the job; all of them without.
    """
    points = enumerate_points(base, method)
    for point in spread(points, most):
        yield kill_at(base, method, point)
    place = Place(base, method)
    began = time.monotonic()
    wait(place.start())
    took = time.monotonic() - began
    for times in (1, 2):
        for _ in range(instants):
            yield kill_after(base, method, *(rng.random() * took for _ in range(times)))
    shutil.rmtree(base)


def spread(points: list[Point], most: int | None) -> list[Point]:
    """At most so many of each kind and file, the first and the last among them."""
    kinds: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        kinds.setdefault((point.kind, point.name), []).append(point)
    chosen = [
        point
        for alike in kinds.values()
        for place, point in enumerate(alike)
        if most is None
        or len(alike) <= most
        or place in {round(k * (len(alike) - 1) / max(1, most - 1)) for k in range(most)}
    ]
    return sorted(chosen, key=lambda point: point.number)


def to_line(trial: Trial) -> str:
    return json.dumps(asdict(trial))


def preload(base: Path, method: str) -> None:
    """Import here what a job and its verification import, once for all children."""
    place = Place(base, method)
    listed = base / "modules"

    def work() -> int:
        code = run_cli("run", place.job, "--out", place.folder, "--quiet")
        find_faults(place)
        listed.write_text("\n".join(sys.modules))
        return code

    if wait(fork(work, place.out)) != 0:
        raise AssertionError(place.out.read_text())
    for name in listed.read_text().splitlines():
        if name.split(".")[0] not in ("__main__", "__mp_main__", "tests"):
            with suppress(Exception):
                importlib.import_module(name)
