"""A job has one life: a copy of its folder is not resumed beside it, nor answered."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, FederationError, PrivacyError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify.verification import verify
from tests.methods.small import SCHEMA, owners

BUDGET = Budget(epsilon=1.0, delta=1e-5, curious=1)
OWN = Budget(epsilon=9.0, delta=1e-5, trust="central")


class Stopped(Exception):
    """Stands for a power cut."""


def stop(label: str, done: int, total: int, epsilon: float) -> None:
    if done == 1:
        raise Stopped


def stop_at_once(label: str, done: int, total: int, epsilon: float) -> None:
    raise Stopped


def fit(folder: Path, **options) -> fs.MST:
    return fs.MST(SCHEMA, iterations=2).fit(owners(20, 20), BUDGET, folder=folder, **options)


def interrupted(folder: Path, **options) -> None:
    with pytest.raises(Stopped):
        fit(folder, progress=stop, **options)
    gc.collect()


def released(folder: Path, **options) -> bool:
    """Whether the job is finished, and its release verifies."""
    made = fit(folder, resume=True, **options)
    made.release(folder, made.sample(5, seed=0))
    return all(check.passed for check in verify(folder))


def test_a_copy_is_not_resumed_and_the_original_is(tmp_path: Path):
    interrupted(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before = (tmp_path / "b" / "ledger.jsonl").read_bytes()
    with pytest.raises(PrivacyError, match=r"b is a copy .* `--moved`"):
        fit(tmp_path / "b", resume=True)
    assert (tmp_path / "b" / "ledger.jsonl").read_bytes() == before
    assert released(tmp_path / "a")
    # The original being finished gives the copy no life.
    with pytest.raises(PrivacyError, match="is a copy"):
        fit(tmp_path / "b", resume=True)


def test_a_job_that_was_moved_or_interrupted_again_goes_on(tmp_path: Path):
    interrupted(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(Stopped):
        fit(tmp_path / "b", resume=True, progress=stop_at_once)
    gc.collect()
    assert released(tmp_path / "b")
    assert not (tmp_path / "b" / "checkpoint").exists()


def test_a_copy_whose_original_is_said_to_be_gone_goes_on_and_is_the_original_then(tmp_path: Path):
    interrupted(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(Stopped):
        fit(tmp_path / "b", resume=True, moved=True, progress=stop_at_once)
    gc.collect()
    assert released(tmp_path / "b")


def test_a_job_that_does_not_say_where_it_began_is_not_resumed_once_it_has_asked(tmp_path: Path):
    interrupted(tmp_path)
    (tmp_path / "checkpoint" / "origin").unlink()
    with pytest.raises(PrivacyError, match="is a copy"):
        fit(tmp_path, resume=True)


def test_a_job_that_was_cut_off_before_it_asked_is_resumed(tmp_path: Path, monkeypatch):
    with monkeypatch.context() as cut, pytest.raises(Stopped):
        cut.setattr("fedsynth.queries.session.remember", lambda folder: stop_at_once("", 0, 1, 0.0))
        fit(tmp_path)
    gc.collect()
    assert not (tmp_path / "checkpoint" / "origin").exists()
    assert released(tmp_path)


def test_moved_is_said_of_a_resumed_job_alone(tmp_path: Path, call):
    with pytest.raises(ConfigError, match="resumed"):
        fit(tmp_path, moved=True)
    code, _, err = call("run", "demo", "--moved", "--out", tmp_path / "x")
    assert code == 2 and "--resume" in err


def ledgers(folder: Path) -> Mapping[str, Ledger]:
    return {name: Ledger.of_owner(folder / name, OWN) for name in owners(1, 1)}


def test_owners_with_ledgers_answer_one_copy_whatever_is_said_of_the_other(tmp_path: Path):
    accounts = ledgers(tmp_path / "own")
    interrupted(tmp_path / "a", owners_ledgers=accounts)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert released(tmp_path / "a", owners_ledgers=accounts)
    for account in accounts.values():
        account.close()
    accounts = ledgers(tmp_path / "own")
    with pytest.raises(FederationError, match="none is answered twice"):
        fit(tmp_path / "b", resume=True, moved=True, owners_ledgers=accounts)
    finished = Ledger.read(tmp_path / "a" / "ledger.jsonl")
    for account in accounts.values():
        assert account.counts == finished.counts
        account.close()
