"""Private selection: one entry for all trials, and nothing of them but the best."""

from __future__ import annotations

import json
import logging
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError, FederationError, PrivacyError
from fedsynth.federation.simulation import repeats
from fedsynth.privacy.adversaries import HOLDER
from fedsynth.privacy.selecting import Selecting
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trials import Trials
from fedsynth.tuning import privately
from tests.small_jobs import SCHEMA, table

SMALL = fs.Schema.from_dict(SCHEMA)
OWNERS = {"north": table(400, 1), "south": table(300, 2)}
BUDGET = {"epsilon": 4.0, "delta": 1e-4, "trust": "central"}
TRIED = [fs.PrivateFusion(SMALL), fs.PrivateFusion(SMALL, moment_share=0.1)]


def select(folder, **more):
    return fs.select_privately(TRIED, OWNERS, folder, **{**BUDGET, "rows": 50, "trials": 3, **more})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A selection, its folder, and what was said and remembered of it meanwhile."""
    folder = tmp_path_factory.mktemp("selection") / "release"
    before, cautions = set(repeats._JOBS), []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        best = select(folder, caution=cautions.append)
    told = [*cautions, *(str(one.message) for one in warned)]
    return best, folder, told, set(repeats._JOBS) - before


@pytest.fixture
def quick(monkeypatch):
    """Trials that cost no time: each scores what its turn says."""

    def trying(scores, number=None):
        turns = iter(scores)

        def run(self):
            value = next(turns)
            if isinstance(value, Exception):
                raise value
            synth = SimpleNamespace(account_by=lambda ledger: None)
            return value, 0, synth, None

        monkeypatch.setattr(privately._Trying, "run", run)
        monkeypatch.setattr(Trials, "draw", lambda self, source: number or len(scores))

    return trying


def test_the_best_trial_is_a_release_that_verifies_within_the_budget(found):
    best, folder, _, _ = found
    checks = fs.verify(folder)
    assert checks.passed, checks
    assert 0.98 * 4 < best.certificate.epsilon <= 4
    assert len(fs.load(folder).sample(5, seed=1)) == len(best.best.sample(5)) == 5
    assert best.each < 4 and best.trials.mean == 3


def test_one_entry_charges_all_of_it_and_no_other_is_made(found):
    best, folder, _, _ = found
    (event,) = Ledger.read(folder / "ledger.jsonl").events
    assert isinstance(event.terms, Selecting)
    # The candidates' one message and the scores' cost alike, and a record is in one of them.
    (((terms, count),),) = event.terms.parts
    assert count == 1 and terms.noise_multiplier > 1
    holder = best.certificate.content["adversaries"][0]
    assert holder["who"] == HOLDER and holder["promised"]
    assert not any(one["promised"] for one in best.certificate.content["adversaries"][1:])


def test_the_page_tells_of_the_trials_noise_and_of_no_account(found):
    _, folder, _, _ = found
    page = (folder / "certificate.html").read_text()
    assert "Gaussian noise is drawn as whole numbers" in page and "kind selection" not in page
    assert "charged to no account" in page


def test_nothing_tells_how_many_trials_there_were(found):
    _, folder, told, remembered = found
    assert told == [] and len(remembered) == 1
    names = {path.name for path in folder.iterdir()}
    assert names == {"rows.csv", "schema.yaml", "config.yaml", "ledger.jsonl", "model.json",
                     "model.safetensors", "certificate.json", "certificate.html"}  # fmt: skip
    # The ledger was begun before the first trial, and its time must not say when.
    ledger, rows = (folder / name for name in ("ledger.jsonl", "rows.csv"))
    assert ledger.stat().st_mtime_ns >= rows.stat().st_mtime_ns
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["job", "event", "closing"]


def test_whoever_swaps_the_law_or_a_noise_is_found_out(found, tmp_path):
    """A certificate for fewer trials, or of a method that was no candidate, does not verify."""
    _, folder, _, _ = found
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace("trials: 3.0", "trials: 2.0"))
    failed = {one.name for one in fs.verify(copy) if not one.passed}
    assert "config.yaml" in failed and "job" in failed


def test_the_charge_is_on_disk_before_the_first_trial(tmp_path, monkeypatch):
    """A trial that ends the process leaves what it cost behind, and nothing else."""

    def run(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(privately._Trying, "run", run)
    account = Ledger.of_owner(
        tmp_path / "north.jsonl", fs.Budget(epsilon=9.0, delta=1e-4, trust="central")
    )
    with pytest.raises(KeyboardInterrupt):
        select(tmp_path / "release", owners_ledgers={"north": account}, trials=8)
    account.close()
    assert [path.name for path in (tmp_path / "release").iterdir()] == ["ledger.jsonl"]
    (event,) = Ledger.read(tmp_path / "release/ledger.jsonl").events
    (own,) = Ledger.read(tmp_path / "north.jsonl").events
    assert own == event


def test_the_highest_score_is_taken_and_a_failure_hides(quick, tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(privately, "write_release", lambda *given, **more: taken.append(more))
    monkeypatch.setattr(privately, "load", lambda folder: None)
    scores = [0.3, DataError("a private cell"), 0.7, -math.inf, 0.5]
    quick(scores)
    assert select(tmp_path / "release").score == 0.7
    assert taken[0]["config"]["score"] == 0.7


def test_a_trial_that_asked_more_than_was_charged_ends_it():
    plan = TRIED[0].plan(fs.Budget(**BUDGET), 2)
    (one,) = plan.releases
    privately._demand_planned(SimpleNamespace(counts={one.terms: 1}), plan)
    for counts in ({one.terms: 2}, {replace(one.terms, noise_multiplier=9.0): 1}):
        with pytest.raises(PrivacyError, match="asked more than was charged"):
            privately._demand_planned(SimpleNamespace(counts=counts), plan)


def test_where_every_trial_fails_only_that_is_told(quick, tmp_path):
    quick([DataError("a private cell"), ValueError("another")])
    with pytest.raises(FederationError, match="no trial gave rows") as told:
        select(tmp_path / "release")
    assert "private" not in str(told.value) and told.value.__context__ is None


@pytest.mark.parametrize("name", ["fedsynth", "fedsynth.client", "sklearn"])
def test_logs_are_silent_while_it_tries_and_speak_again_after(name, caplog):
    """Loggers with a level of their own, too, as a client's has under --debug."""
    log = logging.getLogger(name)
    with caplog.at_level(logging.INFO, name):
        with privately._silence():
            log.critical("a trial failed")
        assert not caplog.records
        log.warning("afterwards")
    assert [one.message for one in caplog.records] == ["afterwards"]


