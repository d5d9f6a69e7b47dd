"""Public rows in a job file: read, labelled by the method that votes, refused elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.images import Images, write_images
from fedsynth.errors import ConfigError, DataError
from fedsynth.jobs import run as job
from fedsynth.jobs.config import load_config
from fedsynth.jobs.loading import load
from fedsynth.methods.pate import student
from fedsynth.release import CONFIG
from fedsynth.schema import Categorical, ImageSchema
from fedsynth.yaml_files import write_yaml
from tests.methods.small import SCHEMA, table


@pytest.fixture(autouse=True)
def _quick_students(monkeypatch):
    """How well a student learns is its own tests' matter."""
    monkeypatch.setattr(student, "_STEPS", 50)


def write_pate_job(folder, **changes):
    """A job of a table, with public rows beside it."""
    SCHEMA.save(folder / "schema.yaml")
    table(90).to_csv(folder / "table.csv", index=False)
    table(40, seed=5).drop(columns="outcome").to_csv(folder / "public.csv", index=False)
    content = {
        "data": {"path": "table.csv"},
        "schema": "schema.yaml",
        "sites": {"clients": 3, "scheme": "uniform"},
        "privacy": {"epsilon": 5.0, "delta": 1e-5},
        "method": "pate",
        "public": {"path": "public.csv"},
        "settings": {"teachers": 4, "queries": 30},
        "sample": {"rows": 20},
    }
    write_yaml({**content, **changes}, folder / "job.yaml")
    return folder / "job.yaml"


def run(path, out):
    config, base = load_config(path)
    return job.start(config, base, out, lambda *told: None)


def test_a_job_labels_the_public_rows_that_it_names(tmp_path):
    outcome = run(write_pate_job(tmp_path), tmp_path / "out")
    rows = pd.read_csv(tmp_path / "out" / "rows.csv")
    public = pd.read_csv(tmp_path / "public.csv")
    known = {tuple(map(str, row)) for row in public.round(1).to_numpy()}
    columns = list(public.columns)
    assert {tuple(map(str, row)) for row in rows[columns].round(1).to_numpy()} <= known
    assert set(rows["outcome"]) <= {"well", "ill"}
    assert outcome.certificate.epsilon <= 5.0
    # The release names them from where it stands, so that it can be resumed from there.
    again, base = load_config(tmp_path / "out" / CONFIG)
    assert (base / again.public.path).resolve() == (tmp_path / "public.csv").resolve()
    assert len(load(tmp_path / "out").sample(5, seed=0)) == 5


def test_public_images_need_no_labels(tmp_path):
    schema = ImageSchema(shape=(8, 8), target=Categorical(name="kind", values=["a", "b"]))
    schema.save(tmp_path / "schema.yaml")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    pixels = (rng.random((60, 8, 8)) * 100 + 100 * labels[:, None, None]).astype(np.uint8)
    write_images(Images(pixels, labels), tmp_path / "owned.npz", schema)
    np.savez(tmp_path / "public.npz", pictures=pixels[:20])
    path = write_pate_job(
        tmp_path,
        data={"path": "owned.npz"},
        public={"path": "public.npz", "key": "pictures"},
        settings={"teachers": 2, "queries": 20},
    )
    schema.save(tmp_path / "schema.yaml")
    run(path, tmp_path / "out")
    assert load(tmp_path / "out").sample(5, seed=0).labels.shape == (5,)


def test_public_rows_of_another_method_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"`public` rows are for the method pate, not aim"):
        load_config(write_pate_job(tmp_path, method="aim", settings={}))


def test_a_file_of_public_rows_that_is_not_there_is_named_with_its_key(tmp_path):
    path = write_pate_job(tmp_path, public={"path": "nowhere.csv"})
    with pytest.raises(DataError, match=r"nowhere.csv.*--set public.path"):
        run(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
