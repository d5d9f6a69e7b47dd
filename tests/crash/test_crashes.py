"""A quick cut of what `make crash` does: one method, killed where something once was lost."""

from __future__ import annotations

import json
import os
import signal

import pytest

from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.crash import trials
from tests.crash.kills import FOLLOWED, Killer, Point
from tests.crash.trials import enumerate_points, kill_at, spread

pytestmark = pytest.mark.skipif(not FOLLOWED, reason="needs /proc/self/fd, to follow files")

METHOD = "private-fusion"
# By kind and file: what the process was about to do, or in the midst of.
KILLED = [
    ("open", "r/config.yaml.new"),
    ("half a write", "accounts/client-00.jsonl"),
    ("half a write", "r/ledger.jsonl"),
    ("answer", "fusion-statistics"),
    ("half a write", "r/rows.csv"),
    ("fsync", "r/certificate.json.new"),
    ("remove", "r/checkpoint/state.safetensors"),
]


@pytest.fixture(scope="module")
def points(tmp_path_factory) -> list[Point]:
    base = tmp_path_factory.mktemp("points")
    trials.preload(base, METHOD)
    return enumerate_points(base, METHOD)


def test_no_file_is_touched_behind_the_harness(points):
    assert not [point for point in points if point.kind.startswith("unseen")]
    kinds = {point.kind for point in points}
    assert {"open", "write", "half a write", "fsync", "rename", "mkdir", "answer", "end"} <= kinds


@pytest.mark.parametrize(("kind", "name"), KILLED)
def test_a_job_that_is_killed_goes_on_and_loses_nothing(tmp_path, points, kind, name):
    point = next(point for point in points if (point.kind, point.name) == (kind, name))
    trial = kill_at(tmp_path / "t", METHOD, point)
    assert (trial.outcome, trial.faults) == ("ok", []), trial


def test_what_a_job_rests_on_is_on_disk_before_it_is_charged(points):
    """Kills leave what a process wrote; a power cut leaves what it synced."""
    charged = [p for p in points if (p.kind, p.name) == ("write", "r/ledger.jsonl")][1].number
    before = [point for point in points if point.number < charged]
    synced = {point.name for point in before if point.kind == "fsync"}
    assert {"r", "accounts", "r/checkpoint", "r/ledger.jsonl"} <= synced
    assert {f"r/{name}.new" for name in ("schema.yaml", "config.yaml")} <= synced
    assert {f"accounts/client-0{i}.jsonl" for i in range(3)} <= synced
    for point in points:
        if point.kind == "rename":
            source = point.name.split(" to ")[0]
            earlier = [p for p in points if p.number < point.number and p.name == source]
            assert earlier[-1].kind == "fsync", point


def done_before(tmp_path, at: int) -> dict[str, str]:
    """What a process leaves that writes, renames and removes files, and dies at a point."""
    folder = tmp_path / "below"
    folder.mkdir()

    def work() -> int:
        killer = Killer(folder, at)
        (folder / "a").write_text("0123456789")
        (folder / "a").rename(folder / "b")
        with (folder / "c").open("xb", buffering=0) as file:
            file.write(b"0123456789")
        os.unlink("b", dir_fd=os.open(folder, os.O_RDONLY))
        killer.reach("end", "")
        return 0

    assert trials.wait(trials.fork(work, tmp_path / "out")) == -signal.SIGKILL
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("at", "left"),
    [
        (1, {}),
        (2, {"a": ""}),
        (3, {"a": "01234"}),
        (4, {"a": "0123456789"}),
        (5, {"b": "0123456789"}),
        (7, {"b": "0123456789", "c": "01234"}),
        (8, {"b": "0123456789", "c": "0123456789"}),
        (9, {"c": "0123456789"}),
    ],
)
def test_a_process_dies_where_it_is_told_to(tmp_path, at, left):
    assert done_before(tmp_path, at) == left


def answered(place, ledger, **changes) -> list[str]:
    """The faults that are found where clients answered so."""
    line = {"clients": ["a"], "job": ledger.job.job, "round": 0, "task": "task", "steps": 1}
    first = {**line, "values": "1"}
    lines = [first, {**first, **changes}] if changes else [first]
    place.answers.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return trials.find_faults(place, finished=False)


def test_what_a_ledger_does_not_say_is_found(tmp_path):
    place = trials.Place(tmp_path / "t", METHOD)
    place.folder.mkdir()
    terms = Terms(unit="record", trust="distributed", clip=1.0, noise_multiplier=5.0)
    job = Job(budget=Budget(epsilon=9.0))
    for path in (place.folder / "ledger.jsonl", place.inside / "accounts" / "a.jsonl"):
        ledger = Ledger.create(job, path)
        ledger.charge(Event("task", 0, terms, job.job))
        ledger.close()
    assert answered(place, ledger) == []
    assert answered(place, ledger, round=0) == []
    assert "does not have it" in answered(place, ledger, round=1)[0]
    assert "does not have it" in answered(place, ledger, task="other")[0]
    assert "twice, and not alike" in answered(place, ledger, values="2")[0]
    (place.inside / "accounts" / "a.jsonl").rename(place.inside / "accounts" / "b.jsonl")
    assert "a answered round 0 without" in answered(place, ledger)[0]


def test_points_are_spread_over_a_job():
    points = [Point(number, "write", "x") for number in range(1, 12)]
    assert [point.number for point in spread(points, 3)] == [1, 6, 11]
    assert spread(points, None) == points
