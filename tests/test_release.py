"""Releases: whole or absent, never overwritten, read back as they were."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save

import fedsynth as fs
from fedsynth.errors import ConfigError, PrivacyError, PrivacyWarning, ReleaseError
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.release import read_release, write_release
from tests.small_jobs import SCHEMA, SETTINGS, table

FILES = {
    "certificate.html",
    "certificate.json",
    "config.yaml",
    "ledger.jsonl",
    "model.json",
    "model.safetensors",
    "rows.csv",
    "schema.yaml",
}


@pytest.fixture(scope="module")
def synth():
    schema = fs.Schema.from_dict(SCHEMA)
    return fs.FedVAE(schema, **SETTINGS).fit([table()], fs.Budget(epsilon=5, delta=1e-4))


@pytest.fixture
def release(synth, tmp_path):
    synth.release(tmp_path / "r", synth.sample(30, seed=0))
    return tmp_path / "r"


def test_a_release_holds_its_files_and_verifies(release):
    assert {path.name for path in release.iterdir()} == FILES
    assert all(check.passed for check in fs.verify(release))


def test_a_loaded_release_samples_the_same_rows(synth, release):
    loaded = fs.load(release)
    pd.testing.assert_frame_equal(loaded.sample(40, seed=3), synth.sample(40, seed=3))
    high = loaded.sample(20, where={"income": "high"}, seed=0)
    assert set(high["income"]) == {"high"}
    with pytest.raises(ConfigError, match="no ledger"):
        _ = loaded.ledger


def test_a_ledger_in_memory_is_written_whole_and_bound_to_the_files(synth, release):
    written = Ledger.read(release / "ledger.jsonl")
    assert (written.job, written.events) == (synth.ledger.job, synth.ledger.events)
    assert synth.ledger.closing is None
    assert written.closing.files.keys() == FILES - {
        "ledger.jsonl",
        "certificate.json",
        "certificate.html",
    }


def test_rows_may_be_parquet_and_a_report_may_lie_beside_them(synth, tmp_path):
    rows, test = synth.sample(30, seed=0), synth.sample(40, seed=1)
    report = fs.evaluate(test, rows, synth.schema, public=True, models=["naive Bayes"])
    write_release(tmp_path / "r", synth, rows, report=report, kind="parquet")
    read = fs.read_table(tmp_path / "r" / "rows.parquet", synth.schema)
    pd.testing.assert_frame_equal(read, rows)
    files = json.loads((tmp_path / "r" / "certificate.json").read_text())["files"]
    assert {"rows.parquet", "report.json", "report.html"} < files.keys()
    assert all(check.passed for check in fs.verify(tmp_path / "r"))
    content = json.loads((tmp_path / "r" / "report.json").read_text(encoding="utf-8"))
    assert content == report.to_dict() and content["disclosure"]["public"] is True
    page = tmp_path / "r" / "report.html"
    page.write_bytes(page.read_bytes() + b" ")
    assert not all(check.passed for check in fs.verify(tmp_path / "r"))


def test_a_report_on_private_rows_is_kept_out_of_the_release(synth, tmp_path):
    rows, test = synth.sample(30, seed=0), synth.sample(40, seed=1)
    report = fs.evaluate(test, rows, synth.schema, models=["naive Bayes"])
    with pytest.raises(PrivacyError, match="no epsilon covers it"):
        write_release(tmp_path / "r", synth, rows, report=report)
    assert not (tmp_path / "r").exists()


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_on_private_rows_is_refused_where_the_job_was_fitted(tmp_path):
    """The job's own folder, with its ledger, is left as it was, and may be released later."""
    schema = fs.Schema.from_dict(SCHEMA)
    synth = fs.MST(schema).fit([table()], fs.Budget(epsilon=5, delta=1e-4), folder=tmp_path / "r")
    rows = synth.sample(30, seed=0)
    before = contents(tmp_path / "r")
    report = fs.evaluate(table(40, 1), rows, schema, models=["decision tree"])
    with pytest.raises(PrivacyError, match="no epsilon covers it"):
        write_release(tmp_path / "r", synth, rows, report=report)
    assert contents(tmp_path / "r") == before
    write_release(tmp_path / "r", synth, rows)
    assert all(check.passed for check in fs.verify(tmp_path / "r"))


