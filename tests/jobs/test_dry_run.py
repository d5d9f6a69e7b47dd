"""A dry run sees what a run would meet before it asks, and leaves nothing behind."""

from __future__ import annotations

import json

import pytest

from fedsynth.errors import ConfigError, DataError
from fedsynth.jobs.config import load_config
from fedsynth.jobs.dry_run import dry_run
from fedsynth.privacy.trail.certificate import Certificate
from tests.small_jobs import table, write_job

MST = {"method": "mst", "settings": None, "holdout": 0}


def test_its_epsilon_is_the_certificates_and_nothing_is_written(call, tmp_path):
    job = write_job(tmp_path, **MST)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    code, out, err = call("run", job, "--dry-run", "--json")
    assert (code, err) == (0, "")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before
    found = json.loads(out)
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    certificate = Certificate.load(tmp_path / "r")
    assert found["epsilon"] == certificate.epsilon
    assert all(one["noise"] > 0 for one in found["questions"]) and found["errors"]
    code, out, err = call("run", job, "--dry-run")
    assert code == 0 and "mean error of a cell" in out and "nothing was charged" in err


def test_it_refuses_what_a_run_would_refuse(call, tmp_path):
    frame = table().assign(age=lambda rows: rows["age"] + 60)
    wide = load_config(write_job(tmp_path / "a", frame, **MST))
    with pytest.raises(DataError, match="more than 5% of a column is outside the schema"):
        dry_run(*wide, print)
    two = load_config(write_job(tmp_path / "b", **MST), ["sites.clients=2"])
    with pytest.raises(ConfigError, match="curious"):
        dry_run(*two, print)
    rows = load_config(write_job(tmp_path / "c", **MST), ["sample.where={agee: 3}"])
    with pytest.raises(ConfigError, match="did you mean 'age'"):
        dry_run(*rows, print)
    code, _, err = call("run", write_job(tmp_path / "d"), "--dry-run", "--out", tmp_path / "r")
    assert code == 2 and "leave --out away" in err


def test_it_tells_the_cautions_that_a_run_would_tell(tmp_path):
    frame = table()
    frame.loc[0, "age"] = 99
    told = []
    dry_run(*load_config(write_job(tmp_path, frame, **MST)), told.append)
    assert any("outside the schema" in str(one) for one in told)
