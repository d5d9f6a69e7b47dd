"""`fedsynth init` writes a job that runs, says what to look at, and overwrites nothing."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from fedsynth.cli import init
from fedsynth.jobs.config import load_config
from fedsynth.jobs.data import prepare
from fedsynth.jobs.dry_run import dry_run
from fedsynth.jobs.inputs import Origin
from fedsynth.jobs.reading import follow
from fedsynth.schema import Schema
from tests.small_jobs import table


@pytest.fixture
def owners(tmp_path):
    """Two owners' tables, and one of both with a column that names them."""
    north, south = table(60, 0), table(60, 1)
    north.to_csv(tmp_path / "north.csv", index=False)
    south.to_csv(tmp_path / "south.csv", index=False, sep=";")
    north.assign(site="a").to_csv(tmp_path / "all.csv", index=False)
    return tmp_path


def test_the_job_it_writes_runs_from_anywhere(call, owners, monkeypatch):
    files = owners / "north.csv", owners / "south.csv"
    code, out, err = call("init", *files, "--target", "income", "--out", owners / "new")
    assert (code, out) == (0, "") and "Review each" in err and "--dry-run" in err
    monkeypatch.chdir(owners / "new")
    config, base = load_config("job.yaml")
    north, south = config.sites.paths["north"], config.sites.paths["south"]
    assert north == "../north.csv"
    assert (south.path, south.said) == ("../south.csv", {"separator": ";"})
    assert (config.privacy.epsilon, config.privacy.trust, config.privacy.curious) == (
        1.0,
        "distributed",
        1,
    )
    schema = Schema.load(owners / "new" / "schema.yaml")
    assert schema.target == "income" and schema.provenance == "private-data"
    assert dry_run(config, base, lambda sentence: None).plan.clients == 2


def test_one_table_has_one_owner_or_those_that_a_column_names(call, owners):
    alone, column = owners / "alone", owners / "column"
    assert call("init", owners / "all.csv", "--epsilon", 3, "--out", alone)[0] == 0
    config, _ = load_config(alone / "job.yaml")
    assert (config.privacy.epsilon, config.privacy.trust, config.sites.clients) == (3, "central", 1)
    assert call("init", owners / "all.csv", "--column", "site", "--out", column)[0] == 0
    config, _ = load_config(column / "job.yaml")
    assert (config.sites.column, config.privacy.trust) == ("site", "distributed")
    assert "site" not in [one.name for one in Schema.load(column / "schema.yaml").columns]


def test_how_files_are_written_is_guessed_once(call, owners):
    rows = table(60, 2).assign(weight=np.arange(60) / 8)
    for name in "ab":
        rows.to_csv(owners / f"{name}.csv", index=False, sep=";", decimal=",")
    for files, out in ((("a", "b"), "both"), (("a",), "alone")):
        paths = [owners / f"{name}.csv" for name in files]
        code, _, err = call("init", *paths, "--out", owners / out)
        assert code == 0 and "decimal commas; what is written says so" in " ".join(err.split())
        config, base = load_config(owners / out / "job.yaml")
        assert config.data.said == {"separator": ";", "decimal": ","}
        told = []
        dry_run(config, base, told.append)
        assert not [sentence for sentence in told if "read with" in sentence]


def test_owners_that_write_otherwise_are_read_alike(call, tmp_path):
    """Names, dates, decimals and values of its own, and a column more."""
    north = table(60, 0).assign(seen=pd.date_range("2020-01-01", periods=60, freq="9D"))
    south = table(60, 1).assign(seen=north["seen"].dt.strftime("%d.%m.%Y"), ward="x")
    south["income"] = south["income"].str.upper()
    south.columns = [name.upper() for name in south.columns]
    north.to_csv(tmp_path / "north.csv", index=False)
    south.to_csv(tmp_path / "south.csv", index=False, sep=";")
    files = tmp_path / "north.csv", tmp_path / "south.csv"
    code, _, err = call("init", *files, "--target", "income", "--out", tmp_path / "new")
    assert code == 0 and "left out, for north has no such column" in err
    assert "south.yaml: how this owner's table is read" in err and "north.yaml" not in err
    config, base = load_config(tmp_path / "new" / "job.yaml")
    assert config.sites.paths == {"north": "../north.csv", "south": "south.yaml"}
    words, folder = follow(Origin(path="south.yaml"), base)
    assert folder == tmp_path / "new" and (words.path, words.separator) == ("../south.csv", ";")
    assert words.drop == ("WARD",) and words.formats == {"seen": "%d.%m.%Y"}
    assert words.rename["INCOME"] == "income" and set(words.recode) == {"income"}
    assert "recode" not in (tmp_path / "new" / "job.yaml").read_text()
    found = dry_run(config, base, lambda sentence: None)
    assert found.plan.clients == 2
    owners = prepare(config, base, lambda sentence: None).owners
    assert list(owners["south"]["seen"]) == list(owners["north"]["seen"])
    assert set(owners["south"]["income"]) == set(owners["north"]["income"])


@pytest.mark.parametrize("name", [init.JOB, init.SCHEMA])
def test_nothing_is_overwritten(call, owners, name):
    (owners / name).write_text("mine")
    code, _, err = call("init", owners / "north.csv", "--out", owners)
    assert code == 2 and f"{owners / name} exists already" in err
    assert (owners / name).read_text() == "mine"
    assert not ({init.JOB, init.SCHEMA} - {name}) & {path.name for path in owners.iterdir()}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{d}/north.csv {d}/b/north.csv", "would both be the owner 'north'"),
        ("{d}/all.csv --column sites", "has no column 'sites'"),
        ("{d}/north.csv {d}/south.csv --column site", "--column is of one table"),
        ("{d}/north.csv --epsilon 0", "epsilon must be positive"),
    ],
)
def test_what_could_not_be_run_is_refused_and_nothing_written(call, owners, given, message):
    code, _, err = call("init", *given.format(d=owners).split(), "--out", owners / "new")
    assert code == 2 and message in err and not (owners / "new").exists()


def test_a_terminal_is_asked_what_was_not_said(call, owners, monkeypatch):
    answers = {"Which column": "income", "Epsilon": 2.0, "Synthetic rows": 50}

    def prompt(question, **_):
        return next(answer for start, answer in answers.items() if question.startswith(start))

    monkeypatch.setattr(init.typer, "prompt", prompt)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    code, _, _ = call("init", owners / "north.csv", "--rows", 70, "--out", owners / "new")
    config, _ = load_config(owners / "new" / "job.yaml")
    assert (code, config.privacy.epsilon, config.sample.rows) == (0, 2.0, 70)
    assert Schema.load(owners / "new" / "schema.yaml").target == "income"


def test_where_a_key_repeats_persons_are_protected(call, tmp_path):
    table(60, 0).assign(patient_id=[k // 3 for k in range(60)]).to_csv(
        tmp_path / "visits.csv", index=False
    )
    assert call("init", tmp_path / "visits.csv", "--out", tmp_path / "new")[0] == 0
    config, _ = load_config(tmp_path / "new" / "job.yaml")
    assert (config.privacy.unit, config.privacy.trust) == ("person", "central")
    assert Schema.load(tmp_path / "new" / "schema.yaml").person == "patient_id"