def test_an_account_that_cannot_carry_it_ends_it_before_anything_is_written(tmp_path):
    account = Ledger.of_owner(
        tmp_path / "north.jsonl", fs.Budget(epsilon=1.0, delta=1e-4, trust="central")
    )
    with pytest.raises(PrivacyError, match="account of north"):
        select(tmp_path / "release", owners_ledgers={"north": account})
    assert not account.events and not (tmp_path / "release").exists()
    account.close()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"trust": "distributed"}, PrivacyError, "only a trusted server"),
        ({"trust": "local"}, PrivacyError, "only a trusted server"),
        ({"unit": "client"}, ConfigError, "protects records"),
        ({"epsilon": math.inf}, ConfigError, "finite epsilon"),
        ({"trials": 0.5}, ConfigError, "trials"),
        ({"holdout": 0}, ConfigError, "holdout"),
        ({"score": "aurok"}, ConfigError, "did you mean 'auroc'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(change, error, said, tmp_path):
    with pytest.raises(error, match=said):
        select(tmp_path / "release", **change)
    assert not (tmp_path / "release").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        select(tmp_path)


def test_every_record_is_fitted_to_or_scored_on_and_never_both(quick, tmp_path, monkeypatch):
    """Or a trial would cost it the sum of both, and not the larger."""
    owners = {name: rows.assign(a=range(len(rows))) for name, rows in OWNERS.items()}
    learned, held = privately._cut(owners, TRIED[0].schema, 0.25, privately.NoiseSource(0))
    for name, rows in owners.items():
        parts = [set(part[name]["a"]) for part in (learned, held)]
        assert not parts[0] & parts[1] and parts[0] | parts[1] == set(rows["a"])
        assert len(parts[1]) == pytest.approx(len(rows) / 4, rel=0.4)
    # Where persons are told apart, all of somebody's rows lie on one side.
    named = fs.Schema(columns=[fs.Identifier(name="k"), *TRIED[0].schema.columns], person="k")
    persons = {name: rows.assign(k=rows["a"] // 5) for name, rows in owners.items()}
    parts = privately._cut(persons, named, 0.25, privately.NoiseSource(0))
    for name in owners:
        keys = [set(part[name]["k"]) for part in parts]
        assert keys[0] and keys[1] and not keys[0] & keys[1]
    # And trials get these two, no other.
    cuts, seen = [], []
    cut = privately._cut
    monkeypatch.setattr(privately, "_cut", lambda *given: cuts.append(cut(*given)) or cuts[-1])
    monkeypatch.setattr(privately, "_best", lambda trying, law: seen.append(trying))
    with pytest.raises(FederationError, match="no trial"):
        select(tmp_path / "r")
    (both,), (trying,) = cuts, seen
    assert trying.held is both[1]
    assert trying.learned._records == {name: len(rows) for name, rows in both[0].items()}
