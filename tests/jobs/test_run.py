"""A job killed at any moment continues, pays once for what it asked, and verifies."""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
import time

import pytest

from fedsynth import release
from fedsynth.cli import app as cli
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.door import Door
from fedsynth.jobs import run as job
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify.verification import require
from fedsynth.queries import session as fitting
from fedsynth.yaml_files import read_yaml, write_yaml
from tests.crash.trials import fork, wait
from tests.small_jobs import SETTINGS, write_job


class Crash(BaseException):
    """Stands for a kill: nothing in fedsynth may catch it."""


def crash_at(monkeypatch, owner, name, call=1, *, before=True):
    """Has the given call of a function crash, before or after it did its work."""
    original, calls = getattr(owner, name), []

    def replaced(*arguments, **keywords):
        calls.append(1)
        if len(calls) == call and before:
            raise Crash
        result = original(*arguments, **keywords)
        if len(calls) == call:
            raise Crash
        return result

    monkeypatch.setattr(owner, name, replaced)


STAGES = {
    "before the job file": (job.Config, "save", 1, True),
    "before the ledger": (Ledger, "create", 1, True),
    "after the ledger": (Ledger, "create", 1, False),
    "histogram charged, not asked": (LocalRuntime, "sum", 1, True),
    "histogram asked, not saved": (fitting.Session, "checkpoint", 1, True),
    "first checkpoint": (fitting.Session, "checkpoint", 1, False),
    "third round charged": (LocalRuntime, "sum", 5, True),
    "third round released": (Door, "sum", 5, False),
    "last round, not saved": (fitting.Session, "checkpoint", 2, True),
    "trained": (fitting.Session, "__exit__", 1, False),
    "before the rows": (release, "_write_rows", 1, True),
    "after the rows": (release, "_write_rows", 1, False),
    "before the certificate": (Certificate, "save", 1, True),
    "after the certificate": (Certificate, "save", 1, False),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_crash_at_any_stage_can_be_resumed(tmp_path, monkeypatch, capsys, stage):
    # Of everybody: what samples cost is summed up anew for every number of rounds.
    config = write_job(
        tmp_path,
        holdout=0,
        settings={**SETTINGS, "rate": 1.0, "rounds": 4},
        federation={"secure": "third" in stage or "histogram" in stage},
    )
    folder = tmp_path / "r"
    with monkeypatch.context() as patch:
        crash_at(patch, *STAGES[stage][:3], before=STAGES[stage][3])
        with pytest.raises(Crash):
            cli.run(["run", str(config), "--out", str(folder), "--quiet"])
    gc.collect()  # as the end of a process would, this lets go of the ledger's lock
    begun = stage != "before the job file"
    if not begun:
        assert cli.run(["run", "--resume", str(folder)]) == 2
        assert "start it anew" in capsys.readouterr().err
    resumed = ["--resume", str(folder)] if begun else [str(config), "--out", str(folder)]
    assert cli.run(["run", *resumed, "--quiet"]) == 0
    demand_sound(folder)


def demand_sound(folder):
    """Verified, within the plan, and nothing left that only a running job needs."""
    require(folder)
    ledger = Ledger.read(folder / "ledger.jsonl")
    assert len(ledger.events) <= sum(planned.count for planned in ledger.job.plan)
    assert ledger.spent().epsilon <= ledger.job.budget.epsilon
    assert len({event.round for event in ledger.events}) == len(ledger.events)
    assert not (folder / "checkpoint").exists()
    assert not list(folder.glob("*.new"))


def test_every_value_released_has_its_line(tmp_path, monkeypatch):
    """Also those of a run that crashed, whose rounds are asked again and paid for again."""
    released = []
    config, folder = write_job(tmp_path, holdout=0), tmp_path / "r"
    asked = LocalRuntime.sum

    def counted(self, *arguments):
        released.append((folder / "ledger.jsonl").read_bytes().count(b"\n") - 1)
        return asked(self, *arguments)

    monkeypatch.setattr(LocalRuntime, "sum", counted)
    with monkeypatch.context() as patch:
        crash_at(patch, fitting.Session, "checkpoint", 2)
        with pytest.raises(Crash):
            cli.run(["run", str(config), "--out", str(folder), "--quiet"])
    gc.collect()
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 0
    # Before anybody was asked for a value, the ledger on disk had a line more than before the last.
    assert released == sorted(set(released))
    assert len(Ledger.read(folder / "ledger.jsonl").events) == released[-1]
    demand_sound(folder)


def test_a_ledger_whose_first_line_was_cut_short_starts_anew(tmp_path, monkeypatch):
    config, folder = write_job(tmp_path, holdout=0), tmp_path / "r"
    with monkeypatch.context() as patch:
        crash_at(patch, Ledger, "create")
        with pytest.raises(Crash):
            cli.run(["run", str(config), "--out", str(folder), "--quiet"])
    (folder / "ledger.jsonl").write_bytes(b'{"budget":{"curious":nu')
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 0
    demand_sound(folder)


def test_a_finished_job_stays_as_it_is(tmp_path, capsys):
    config, folder = write_job(tmp_path, holdout=0), tmp_path / "r"
    assert cli.run(["run", str(config), "--out", str(folder), "--quiet"]) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert cli.run(["run", "--resume", str(folder)]) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_job_changed_since_it_began_is_refused(tmp_path, monkeypatch, capsys):
    config, folder = write_job(tmp_path, holdout=0), tmp_path / "r"
    with monkeypatch.context() as patch:
        crash_at(patch, fitting.Session, "checkpoint", 2)
        with pytest.raises(Crash):
            cli.run(["run", str(config), "--out", str(folder), "--quiet"])
    gc.collect()
    saved = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(saved.replace("epsilon: 5.0", "epsilon: 50.0"))
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 2
    assert "another budget" in capsys.readouterr().err


AGREED = {
    "seed": lambda job: job.update(seed=1),
    "holdout": lambda job: job.update(holdout=0.5),
    "cut": lambda job: job["sites"].update(clients=4),
    "limit": lambda job: job.update(outside="allow"),
}


@pytest.mark.parametrize("what", AGREED)
def test_a_job_is_resumed_as_its_file_said_whatever_the_file_says_now(
    tmp_path, monkeypatch, capsys, what
):
    """The certified job file once lied about which rows were held out."""
    folder = interrupted(tmp_path, monkeypatch, holdout=0.2)
    content = read_yaml(folder / "config.yaml", ValueError)
    AGREED[what](content)
    write_yaml(content, folder / "config.yaml")
    before = (folder / "ledger.jsonl").read_bytes()
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "started with another seed, holdout, cut" in error or "4 clients" in error
    assert (folder / "ledger.jsonl").read_bytes() == before


def test_a_job_is_not_resumed_on_another_table_and_is_wherever_the_table_lies(
    tmp_path, monkeypatch, capsys
):
    folder = interrupted(tmp_path, monkeypatch, holdout=0.2)
    path = tmp_path / "table.csv"
    whole = path.read_text()
    path.write_text(whole.replace("red", "green", 1))
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 3
    assert "not those that the job began with" in capsys.readouterr().err
    path.unlink()
    (tmp_path / "moved.csv").write_text(whole)
    saved = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(saved.replace("table.csv", "moved.csv"))
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 0
    demand_sound(folder)


SENSELESS = {
    "a column that is none": {"where": {"agee": 3}},
    "a value that is none": {"where": {"income": "middling"}},
    "a column that the method cannot draw by": {"where": {"age": 3}},
    "both": {"where": {"income": "high"}, "proportions": {"high": 1}},
    "shares of no class": {"proportions": {"middling": 1}},
    "shares of nothing": {"proportions": {"high": 0}},
}


@pytest.mark.parametrize("fault", SENSELESS)
def test_rows_that_could_not_be_drawn_are_told_before_the_first_question(tmp_path, capsys, fault):
    """They once cost all of epsilon, and every resumption failed alike."""
    config = write_job(tmp_path, sample={"rows": 50, **SENSELESS[fault]})
    assert cli.run(["run", str(config), "--out", str(tmp_path / "r"), "--quiet"]) == 2
    assert "sample: " in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_rows_that_could_not_be_written_are_told_before_the_first_question(
    tmp_path, monkeypatch, capsys
):
    config, out = write_job(tmp_path), tmp_path / "r"
    (tmp_path / "file").touch()
    within = str(tmp_path / "file" / "r")
    assert cli.run(["run", str(config), "--out", within, "--quiet"]) == 7
    assert "cannot be written (Not a directory)" in capsys.readouterr().err
    monkeypatch.setattr(job, "find_spec", lambda _: None)
    command = ["run", str(config), "--out", str(out), "--quiet", "--set", "sample.format=parquet"]
    assert cli.run(command) == 2
    assert "parquet" in capsys.readouterr().err
    assert not out.exists()


def interrupted(tmp_path, monkeypatch, method="mst", holdout=0):
    """A job that has asked all it asks, and has no rows yet."""
    job = {"method": method, "settings": None, "holdout": holdout}
    config, folder = write_job(tmp_path, **job), tmp_path / "r"
    with monkeypatch.context() as patch:
        crash_at(patch, fitting.Session, "__exit__", before=False)
        with pytest.raises(Crash):
            cli.run(["run", str(config), "--out", str(folder), "--quiet"])
    gc.collect()
    return folder


def test_a_resumed_job_may_draw_other_rows_and_nothing_else_changes(tmp_path, monkeypatch, capsys):
    folder = interrupted(tmp_path, monkeypatch)
    resumed = ["run", "--resume", str(folder), "--quiet"]
    asked = (folder / "ledger.jsonl").read_bytes()
    for refused in ("privacy.epsilon=1", "settings.rounds=3", "seed=1", "samples.rows=3"):
        before = contents(folder)
        assert cli.run([*resumed, "--set", "sample.rows=7", "--set", refused]) == 2
        assert "only the rows to draw" in capsys.readouterr().err
        assert contents(folder) == before
    # A job of before its conditions were looked at.
    saved = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(saved.replace("rows: 50", "rows: 50, where: {agee: 3}"))
    assert cli.run(resumed) == 2
    assert "--set sample." in capsys.readouterr().err
    mended = ["--set", "sample.where={income: high}", "--set", "sample.rows=7"]
    assert cli.run([*resumed, *mended]) == 0
    assert (folder / "rows.csv").read_text().count("high\n") == 7
    assert (folder / "ledger.jsonl").read_bytes().startswith(asked)
    demand_sound(folder)
    assert cli.run([*resumed, "--set", "sample.rows=8"]) == 2
    assert "fedsynth sample" in capsys.readouterr().err


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_that_the_model_hardly_draws_say_how_to_go_on(tmp_path, monkeypatch, capsys):
    folder = interrupted(tmp_path, monkeypatch)

    def rare(*_):
        raise job.ConfigError("hardly a row")

    with monkeypatch.context() as patch:
        patch.setattr("fedsynth.methods.synthesizer.Synthesizer.sample", rare)
        assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 2
    assert f"--resume {folder} --set sample." in capsys.readouterr().err


def test_nobody_resumes_a_job_beside_the_process_that_writes_its_release(
    tmp_path, monkeypatch, capsys
):
    """It once got in when the fit was over, and left a certified release that never verified."""
    config, folder = write_job(tmp_path, holdout=0, method="mst", settings=None), tmp_path / "r"
    at, go = tmp_path / "at", tmp_path / "go"
    save = Certificate.save

    def late(self, where):
        at.touch()
        while not go.exists():
            time.sleep(0.01)
        return save(self, where)

    def work() -> int:
        monkeypatch.setattr(Certificate, "save", late)
        return cli.run(["run", str(config), "--out", str(folder), "--quiet"])

    first = fork(work, tmp_path / "out")
    while not at.exists():
        assert os.waitpid(first, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    before = contents(folder)
    try:
        for command in (["--resume", str(folder)], [str(config), "--out", str(folder)]):
            assert cli.run(["run", *command, "--quiet"]) in (2, 4)
            assert re.search("another process is at work|not empty", capsys.readouterr().err)
            assert contents(folder) == before
    finally:
        go.touch()
    assert wait(first) == 0
    demand_sound(folder)
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 0


def test_a_finished_job_whose_release_was_changed_since_is_not_called_done(tmp_path, capsys):
    config, folder = write_job(tmp_path, holdout=0, method="mst", settings=None), tmp_path / "r"
    assert cli.run(["run", str(config), "--out", str(folder), "--quiet"]) == 0
    (folder / "rows.csv").write_text("")
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 6
    assert "rows.csv: changed since it was certified" in capsys.readouterr().err


def test_rows_of_another_format_leave_nothing_of_those_before(tmp_path, monkeypatch):
    config, folder = write_job(tmp_path, holdout=0, method="mst", settings=None), tmp_path / "r"
    with monkeypatch.context() as patch:
        crash_at(patch, release, "_write_rows", before=False)
        with pytest.raises(Crash):
            cli.run(["run", str(config), "--out", str(folder), "--quiet"])
    gc.collect()
    other = ["--set", "sample.format=parquet"]
    assert cli.run(["run", "--resume", str(folder), "--quiet", *other]) == 0
    demand_sound(folder)


def test_a_killed_process_resumes(tmp_path, monkeypatch):
    settings = {**SETTINGS, "rate": 1.0, "rounds": 40}
    config, folder = write_job(tmp_path, holdout=0, settings=settings), tmp_path / "r"
    asked, count = LocalRuntime.sum, itertools.count(1)

    def waiting(self, *arguments):
        """In the thirtieth round until it is killed, if it was not before."""
        if next(count) == 30:
            time.sleep(600)
        return asked(self, *arguments)

    ledger = folder / "ledger.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(LocalRuntime, "sum", waiting)
        child = fork(lambda: cli.run(["run", str(config), "--out", str(folder)]), tmp_path / "out")
    while not ledger.exists() or ledger.read_bytes().count(b"\n") < 12:
        assert os.waitpid(child, os.WNOHANG) == (0, 0), (tmp_path / "out").read_text()
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    assert wait(child) == -signal.SIGKILL
    assert not (folder / "certificate.json").exists()
    asked_for = ledger.read_bytes().count(b"\n") - 1
    assert cli.run(["run", "--resume", str(folder), "--quiet"]) == 0
    demand_sound(folder)
    assert asked_for <= len(Ledger.read(ledger).events)


def test_owners_own_ledgers_bound_all_jobs_together(tmp_path):
    accounts = {"folder": "accounts", "epsilon": 7.0, "delta": 1e-4}
    settings = {**SETTINGS, "rate": 0.5}
    path = write_job(tmp_path, federation={"ledgers": accounts}, settings=settings)
    first = cli.run(["run", str(path), "--out", str(tmp_path / "one"), "--quiet"])
    assert first == 0
    names = sorted(file.name for file in (tmp_path / "accounts").iterdir())
    assert names == [f"client-0{i}.jsonl" for i in range(3)]
    job = Ledger.read(tmp_path / "one" / "ledger.jsonl")
    for name in names:
        assert Ledger.read(tmp_path / "accounts" / name).counts == job.counts
    # A second job of epsilon 5 would take every owner beyond its 7: refused, and remembered.
    assert cli.run(["run", str(path), "--out", str(tmp_path / "two"), "--quiet"]) == 5
    for name in names:
        assert Ledger.read(tmp_path / "accounts" / name).spent().epsilon <= 7.0
