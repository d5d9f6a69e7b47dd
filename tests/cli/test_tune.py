"""`fedsynth tune`: searched in a terminal, kept in files, real figures apart."""

from __future__ import annotations

import json
import re

import pytest

import fedsynth as fs
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.tuning import tuning
from fedsynth.yaml_files import write_yaml
from tests.methods.small import SCHEMA, table
from tests.tuning.conftest import release

SEARCH = ("--model", "k nearest neighbours", "--trials", 2, "--rows", 250)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return release(tmp_path_factory.mktemp("tuned") / "release", SCHEMA, table(400))


@pytest.fixture
def real(tmp_path):
    """Options that name real rows to train and to test on."""
    for name, count, seed in (("train", 250, 5), ("test", 80, 6)):
        rows = table(count, seed)
        # Dealt anew, so that no score is 1, as one on synthetic rows may be.
        rows[SCHEMA.target] = rows[SCHEMA.target].sample(frac=1, random_state=1).to_numpy()
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    return "--train", tmp_path / "train.csv", "--real", tmp_path / "test.csv"


def test_progress_tells_the_best_so_far_unless_quiet(call, folder):
    code, out, err = call("tune", folder, *SEARCH)
    assert code == 0 and "k nearest neighbours: settings found" in out
    assert re.fullmatch(r"(candidates [12]/2, best so far [.0-9]+\n){2}", err)
    code, again, err = call("tune", folder, *SEARCH, "--quiet")
    assert (code, again, err) == (0, out, "")


def test_what_was_found_is_kept_in_files_and_goes_on_from_a_storage(call, folder, tmp_path):
    options = (*SEARCH, "--storage", tmp_path / "s.db", "--quiet", "--json")
    files = ("--out", tmp_path / "found", "--plot", tmp_path / "found.svg")
    code, out, _ = call("tune", folder, *options, *files)
    found = json.loads(out)
    assert code == 0 and found["candidates"] == 2 and "private" not in found
    assert json.loads((tmp_path / "found" / "settings.json").read_text()) == found
    assert (tmp_path / "found.svg").read_text().startswith("<svg")
    code, out, _ = call("tune", folder, *options, "--trials", 3)
    assert code == 0 and json.loads(out)["candidates"] == 3


@pytest.mark.parametrize("kept", [True, False])
def test_who_interrupts_a_search_is_told_how_it_goes_on(call, folder, tmp_path, monkeypatch, kept):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "score_model", interrupt)
    options = ("--storage", tmp_path / "s.db") if kept else ()
    code, _, err = call("tune", folder, *SEARCH, *options)
    assert code == 130
    assert (f"goes on from {tmp_path / 's.db'}" if kept else "Nothing was kept") in err


def test_figures_of_real_rows_are_told_as_private_and_kept_nowhere(call, folder, real, tmp_path):
    options = (*SEARCH, *real, "--folds", 2, "--quiet", "--out", tmp_path / "found")
    code, out, _ = call("tune", folder, *options)
    assert code == 0 and "no epsilon covers them" in " ".join(out.split())
    tuned = re.search(r"settings found on synthetic rows +([.0-9]+)", out)[1]
    kept = {file.name: file.read_text() for file in (tmp_path / "found").iterdir()}
    assert [name for name, text in kept.items() if tuned in text] == [], tuned
    code, out, _ = call("tune", folder, *SEARCH, *real, "--quiet", "--json")
    assert code == 0 and set(json.loads(out)["private"]) == {"metric", "default", "tuned"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--train", "a.csv"), "--train and --real go together"),
        (("--folds", 3), "--folds goes with --train and --real"),
        (("--plot", "a.gif"), ".svg"),
        (("--model", "k nearest neighbour"), "did you mean 'k nearest neighbours'"),
        (("--storage", "none/s.db"), "choose another place"),
    ],
)
def test_options_that_do_not_go_are_told_before_anything_is_tried(call, folder, given, words):
    code, out, err = call("tune", folder, *SEARCH, *given)
    assert code == 2 and not out and words in err and "candidates" not in err


def test_files_that_exist_are_told_before_anything_is_tried(call, folder, tmp_path):
    (tmp_path / "a.svg").touch()
    for option, path in (("--out", tmp_path), ("--plot", tmp_path / "a.svg")):
        code, out, err = call("tune", folder, *SEARCH, option, path)
        assert code == 2 and not out and "exists already" in err and "candidates" not in err


def test_real_rows_that_do_not_fit_are_told_before_anything_is_tried(call, folder, real):
    _, train, _, test = real
    test.write_text(train.read_text().replace("age", "years", 1))
    code, _, err = call("tune", folder, *SEARCH, *real)
    assert code != 0 and "test.csv: lacks columns of the schema: 'age'" in err
    assert "candidates" not in err


