"""An owner's rows beside released ones: what is named, what is noise, and that nothing is kept."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.measures.shifts import codes_apart
from fedsynth.jobs import drifting

SCHEMA = fs.Schema(
    columns=[
        fs.Integer(name="age", lower=0, upper=39),
        fs.Categorical(name="ward", values=["a", "b", "c", "d"], other="d"),
        fs.Boolean(name="well"),
        fs.Identifier(name="who"),
    ],
    person="who",
)


def people(rows=1_500, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 40, rows)
    ward = rng.choice(list("abcd"), rows, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame({"age": age, "ward": ward, "well": age < 20, "who": np.arange(rows)})


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift") / "release"
    # So little that noise moves rows about, and not so little that wards share a code.
    synth = fs.MST(SCHEMA, bins=8, iterations=50)
    tables = [people().iloc[k::3] for k in range(3)]
    synth.fit(tables, fs.Budget(0.3, delta=1e-5, curious=0), insecure_noise_seed=5)
    synth.release(folder, 8_000, seed=0)
    return folder


def test_noise_of_the_release_is_not_called_drift(release):
    found = fs.drift(release, people(8_000, seed=1))
    assert found.differs == () and "No column" in found.sentence
    ward = found.columns[1]
    rows = fs.read_table(release / "rows.csv", SCHEMA)
    own, made = (
        frame["ward"].value_counts().reindex(list("abcd"), fill_value=0).to_numpy(float)
        for frame in (people(8_000, seed=1), rows)
    )
    # So many rows tell it apart, whatever is let pass beside.
    assert codes_apart(own, made, (8_000, 8_000), 0)[1] < 1e-4
    assert 0 < ward.error < 0.5 and ward.distance < ward.error + found.least


def test_a_column_that_moved_is_named_and_no_other(release):
    moved = people(8_000, seed=1)
    moved["ward"] = "d"
    found = fs.drift(release, moved)
    assert found.differs == ("ward",)
    assert "differ from the release in ward" in found.sentence
    assert found.together == pytest.approx(1 / 200)


def test_values_that_the_schema_does_not_know_are_counted(release):
    fresh = people(400, seed=2)
    fresh.loc[:39, "ward"] = "e"
    fresh.loc[:9, "age"] = 77
    columns = {one.name: one for one in fs.drift(release, fresh).columns}
    assert columns["ward"].outside == pytest.approx(0.1)
    assert columns["age"].outside == pytest.approx(0.025)
    with pytest.raises(DataError, match="ward"):
        fs.drift(release, fresh.drop(columns="ward"))


def test_rows_of_few_persons_are_worth_these_persons(release):
    few = people(40, seed=3)
    copied = pd.concat([few] * 50, ignore_index=True)
    once, often = fs.drift(release, few), fs.drift(release, copied)
    assert often.rows == 2_000 and often.worth == pytest.approx(40)
    assert [one.p for one in often.columns] == [one.p for one in once.columns]
    assert often.detectable == once.detectable > 0.2


def test_a_release_that_tells_no_errors_says_that_it_does_not(tmp_path):
    schema = fs.Schema(columns=SCHEMA.columns[:3])
    table = people(60).drop(columns="who")
    fs.FedInfer(schema).fit([table] * 3, epsilon=1.0).release(tmp_path / "r", 200)
    found = fs.drift(tmp_path / "r", table)
    assert {one.error for one in found.columns} == {None}
    assert "does not tell its own error" in found.sentence


def test_the_command_answers_and_writes_nothing(release, tmp_path, call):
    people(300, seed=4).to_csv(tmp_path / "own.csv", index=False)
    before = {path: path.stat().st_mtime_ns for path in [*release.iterdir(), *tmp_path.iterdir()]}
    code, told, _ = call("drift", release, tmp_path / "own.csv")
    assert code == 0 and "No column of your rows differs" in told and "Nothing was sent" in told
    found = json.loads(call("drift", release, tmp_path / "own.csv", "--json")[1])
    assert found["differs"] == [] and len(found["columns"]) == 3
    now = {path: path.stat().st_mtime_ns for path in [*release.iterdir(), *tmp_path.iterdir()]}
    assert now == before


def test_images_have_no_columns(monkeypatch, tmp_path):
    schema = fs.ImageSchema(shape=[2, 2], target=fs.Categorical(name="digit", values=[0, 1]))
    images = fs.Images(np.zeros((8, 2, 2), np.uint8), np.array([0, 1] * 4))
    monkeypatch.setattr(drifting, "read_release", lambda folder: (images, schema, None))
    with pytest.raises(ConfigError, match="of tables"):
        fs.drift(tmp_path, people(10))