def test_a_releases_rows_are_read_back_with_their_certificate(synth, release):
    rows, schema, certificate = read_release(release)
    pd.testing.assert_frame_equal(rows, synth.sample(30, seed=0))
    assert schema == synth.schema
    assert certificate.epsilon == pytest.approx(5, abs=0.1)


def test_released_images_are_read_back(image_synth, tmp_path):
    made = image_synth.sample(10, seed=0)
    image_synth.release(tmp_path / "r", made)
    rows, schema, _ = read_release(tmp_path / "r")
    assert schema == image_synth.schema
    np.testing.assert_array_equal(rows.pixels, made.pixels)
    np.testing.assert_array_equal(rows.labels, made.labels)


@pytest.mark.parametrize("name", ["rows.csv", "schema.yaml", "certificate.json"])
@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_damaged_rows_are_not_read_back(release, name, damage):
    path = release / name
    body = path.read_bytes()
    path.unlink()
    if damage == "truncate":
        path.write_bytes(body[: len(body) // 2])
    missing = (name, damage) == ("certificate.json", "remove")
    with pytest.raises(ReleaseError, match="no complete release" if missing else name):
        read_release(release)


def test_rows_that_no_certificate_names_are_not_read(release):
    certificate = json.loads((release / "certificate.json").read_text())
    del certificate["files"]["rows.csv"]
    (release / "certificate.json").write_text(json.dumps(certificate))
    with pytest.raises(ReleaseError):
        read_release(release)


@pytest.fixture(scope="module")
def image_synth():
    rng = np.random.default_rng(0)
    schema = fs.ImageSchema(
        shape=(4, 4), target=fs.Categorical(name="digit", values=("one", "two"))
    )
    owner = fs.Images(rng.integers(0, 255, (60, 4, 4), dtype=np.uint8), np.arange(60) % 2)
    return fs.FedVAE(schema, **SETTINGS).fit([owner], fs.Budget(epsilon=5, delta=1e-4))


def test_images_are_released_as_arrays(image_synth, tmp_path):
    schema = image_synth.schema
    image_synth.release(tmp_path / "r", image_synth.sample(10, seed=0))
    assert len(fs.read_images(tmp_path / "r" / "rows.npz", schema)) == 10
    assert len(fs.load(tmp_path / "r").sample(5, where={"digit": "two"})) == 5


def test_images_that_sample_did_not_give_are_refused(image_synth, tmp_path):
    made = image_synth.sample(10, seed=0)
    for labels in (None, 1 - made.labels):
        with pytest.raises(PrivacyError, match="edited=True"):
            image_synth.release(tmp_path / "r", fs.Images(made.pixels, labels))
    pixels = made.pixels.copy()
    pixels[0, 0, 0] ^= 1
    with pytest.raises(PrivacyError, match="edited=True"):
        image_synth.release(tmp_path / "r", fs.Images(pixels, made.labels))
    edited = image_synth.release(tmp_path / "r", fs.Images(pixels, made.labels), edited=True)
    assert "edited by hand" in edited.content["cautions"][0]
    image_synth.release(tmp_path / "drawn", 12, seed=1)
    drawn = fs.read_images(tmp_path / "drawn" / "rows.npz", image_synth.schema)
    np.testing.assert_array_equal(drawn.pixels, image_synth.sample(12, seed=1).pixels)


def test_nothing_exact_about_the_rows_is_in_the_model(release):
    """Shares come of noisy counts, so they are no multiples of one row."""
    counts = load_file(release / "model.safetensors")["frequencies"] * len(table())
    assert np.abs(counts - np.rint(counts)).max() > 1e-9


def test_a_release_is_never_overwritten(synth, release):
    with pytest.raises(ReleaseError, match="never overwritten"):
        synth.release(release, synth.sample(10))


def test_another_jobs_folder_is_left_alone(synth, tmp_path):
    (tmp_path / "rows.csv").write_text("mine")
    with pytest.raises(ReleaseError, match="not empty and not this job's"):
        synth.release(tmp_path, synth.sample(10))
    assert (tmp_path / "rows.csv").read_text() == "mine"


REAL = table(50, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: REAL,
        lambda rows: pd.concat([rows, REAL.head(1)]),
        lambda rows: rows.head(29),
        lambda rows: rows.sort_values("age", ascending=False),
        lambda rows: rows.assign(age=rows["age"] + 1),
        lambda rows: rows.assign(name="Ann"),
        lambda rows: rows[["income", "colour", "age"]],
        lambda rows: rows.assign(colour=[["red"]] * 30),
    ],
    ids=["real", "one more", "fewer", "sorted", "changed", "wider", "turned", "lists"],
)
def test_rows_that_sample_did_not_give_are_refused(synth, tmp_path, change):
    """Fifty real patients were once published under a certificate that verified."""
    rows = change(synth.sample(30, seed=0))
    with pytest.raises(PrivacyError, match="edited=True"):
        synth.release(tmp_path / "r", rows)
    assert not (tmp_path / "r").exists()


def test_rows_that_sample_gave_are_known_whatever_their_index_and_whenever(synth, tmp_path):
    rows = synth.sample(30, seed=0).set_axis(range(70, 100))
    synth.sample(20, seed=1)
    release = tmp_path / "r"
    assert "edited" not in str(synth.release(release, rows).content)
    again = fs.load(release)
    assert not again.drew(rows)
    assert again.drew(again.sample(30, seed=0)) and again.drew(rows)


def test_another_fits_rows_are_refused(tmp_path):
    synth = fs.MST(fs.Schema.from_dict(SCHEMA))
    rows = synth.fit([table()], fs.Budget(epsilon=5, delta=1e-4)).sample(30, seed=0)
    synth.fit([table(seed=1)], fs.Budget(epsilon=5, delta=1e-4), again=True)
    with pytest.raises(PrivacyError, match="since its last fit"):
        synth.release(tmp_path / "r", rows)


def closing_of(folder):
    return json.loads((folder / "ledger.jsonl").read_text().splitlines()[-1])


def test_edited_rows_are_released_by_a_certificate_that_says_so(synth, tmp_path):
    release, rows = tmp_path / "r", synth.sample(30, seed=0)
    certificate = synth.release(release, rows[rows["age"] > 20], edited=True)
    assert certificate.sentence.endswith("This holds of the model: the rows were edited.")
    assert (
        "nothing checks that these rows hold nothing private" in certificate.content["cautions"][0]
    )
    assert closing_of(release)["edited"] is True
    checks = fs.verify(release)
    assert all(check.passed for check in checks)
    assert any("edited" in check.found for check in checks)
    # Hidden, it shows.
    content = certificate.content
    plain = {**content, "cautions": content["cautions"][1:]}
    (release / "certificate.json").write_text(json.dumps(plain))
    assert not all(check.passed for check in fs.verify(release))


def test_rows_that_were_not_edited_after_all_are_certified_as_drawn(synth, tmp_path):
    certificate = synth.release(tmp_path / "r", synth.sample(30, seed=0), edited=True)
    assert "edited" not in str(certificate.content)
    assert "edited" not in closing_of(tmp_path / "r")


def test_a_budget_that_promises_little_warns_before_anybody_is_asked(monkeypatch):
    def ask(*_):
        raise KeyboardInterrupt

    synth = fs.MST(fs.Schema.from_dict(SCHEMA))
    monkeypatch.setattr(fs.MST, "learn", ask)
    with (
        pytest.warns(PrivacyWarning, match="epsilon 11 is above 10"),
        pytest.raises(KeyboardInterrupt),
    ):
        synth.fit([table()], fs.Budget(epsilon=11))


@pytest.mark.parametrize("name", ["MST", "PrivateFusion"])
def test_a_budget_is_held_to_the_noisy_count_where_none_is_public(name):
    def remarks(**budget):
        synth = getattr(fs, name)(fs.Schema.from_dict(SCHEMA))
        return synth.fit([table(2000)], fs.Budget(**budget), insecure_noise_seed=0).remarks

    (large,) = remarks(epsilon=5, delta=1e-2)
    assert large.startswith("by the noisy count of records, delta 0.01 is at least 1/")
    (small,) = remarks(epsilon=0.01)
    assert small.startswith("by the noisy count of records, epsilon 0.01 is little for ")
    assert remarks(epsilon=5, delta=1e-4) == remarks(epsilon=5, delta=1e-4, units=2000) == ()


def test_a_release_draws_its_own_rows(synth, tmp_path):
    synth.release(tmp_path / "r", 40, seed=3)
    pd.testing.assert_frame_equal(read_release(tmp_path / "r")[0], synth.sample(40, seed=3))
    synth.release(tmp_path / "default")
    assert len(read_release(tmp_path / "default")[0]) == 10_000


@pytest.mark.parametrize(
    "options",
    [
        {"rows": 0},
        {"rows": True},
        {"rows": 30, "edited": True},
        {"rows": 30, "report": object()},
        {"rows": REAL, "seed": 1},
    ],
)
def test_options_of_a_release_that_do_not_go_together_are_refused(synth, tmp_path, options):
    with pytest.raises(ConfigError):
        synth.release(tmp_path / "r", **options)
    assert not (tmp_path / "r").exists()


def test_rows_of_another_kind_are_refused(synth, tmp_path):
    images = fs.Images(np.zeros((2, 4, 4), np.uint8))
    with pytest.raises(ReleaseError, match="not of the kind"):
        synth.release(tmp_path / "r", images)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "schema.yaml"])
