"""A job whose release is a classifier: no rows, the same account, and scores of its own."""

from __future__ import annotations

import json

import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

import fedsynth as fs
from fedsynth.cli import app as cli
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.jobs.config import load_config
from fedsynth.jobs.data import prepare
from fedsynth.privacy.verify.verification import require
from fedsynth.release import read_release
from fedsynth.yaml_files import read_yaml
from tests.jobs.test_run import Crash, crash_at
from tests.small_jobs import table, write_job

# Of everybody: what samples cost is summed up anew for every number of rounds.
SETTINGS = {"rounds": 3, "rate": 1.0}


def write(folder, **changes):
    job = {"method": "federated-classifier", "settings": SETTINGS, "sample": None}
    return write_job(folder, **{**job, **changes})


def run(*arguments):
    return cli.run([str(argument) for argument in arguments])


def test_a_classifiers_job_ends_in_a_release_without_rows(tmp_path, capsys):
    config, folder = write(tmp_path), tmp_path / "r"
    assert run("run", config, "--out", folder, "--quiet", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert run("run", config, "--dry-run", "--json") == 0
    foreseen = json.loads(capsys.readouterr().out)
    assert told["epsilon"] == foreseen["epsilon"]
    require(folder)
    assert not list(folder.glob("rows*")) and "sample" not in read_yaml(
        folder / "config.yaml", ConfigError
    )
    with pytest.raises(ReleaseError, match="without rows"):
        read_release(folder)
    model = fs.FederatedClassifier.load(folder)
    test = prepare(*load_config(config)).test
    probabilities = model.predict_proba(test)
    own, positive = told["scores"]["comparison"]["classifier"], model.classes_[1]
    assert own["accuracy"] == accuracy_score(test["income"], model.predict(test))
    assert own["auroc"] == pytest.approx(
        roc_auc_score(test["income"] == positive, probabilities[:, 1])
    )
    assert run("predict", folder, tmp_path / "table.csv", "-o", tmp_path / "c.csv") == 0


@pytest.mark.parametrize("place", ["asked", "written"])
def test_a_classifiers_job_that_was_killed_goes_on(tmp_path, monkeypatch, place):
    config, folder = write(tmp_path, holdout=0), tmp_path / "r"
    where = {
        "asked": (LocalRuntime, "sum", 3),
        "written": (fs.FederatedClassifier, "model_state", 1),
    }[place]
    with monkeypatch.context() as patch:
        crash_at(patch, *where)
        with pytest.raises(Crash):
            run("run", config, "--out", folder, "--quiet")
    assert run("run", "--resume", folder, "--quiet") == 0
    require(folder)


def test_rows_are_not_asked_of_a_classifier(tmp_path, capsys):
    config = write(tmp_path, sample={"rows": 5})
    assert run("run", config, "--out", tmp_path / "r") == 2
    assert "`sample` is of rows" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_release_to_scale_by_lies_where_the_job_says(tmp_path, capsys):
    """Its cut points stand in the release's job file, which needs the other release no more."""
    schema = fs.Schema.load(write(tmp_path).parent / "people.yaml")
    fs.MST(schema).fit(table(), epsilon=5.0, delta=1e-4, trust="central").release(tmp_path / "rows")
    config = write(tmp_path, holdout=0, settings={**SETTINGS, "scaled_by": "rows"})
    assert run("run", config, "--out", tmp_path / "r", "--quiet") == 0
    job = read_yaml(tmp_path / "r" / "config.yaml", ConfigError)
    assert isinstance(job["settings"]["scaled_by"], dict)
    require(tmp_path / "r")