def test_what_is_no_release_is_told(call, tmp_path):
    code, _, err = call("tune", tmp_path, *SEARCH)
    assert code != 0 and "no complete release" in err


def test_images_are_tuned_against_files_of_images(call, tmp_path):
    from tests.evaluation.image_samples import SCHEMA as PICTURES
    from tests.evaluation.image_samples import drawn

    made = {"hidden": 8, "steps": 5, "batch": 20, "channels": 0, "random_features": 20, "patch": 0}
    synth = fs.MeanEmbedding(PICTURES, **made)
    synth.fit(drawn(60, 1), {"epsilon": 20.0, "curious": 0}, insecure_noise_seed=0)
    synth.release(tmp_path / "pictures", rows=60, seed=1)
    for name, seed in (("train", 2), ("test", 3)):
        fs.write_images(drawn(60, seed), tmp_path / f"{name}.npz", PICTURES)
    real = ("--train", tmp_path / "train.npz", "--real", tmp_path / "test.npz")
    code, out, _ = call("tune", tmp_path / "pictures", "--trials", 1, *real, "--quiet", "--json")
    found = json.loads(out)
    assert code == 0 and found["model"] == "student network"
    assert found["private"]["default"] > 0.8


def test_a_space_is_searched_as_it_is_written_and_a_misspelt_setting_is_named(call, folder):
    space = ("--space", "{n_neighbors: {from: 7, to: 9}, weights: [uniform]}")
    code, out, _ = call("tune", folder, *SEARCH, *space, "--quiet", "--json")
    settings = json.loads(out)["settings"]
    assert code == 0 and 7 <= settings["n_neighbors"] <= 9 and settings["weights"] == "uniform"
    code, _, err = call("tune", folder, *SEARCH, "--space", "{n_neighbours: [3, 5]}")
    assert code == 2 and "did you mean 'n_neighbors'" in err


def write_owners(folder, **changes):
    """A job of owners' rows; nobody is drawn, which takes the accountant no time."""
    SCHEMA.save(folder / "schema.yaml")
    table(120).to_csv(folder / "rows.csv", index=False)
    job = {
        "data": {"path": "rows.csv"},
        "schema": "schema.yaml",
        "sites": {"clients": 2, "scheme": "uniform"},
        "privacy": {"epsilon": 3.0, "delta": 1e-4, "trust": "central"},
        "method": "federated-classifier",
        "settings": {"rounds": 2, "rate": 1.0},
    }
    write_yaml({k: v for k, v in {**job, **changes}.items() if v is not None}, folder / "job.yaml")
    return folder / "job.yaml"


LOGISTIC = ("--model", "logistic regression", "--trials", 2, "--rows", 250, "--quiet")


def test_the_winner_is_trained_once_on_owners_rows_at_a_cost_of_its_own(call, folder, tmp_path):
    options = ("--federate", write_owners(tmp_path), "--out", tmp_path / "found", "--json")
    code, out, err = call("tune", folder, *LOGISTIC, *options)
    assert code == 0, err
    told = json.loads(out)
    release_, trained = tmp_path / "found" / "classifier", told["trained"]
    assert trained["epsilon"] <= 3.0 and call("verify", release_)[0] == 0
    settings = fs.FederatedClassifier.load(release_).settings
    assert settings.weight_decay == told["federated"]["weight_decay"] > 0
    # Of the job, what the search says nothing of.
    assert (settings.rounds, settings.rate) == (2, 1.0)
    # One training is charged: the default, which it is held against, leaves nothing.
    ledger = Ledger.read(release_ / "ledger.jsonl")
    assert [event.label for event in ledger.events].count("classifier-gradient") == 2
    assert set(trained["scores"]["default"]) == set(trained["scores"]["comparison"]["classifier"])


@pytest.mark.parametrize(
    ("model", "change", "out", "words"),
    [
        ("k nearest neighbours", {}, True, "no federated form"),
        ("logistic regression", {}, False, "--out"),
        ("logistic regression", {"method": "aim", "settings": None}, True, "method is another"),
        (
            "logistic regression",
            {
                "federation": {"runtime": "stream", "owners": ["a", "b"]},
                "data": None,
                "sites": None,
            },
            True,
            "settings.json in --out has what was found",
        ),
    ],
)
def test_a_job_that_cannot_train_the_winner_is_refused_before_the_search(
    call, folder, tmp_path, monkeypatch, model, change, out, words
):
    monkeypatch.setattr(tuning, "score_model", None)
    options = ("--federate", write_owners(tmp_path, **change))
    options += ("--out", tmp_path / "found") if out else ()
    code, _, err = call("tune", folder, "--model", model, "--trials", 1, *options)
    assert code == 2 and words in " ".join(err.split())