@pytest.mark.parametrize("damage", ["truncate", "remove", "flip"])
def test_a_damaged_model_is_not_loaded(release, name, damage):
    path = release / name
    body = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        half = len(body) // 2
        flipped = bytes([body[half] ^ 1]) + body[half + 1 :]
        path.write_bytes(body[:half] + (b"" if damage == "truncate" else flipped))
    with pytest.raises(ReleaseError, match=name):
        fs.load(release)


def test_a_release_without_its_certificate_is_none(release):
    (release / "certificate.json").unlink()
    with pytest.raises(ReleaseError, match="no complete release"):
        fs.load(release)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": 1', b"[1]", b"\xff\xfe"])
def test_a_damaged_certificate_is_named(release, content):
    (release / "certificate.json").write_bytes(content)
    with pytest.raises(ReleaseError, match=r"certificate\.json"):
        fs.load(release)


def test_weights_that_do_not_fit_the_spec_are_refused(release):
    """Even with hashes that agree: whoever forges a release can forge those."""
    from fedsynth.privacy.trail.certificate import sha256

    arrays = load_file(release / "model.safetensors")
    weights = save({**arrays, "theta": np.zeros(3, np.float32)})
    (release / "model.safetensors").write_bytes(weights)
    certificate = json.loads((release / "certificate.json").read_text())
    certificate["files"]["model.safetensors"] = sha256(release / "model.safetensors")
    (release / "certificate.json").write_text(json.dumps(certificate))
    with pytest.raises(ReleaseError, match="weights"):
        fs.load(release)


def test_comments_of_a_schema_stay_with_whoever_wrote_them(tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text(
        "columns:\n- {kind: boolean, name: a}  # as Dr Snow told\n- {kind: boolean, name: b}\n"
    )
    synth = fs.MST(fs.Schema.load(path))
    frame = pd.DataFrame({"a": [True, False] * 9, "b": [False] * 18})
    budget = fs.Budget(epsilon=math.inf, trust="central")
    synth.fit({"north": frame}, budget).release(tmp_path / "r", rows=5, seed=1)
    assert not any(b"Snow" in file.read_bytes() for file in (tmp_path / "r").iterdir())
