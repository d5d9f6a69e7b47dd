"""Who may read what fedsynth writes: traces of rows their user alone, releases whom umask lets."""

from __future__ import annotations

import os
import stat

import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.cli import app
from fedsynth.errors import ConfigError, MachineError
from fedsynth.evaluation.report import save
from fedsynth.holding import CHECKPOINT, hold
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.session import Session
from fedsynth.schema import Categorical, Schema
from tests.evaluation.report import report_contents as contents

SCHEMA = Schema(columns=[Categorical(name="a", values=["x", "y"])])
ROWS = pd.DataFrame({"a": ["x", "y"] * 20})
BUDGET = Budget(epsilon=1.0, delta=1e-5, trust="central")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_job_is_its_users_alone_until_it_is_a_release(tmp_path, monkeypatch):
    folder, seen = tmp_path / "runs" / "job", []

    def crashing(self, arrays, meta):
        seen.append((mode(folder), mode(folder / CHECKPOINT)))
        raise KeyboardInterrupt

    genuine = Session.checkpoint
    monkeypatch.setattr(Session, "checkpoint", crashing)
    with pytest.raises(KeyboardInterrupt):
        fs.MST(SCHEMA).fit([ROWS], BUDGET, folder=folder)
    assert seen == [(0o700, 0o700)]
    assert (mode(folder.parent), mode(folder), mode(folder / CHECKPOINT)) == (0o755, 0o700, 0o700)
    monkeypatch.setattr(Session, "checkpoint", genuine)
    other = tmp_path / "release"
    synth = fs.MST(SCHEMA).fit([ROWS], BUDGET, folder=other)
    assert mode(other) == 0o700
    synth.release(other, 5)
    assert mode(other) == 0o755
    assert {mode(path) for path in other.iterdir()} == {0o644}


def test_a_folder_that_was_there_keeps_its_mode(tmp_path):
    for before in (0o700, 0o750):
        folder = tmp_path / f"{before:o}"
        folder.mkdir()
        folder.chmod(before)
        with hold(folder):
            assert mode(folder / CHECKPOINT) == 0o700
            (folder / CHECKPOINT / "lock").unlink()
        assert mode(folder) == before


def test_an_owners_account_is_its_own(tmp_path):
    path = tmp_path / "accounts" / "north.jsonl"
    Ledger.of_owner(path, BUDGET).close()
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    Ledger.of_owner(path, BUDGET).close()
    assert mode(path) == 0o600


@pytest.mark.parametrize(
    ("private", "folder", "file"), [(True, 0o700, 0o600), (False, 0o755, 0o644)]
)
def test_a_report_is_private_as_its_rows_are(tmp_path, private, folder, file):
    for path in save(contents.minimal(), tmp_path / "report", private=private):
        assert (mode(path.parent), mode(path)) == (folder, file)


def test_a_job_that_ended_says_how_to_go_on_and_how_to_be_rid_of_private_vectors(tmp_path, capsys):
    (tmp_path / CHECKPOINT).mkdir()
    (tmp_path / CHECKPOINT / "0.private").touch()
    (tmp_path / "config.yaml").touch()
    app._tell_left(tmp_path, MachineError("full"))
    told = capsys.readouterr().err
    assert f"fedsynth run --resume {tmp_path}" in told
    assert f"rm -r {tmp_path / CHECKPOINT}" in told
    # What the disk is not to blame for, resuming may not mend.
    app._tell_left(tmp_path, ConfigError("wrong"))
    told = capsys.readouterr().err
    assert "--resume" not in told and "rm -r" in told
    (tmp_path / CHECKPOINT / "0.private").unlink()
    (tmp_path / "certificate.json").touch()
    app._tell_left(tmp_path, MachineError("full"))
    assert capsys.readouterr().err == ""
