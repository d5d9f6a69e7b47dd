"""Rows of invented persons: from a fit, a release and a job; refused with the reason elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.cli import app as cli
from fedsynth.errors import ConfigError
from fedsynth.methods.persons import demand_invented, demand_sizes, tell_invented
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.verify.verification import require
from fedsynth.registry import SYNTHESIZERS
from fedsynth.schema import Boolean, Categorical, Identifier, ImageSchema, Integer, Schema
from fedsynth.yaml_files import write_yaml
from tests.methods.contract import OF_PERSONS, made

SCHEMA = Schema(
    columns=[
        Identifier(name="who"),
        Categorical(name="sex", values=["f", "m"], of="person"),
        Integer(name="cost", lower=0, upper=7),
        Integer(name="copay", lower=0, upper=7),
        Integer(name="all", lower=0, upper=14),
    ],
    person="who",
    constraints=[{"sum": {"total": "all", "parts": ["cost", "copay"]}}],
)
BUDGET = Budget(epsilon=20.0, delta=1e-4, unit="person", trust="central")


def visits():
    """600 persons with one row or four; those of four are as the others."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(600), np.where(np.arange(600) < 400, 1, 4))
    rows = pd.DataFrame({"who": who, "sex": np.where(who % 4 == 0, "f", "m")})
    rows["cost"], rows["copay"] = rng.integers(0, 8, (2, len(rows)))
    return rows.assign(all=rows["cost"] + rows["copay"])


@pytest.fixture(scope="module")
def fitted():
    return fs.MST(SCHEMA).fit(visits(), BUDGET, progress=False)


def test_persons_have_as_many_rows_as_was_released_and_share_what_is_theirs(fitted):
    rows = fitted.sample(3_000, persons=True, seed=0)
    assert list(rows.columns) == [column.name for column in SCHEMA.columns]
    persons = rows.groupby("who")
    shares = persons.size().value_counts(normalize=True)
    assert abs(shares[1] - 2 / 3) < 0.02
    assert shares.get(2, 0) < 0.01
    assert abs(shares[4] - 1 / 3) < 0.02 and shares.get(3, 0) < 0.01
    assert (persons["sex"].nunique() == 1).all()
    assert abs((rows["sex"] == "f").mean() - 0.25) < 0.03
    assert (rows["all"] == rows["cost"] + rows["copay"]).all()
    assert fitted.sample(3_000, persons=True, seed=0).equals(rows)
    # Without, each row is somebody's own.
    assert fitted.sample(100, seed=0)["who"].is_unique


def test_a_release_has_persons_verifies_and_draws_more_of_them(fitted, tmp_path):
    fitted.release(tmp_path / "r", 200, persons=True, seed=1)
    require(tmp_path / "r")
    rows = pd.read_csv(tmp_path / "r" / "rows.csv")
    assert len(rows) == 200 > rows["who"].nunique()
    more = fs.load(tmp_path / "r").sample(200, persons=True, seed=2)
    assert (more.groupby("who")["sex"].nunique() == 1).all()
    with pytest.raises(ConfigError, match="persons is of rows that release draws"):
        fitted.release(tmp_path / "s", fitted.sample(5, seed=0), persons=True)


def test_conditions_are_met_by_persons_but_for_those_on_totals(fitted):
    rows = fitted.sample(100, where={"cost": (3, 5)}, persons=True, seed=0)
    assert rows["cost"].between(3, 5).all()
    with pytest.raises(ConfigError, match="a condition on all, which follows from other columns"):
        fitted.sample(100, where={"all": 3}, persons=True)


def test_where_nothing_was_released_of_persons_there_are_none():
    fit = {"epsilon": 20.0, "delta": 1e-4, "trust": "central", "progress": False}
    alone = fs.MST(SCHEMA).fit(visits(), **fit, unit="person", person_share=0.0)
    with pytest.raises(ConfigError, match="released nothing of how many rows a person has"):
        alone.sample(5, persons=True)
    with pytest.raises(ConfigError, match="must be True or False, not 600"):
        alone.sample(5, persons=600)


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_a_method_draws_persons_or_says_before_a_fit_that_it_cannot(name):
    synth = made(name, OF_PERSONS)
    draws = hasattr(synth.learned_type, "draw_persons")
    assert draws == (name in ("aim", "mst", "privbayes"))
    if draws:
        demand_invented(OF_PERSONS, name, synth.learned_type, None)
        return
    with pytest.raises(ConfigError, match=f"{name} cannot draw further rows of a person"):
        demand_invented(OF_PERSONS, name, synth.learned_type, None)


def test_what_tells_of_no_persons_is_refused_with_the_reason():
    learned = fs.MST.learned_type
    bare = Schema(columns=[Boolean(name="b")])
    with pytest.raises(ConfigError, match="the schema says whose a row is"):
        demand_invented(bare, "mst", learned, None)
    with pytest.raises(ConfigError, match="images are not drawn by person"):
        demand_invented(ImageSchema(shape=(8, 8)), "mst", learned, None)
    demand_sizes(BUDGET)
    with pytest.raises(ConfigError, match="nothing of it with unit: record"):
        demand_sizes(Budget(epsilon=1.0))
    with pytest.raises(ConfigError, match="not asked with person_share: 0"):
        demand_sizes(Budget(epsilon=1.0, unit="person", person_share=0.0))


def test_a_job_makes_rows_of_persons_or_is_refused_before_anything_is_asked(tmp_path, capsys):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    SCHEMA.save(tmp_path / "schema.yaml")
    job = {
        "data": {"path": "visits.csv"},
        "schema": "schema.yaml",
        "sites": {"clients": 3, "scheme": "uniform"},
        "privacy": {"epsilon": 5.0, "delta": 1e-4, "unit": "person"},
        "method": "mst",
        "sample": {"rows": 300, "persons": True},
    }
    write_yaml(job, tmp_path / "job.yaml")
    run = ["run", str(tmp_path / "job.yaml"), "--quiet", "--out"]
    out = tmp_path / "r"
    assert cli.run([*run, str(out), "--set", "privacy.unit=record"]) == 2
    assert "nothing of it with unit: record" in capsys.readouterr().err
    assert cli.run([*run, str(out), "--set", "method=private-fusion"]) == 2
    assert "private-fusion cannot draw further rows" in capsys.readouterr().err
    assert not out.exists()
    assert cli.run([*run, str(out)]) == 0
    assert "rows of an invented person share sex, and are independent" in capsys.readouterr().err
    assert pd.read_csv(out / "rows.csv")["who"].nunique() < 290
    more = str(tmp_path / "more.csv")
    assert cli.run(["sample", str(out), "-n", "50", "--persons", "--seed", "1", "-o", more]) == 0
    count = pd.read_csv(more)["who"].nunique()
    told = capsys.readouterr().err
    assert f"50 synthetic rows of {count} invented persons" in told
    assert "rows of an invented person share sex" in told


def test_that_persons_share_nothing_is_told():
    assert "no column is `of: person`" in tell_invented(SCHEMA.edit("sex", of=None))
