"""The command line: each fault one message and its exit code, each command what it says."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import fedsynth
from fedsynth.cli import app as cli
from fedsynth.methods.copula import families
from fedsynth.methods.sampling import classifier
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries import session
from fedsynth.queries.tasks.counting import HISTOGRAM
from fedsynth.schema import Identifier, Integer, Schema
from fedsynth.yaml_files import read_yaml, write_yaml
from tests.methods.small import answering
from tests.small_jobs import SCHEMA, SETTINGS, table, write_job


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    assert cli.run(["run", str(write_job(folder)), "--out", str(folder / "r"), "--quiet"]) == 0
    return folder / "r"


def copy(release, target):
    target.mkdir()
    for path in release.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_help_documents_the_exit_codes(call):
    code, out, _ = call("--help")
    assert code == 0
    assert all(word in out for word in ("Exit codes", "130", "--debug", "run", "verify", "schema"))


def test_run_shows_progress_paths_guarantee_and_scores(call, tmp_path):
    code, out, err = call("run", write_job(tmp_path), "--out", tmp_path / "r")
    assert code == 0
    assert "training 6/6, epsilon spent" in err
    assert str(tmp_path / "r" / "rows.csv") in out
    assert "Adding or removing any one record" in out
    assert "real rows" in out and "AUROC" in out and "do not publish" in out
    assert not (tmp_path / "r" / "checkpoint").exists()


def test_a_client_that_was_dropped_is_named_with_stage_rounds_and_reason(
    call, tmp_path, monkeypatch
):
    answering(monkeypatch, 2)
    job = write_job(tmp_path, method="mst", settings=None, federation={"survivors": 0.6}, holdout=0)
    code, out, _ = call("run", job, "--out", tmp_path / "r", "--json", "--quiet")
    content = json.loads(out)
    assert code == 0
    assert content["incidents"] == [
        {"stage": stage, "client": "client-02", "reason": "did not answer", "rounds": rounds}
        for stage, rounds in (("histogram", 1), ("marginals", 2))
    ]
    assert "marginals (2 rounds) lacks client-02 in 2: did not answer" in content["remarks"]


def test_an_owner_beyond_the_agreed_number_of_records_stops_a_job_before_it_begins(call, tmp_path):
    job = write_job(tmp_path, method="mst", settings=None, federation={"most_records": 50})
    code, _, err = call("run", job, "--out", tmp_path / "r", "--quiet")
    assert code == 3 and "client-00 has more than 50 records" in err
    assert not (tmp_path / "r").exists()


def test_scores_are_printed_and_not_released(call, tmp_path):
    code, out, err = call("run", write_job(tmp_path), "--out", tmp_path / "r", "--json", "--quiet")
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert set(content["scores"]) == {"note", "comparison", "marginals", "why"}
    assert 40 not in list(leaves(content["scores"])), "the exact number of rows held out"
    assert "auroc" in content["scores"]["comparison"]["synthetic"]
    released = b"".join(path.read_bytes() for path in (tmp_path / "r").iterdir())
    # A round score, such as 0.5, may stand anywhere.
    figures = [repr(one) for one in leaves(content["scores"]) if len(repr(one)) > 12]
    assert len([one for one in figures if one.startswith("0.")]) > 2
    assert b"auroc" not in released and not any(one.encode() in released for one in figures)


def leaves(value):
    """Every plain value in lists and mappings."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def keys(value):
    """The shape of a mapping: its keys, all the way down."""
    return {k: keys(v) for k, v in value.items()} if isinstance(value, dict) else None


def shown_of(call, folder, records, holdout):
    """All that anybody sees of a job over so many records an owner, and of scores in a budget,
    beside what was released."""
    paths = {}
    for name, rows in records.items():
        write_job(folder / name, table(rows))
        paths[name] = f"{name}/table.csv"
    changes = {"sites": {"paths": paths}, "holdout": holdout, "method": "mst", "settings": None}
    changes["privacy"] = {"epsilon": 1.0, "delta": 1e-5, "curious": 1}
    job, release, scores = write_job(folder, data=None, **changes), folder / "r", folder / "s"
    code, out, err = call("run", job, "--out", release, "--json")
    content = json.loads(out)
    accounts = [folder / owner / "accounts" / f"{owner}.jsonl" for owner in records]
    assert content["accounts"] == [str(file) for file in accounts]
    assert all(
        Ledger.read(file).events == Ledger.read(release / "ledger.jsonl").events
        for file in accounts
    )
    if holdout:
        # What they are is the eyes' of who holds the rows; that they are is everybody's.
        content["scores"] = dict.fromkeys(content["scores"])
    shown = [code, err, keys(content)]
    if holdout:
        code, out, err = call("evaluate", release, "--epsilon", 1, "--out", scores, "--json")
        shown += [code, err, keys(json.loads(out))]
    shown.append(sorted(str(path.relative_to(folder)) for path in folder.glob("[rs]/**/*")))
    shown.append((release / "ledger.jsonl").read_text().count("\n"))
    return shown


@pytest.mark.parametrize("holdout", [0, 0.2])
def test_no_number_of_records_is_seen_beside_the_release(call, tmp_path, holdout, monkeypatch):
    """Not even that there is none: exit codes, progress, files, what JSON holds."""
    # Where a job takes long, the epsilon of its progress is told between rounds too.
    monkeypatch.setattr(session, "_SHOW_EPSILON_EVERY", math.inf)
    first, *others = [
        shown_of(call, tmp_path / f"{north}-{south}", {"north": north, "south": south}, holdout)
        for north, south in ((0, 0), (0, 1), (20, 2))
    ]
    assert first[0] == 0 and all(other == first for other in others)


def test_scores_that_cannot_be_had_end_no_job(call, tmp_path):
    frame = table(20).assign(income="none of them")
    changes = {"method": "mst", "settings": None, "outside": "allow"}
    job = write_job(tmp_path, frame, **changes)
    code, out, err = call("run", job, "--out", tmp_path / "r", "--quiet")
    assert "client-02: income 100% (6 rows are left out for it)" in err
    assert code == 0 and "None. real test: every row has a cell outside the schema" in out


def test_a_budget_that_promises_little_is_cautioned_of_on_every_face(call, tmp_path):
    privacy = {"epsilon": 20.0, "delta": 1e-3}
    changes = {"method": "mst", "settings": None, "privacy": privacy, "holdout": 0.2}
    code, out, err = call("run", write_job(tmp_path, **changes), "--out", tmp_path / "r")
    assert code == 0
    cautions = json.loads((tmp_path / "r" / "certificate.json").read_text())["cautions"]
    for said, sentence in zip(("delta 0.001", "epsilon 20"), cautions, strict=True):
        assert sentence.startswith(f"{said} is above")
        # Before the first question, and again beside the certificate.
        assert f"Caution: {sentence}" in err.split("epsilon spent")[0]
        assert sentence in out
    asked = ("--epsilon", 11, "--delta", 1e-3, "--out", tmp_path / "s", "--quiet")
    code, out, err = call("evaluate", tmp_path / "r", *asked)
    assert code == 0 and err.count("Caution: ") == 2 and "epsilon 11 is above 10" in err + out


def test_an_owner_far_outside_the_schema_stops_a_job_before_it_begins(call, tmp_path):
    frame = table(40)
    frame.loc[:9, "colour"] = "mauve"
    changes = {"method": "mst", "settings": None, "holdout": 0}
    changes["sites"] = {"clients": 1, "scheme": "uniform"}
    job = write_job(tmp_path, frame, **changes)
    code, out, err = call("run", job, "--out", tmp_path / "r", "--quiet")
    assert code == 3 and out == "" and "client-00: colour. " in err
    assert not (tmp_path / "r").exists()
    allowed = ("--set", "outside=0.25", "--out", tmp_path / "r", "--quiet", "--json")
    code, out, err = call("run", job, *allowed)
    assert code == 0 and err.startswith("Caution: ") and "client-00: colour 25%" in err
    # No figure of it goes further than to the person who holds the rows.
    assert json.loads(out)["remarks"] == [] and "outside the schema" not in out
    for file in (tmp_path / "r").iterdir():
        assert b"outside the schema" not in file.read_bytes(), file.name


def test_names_that_rows_tell_are_cautioned_of_before_anybody_is_asked(call, tmp_path):
    frame = table().assign(town=np.arange(200) % 2)
    privacy = {"epsilon": 1.0, "delta": 1e-5, "curious": 1}
    changes = {"method": "mst", "settings": None, "sites": {"column": "town"}, "privacy": privacy}
    code, out, err = call("run", write_job(tmp_path, frame, **changes), "--out", tmp_path / "r")
    said = "The owners' names were read off private rows"
    assert code == 0 and err.startswith(f"Caution: {said}")
    content = json.loads((tmp_path / "r" / "certificate.json").read_text())
    assert content["not_covered"][0].startswith(said) and said in out
    assert call("verify", tmp_path / "r")[0] == 0
    asked = ("--epsilon", 1, "--out", tmp_path / "s", "--quiet")
    code, out, err = call("evaluate", tmp_path / "r", *asked)
    assert code == 0 and err.startswith(f"Caution: {said}")
    assert said in (tmp_path / "s" / "certificate.json").read_text()
    changes["sites"]["names"] = ["0", "1", "2"]
    again = call("run", write_job(tmp_path, frame, **changes), "--out", tmp_path / "t", "--quiet")
    assert (again[0], again[2]) == (0, "") and said not in again[1]
    assert "owners_provenance" not in (tmp_path / "t" / "ledger.jsonl").read_text()


def test_the_jobs_folder_tells_the_whole_job(call, release, tmp_path):
    """Its own config.yaml runs again, from its own schema and the same data."""
    assert read_yaml(release / "config.yaml", ValueError)["schema"] == "schema.yaml"
    code, *_ = call("run", release / "config.yaml", "--out", tmp_path / "again", "--quiet")
    assert code == 0


def test_without_out_each_run_gets_a_folder_of_its_own(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = write_job(tmp_path, holdout=0)
    for name in ("job", "job-2"):
        assert call("run", job, "--quiet")[0] == 0
        assert (tmp_path / "runs" / name / "certificate.json").exists()


def test_sample_draws_what_is_asked(call, release, tmp_path):
    target = tmp_path / "more.csv"
    draw = ("sample", release, "-n", 25, "--where", "income=high", "--seed", 1, "-o")
    assert call(*draw, target)[0] == 0
    assert list(pd.read_csv(target)["income"]) == ["high"] * 25
    assert call(*draw, tmp_path / "same.csv")[0] == 0
    assert (tmp_path / "same.csv").read_bytes() == target.read_bytes()
    code, out, err = call(*draw, "-")
    assert (code, out.encode()) == (0, target.read_bytes()) and "25 synthetic rows" in err
    code, _, err = call(*draw, target)
    assert code == 2 and "exists already" in err


@pytest.fixture(scope="module")
def auto_release(tmp_path_factory):
    """A release by the method that suits the job."""
    folder = tmp_path_factory.mktemp("auto")
    job = write_job(folder, method="auto", settings=None)
    assert cli.run(["run", str(job), "--out", str(folder / "r"), "--quiet"]) == 0
    return folder / "r"


def test_auto_says_which_method_and_why(call, tmp_path):
    job = write_job(tmp_path, method="auto", settings=None)
    code, out, _ = call("run", job, "--out", tmp_path / "r", "--json", "--quiet")
    content = json.loads(out)
    assert (code, content["method"]) == (0, "aim") and "3 columns" in content["reason"]
    assert read_yaml(tmp_path / "r" / "config.yaml", ValueError)["method"] == "aim"
    code, out, _ = call("run", job, "--out", tmp_path / "again")
    assert code == 0 and "Method: aim, because" in out
    named = write_job(tmp_path / "named", method="mst", settings=None)
    code, out, _ = call("run", named, "--out", tmp_path / "named" / "r", "--json", "--quiet")
    assert (json.loads(out)["method"], json.loads(out)["reason"]) == ("mst", None)


def test_settings_without_a_method_are_refused(call, tmp_path):
    code, _, err = call("run", write_job(tmp_path, method="auto"), "--out", tmp_path / "r")
    assert code == 2 and "name it, instead of auto" in err


def test_rows_meet_conditions_on_any_columns(call, auto_release, tmp_path):
    target = tmp_path / "some.csv"
    conditions = ("--where", "age=30..34", "--where", "colour=[red]", "--where", "income=high")
    assert call("sample", auto_release, "-n", 40, *conditions, "-o", target)[0] == 0
    rows = pd.read_csv(target)
    assert rows["age"].between(30, 34).all() and (rows["colour"] == "red").all()
    assert (rows["income"] == "high").all()
    for number, (condition, said) in enumerate(
        [("age=50..20", "no value"), ("agee=3", "did you mean"), ("age=..", "range")]
    ):
        code, _, err = call(
            "sample", auto_release, "-n", 5, "--where", condition, "-o", tmp_path / f"{number}.csv"
        )
        assert code == 2 and said in err
    assert not list(tmp_path.glob("[0-9].csv"))


def test_counts_are_answered_with_intervals(call, auto_release, release, tmp_path):
    target = tmp_path / "counts.csv"
    assert call("count", auto_release, "income", "colour", "-o", target)[0] == 0
    counts = pd.read_csv(target)
    assert list(counts) == ["income", "colour", "count", "low", "high"] and len(counts) == 6
    assert counts["count"].sum() == pytest.approx(160, abs=40)
    assert (counts["low"] <= counts["high"]).all()
    code, out, _ = call("count", auto_release, "income", "colour", "--json")
    assert code == 0
    pd.testing.assert_frame_equal(pd.DataFrame(json.loads(out)), counts)
    code, out, _ = call("count", auto_release, "income", "--where", "age=40..63")
    assert code == 0 and "high" in out
    code, _, err = call("count", auto_release, "incom")
    assert code == 2 and "did you mean 'income'" in err
    code, _, err = call("count", release, "income")
    assert code == 2 and "made by fedvae" in err


def test_gaps_of_a_table_are_filled(call, auto_release, tmp_path):
    gaps = table(400, seed=3)
    gaps.loc[:299, "income"] = None
    gaps["age"] = gaps["age"].astype(object)
    gaps.loc[330:335, "age"] = None
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    target = tmp_path / "whole.csv"
    assert call("impute", auto_release, tmp_path / "gaps.csv", "--seed", 1, "-o", target)[0] == 0
    whole = pd.read_csv(target)
    assert whole.notna().all().all() and len(whole) == 400
    kept = gaps["income"].notna()
    assert (whole["income"][kept] == gaps["income"][kept]).all()
    old = whole["age"][:300] > 45
    assert (whole["income"][:300][old] == "high").mean() > 0.5
    code, _, err = call("impute", auto_release, tmp_path / "gaps.csv", "-o", target)
    assert code == 2 and "exists already" in err


@pytest.mark.parametrize(
    ("where", "message"),
    [("income", "expected column=value"), ("income=hi", "did you mean"), ("age=3", "alone")],
)
def test_a_wrong_condition_is_explained(call, release, tmp_path, where, message):
    code, _, err = call("sample", release, "-n", 5, "--where", where, "-o", tmp_path / "x.csv")
    assert code == 2 and message in err


def test_verify_passes_a_whole_release(call, release):
    code, out, _ = call("verify", release, "--json")
    assert code == 0
    content = json.loads(out)
    assert content["verified"] and all(check["passed"] for check in content["checks"])
    assert "second accountant" in call("verify", release)[1]


@pytest.mark.parametrize("name", ["rows.csv", "model.safetensors", "ledger.jsonl", "schema.yaml"])
def test_verify_fails_a_truncated_release(call, release, tmp_path, name):
    path = copy(release, tmp_path / "r") / name
    path.write_bytes(path.read_bytes()[:-20])
    code, out, err = call("verify", tmp_path / "r")
    assert code == 6
    assert "FAILED" in out and name in err


def test_a_release_without_certificate_is_none(call, release, tmp_path):
    (copy(release, tmp_path / "r") / "certificate.json").unlink()
    for command in (("verify",), ("sample", "-n", 5, "-o", tmp_path / "x.csv")):
        code, _, err = call(command[0], tmp_path / "r", *command[1:])
        assert code == 6 and "no complete release" in err
        assert f"fedsynth run --resume {tmp_path / 'r'}" in err


def run_arguments(tmp_path, **changes):
    return ("run", write_job(tmp_path, **changes), "--out", tmp_path / "r", "--quiet")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (table().iloc[:0], "has no rows"),
        (table().assign(shoe=40), "shoe"),
        (table().drop(columns="colour"), "colour"),
    ],
    ids=["empty", "a column too many", "a column too few"],
)
def test_a_table_that_does_not_fit_is_one_message(call, tmp_path, frame, message):
    code, _, err = call(*run_arguments(tmp_path, frame=frame))
    assert code == 3
    assert err.startswith("Error: ") and message in err and "Traceback" not in err
    assert not (tmp_path / "r").exists()


def test_epsilon_0_is_refused_with_the_reason(call, tmp_path):
    code, _, err = call(*run_arguments(tmp_path, privacy={"epsilon": 0}))
    assert code == 2 and "no release may depend on the data" in err


def test_a_budget_that_the_noise_asked_for_exceeds_is_refused(call, tmp_path):
    code, _, err = call(*run_arguments(tmp_path, settings={**SETTINGS, "noise_multiplier": 0.3}))
    assert code == 4 and "epsilon" in err
    assert not (tmp_path / "r").exists()


def test_a_typo_in_a_key_is_found(call, tmp_path):
    code, _, err = call(*run_arguments(tmp_path, samples={"rows": 5}))
    assert code == 2 and "did you mean 'sample'?" in err


def test_data_that_are_absent_leave_nothing_behind(call, tmp_path):
    code, _, err = call(*run_arguments(tmp_path, data={"path": "gone.csv"}))
    assert code == 3 and "gone.csv" in err
    assert not (tmp_path / "r").exists()


def change_columns(**columns):
    return table().assign(**columns)


@pytest.mark.parametrize(
    ("frame", "changes"),
    [
        (change_columns(colour=None), {}),
        (change_columns(age=7), {}),
        (change_columns(income="low"), {}),
        (table(), {"sites": {"clients": 3, "scheme": "labels", "per_client": 1}}),
        (table().head(2), {"sites": {"clients": 1, "scheme": "uniform"}, "holdout": 0}),
        (table().head(2), {"sites": {"clients": 1, "scheme": "uniform"}, "holdout": 0.5}),
    ],
    ids=["all missing", "constant", "one class", "clients of one class", "two rows", "one row"],
)
def test_odd_tables_become_correct_releases(call, tmp_path, frame, changes):
    # Of everybody: what samples cost is another matter.
    settings = {**SETTINGS, "rate": 1.0, "rounds": 3}
    code, _, err = call(*run_arguments(tmp_path, frame=frame, settings=settings, **changes))
    told = "Caution: there is one owner: " if changes.get("sites", {}).get("clients") == 1 else ""
    assert code == 0 and err.startswith(told)
    # Of a row or two nothing can be told within so little.
    few = "Caution: 1 of 1 columns of numbers have one bin each" in err
    alone = "Caution: age: one value alone stands out" in err
    assert (few, alone) == (len(frame) <= 2, frame["age"].nunique() == 1 and len(frame) > 2)
    assert err.count("\n") == bool(told) + few + alone
    rows = pd.read_csv(tmp_path / "r" / "rows.csv")
    assert len(rows) == 50
    assert rows["age"].between(0, 63).all()
    assert set(rows["income"]) <= {"low", "high"}
    assert set(rows["colour"].dropna()) <= {"red", "green"}
    assert call("verify", tmp_path / "r")[0] == 0


def test_images_run_from_a_file_to_a_release(call, tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (80, 6, 6), dtype=np.uint8)
    np.savez(tmp_path / "i.npz", x=pixels, y=np.arange(80) % 2, who=np.arange(80) % 4)
    target = {"kind": "categorical", "name": "digit", "values": [0, 1]}
    job = write_job(
        tmp_path,
        data={"path": "i.npz"},
        sites={"path": "i.npz", "column": "who"},
        privacy={"epsilon": 5.0, "delta": 1e-4},
    )
    write_yaml({"kind": "image", "shape": [6, 6], "target": target}, tmp_path / "people.yaml")
    code, out, _ = call("run", job, "--out", tmp_path / "r", "--json", "--quiet")
    assert code == 0 and json.loads(out)["scores"]["marginals"] == []
    more = ("sample", tmp_path / "r", "-n", 3, "-o")
    assert call(*more, tmp_path / "m.npz")[0] == 0
    assert call(*more, tmp_path / "m.csv")[0] == 2
    assert call("schema", "check", tmp_path / "m.npz", tmp_path / "people.yaml")[0] == 0


def test_schema_draft_marks_its_provenance_and_fits_its_table(call, tmp_path):
    write_job(tmp_path)
    code, out, err = call("schema", "draft", tmp_path / "table.csv", "--target", "income")
    assert code == 0 and "provenance: private-data" in out and "Review" in err
    target = tmp_path / "draft.yaml"
    assert call("schema", "draft", tmp_path / "table.csv", "-o", target)[0] == 0
    assert call("schema", "check", tmp_path / "table.csv", target)[0] == 0


def test_schema_draft_names_cells_that_fit_no_column_and_columns_never_learned(call, tmp_path):
    rows = [f"P{i},{i / 7:.4f}" for i in range(1, 200)]
    (tmp_path / "t.csv").write_text("\n".join(["who,x", *rows, "P200,<5"]))
    code, _, err = call("schema", "draft", tmp_path / "t.csv")
    assert code == 0
    assert "x: 1 of 200 cells is no number" in err and "'<5'" in err
    assert "who: 200 of 200 occur once: taken for a key, never learned" in err


def test_schema_draft_of_several_tables_tells_how_they_differ(call, tmp_path):
    (tmp_path / "north.csv").write_text("sex,y\n" + "M,1\nF,2\n" * 20)
    (tmp_path / "south.csv").write_text("sex,y\n" + "male,1\nfemale,2\n" * 20)
    paths = tmp_path / "north.csv", tmp_path / "south.csv"
    code, out, err = call("schema", "draft", *paths)
    assert code == 0 and "values: [F, M, female, male]" in out
    assert f"sex: 100 % of the cells at {paths[1]} have values that no other owner has" in err
    assert call("schema", "draft", paths[0], paths[0])[0] == 2
    code, out, err = call("schema", "draft", *paths, "--json", "-o", tmp_path / "drafted.yaml")
    told = json.loads(out)
    assert code == 0 and err == "" and told["path"] == str(tmp_path / "drafted.yaml")
    assert told["schema"] == Schema.load(tmp_path / "drafted.yaml").to_dict()
    assert [one["kind"] for one in told["differences"]] == ["values"] * 2
    assert told["differences"][1]["cells"] == ["male", "female"] and told["findings"] == []
    # Findings quote private cells: they never stand in the file that is agreed on.
    assert "#" not in (tmp_path / "drafted.yaml").read_text()


def test_schema_check_tells_where_bounds_leave_values_few_cells(call, tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"{999_999_900 + k}\n" for k in range(80)))
    Schema(columns=[Integer(name="x", lower=0, upper=10**12)]).save(tmp_path / "wide.yaml")
    code, out, err = call("schema", "check", tmp_path / "t.csv", tmp_path / "wide.yaml", "--json")
    (crowded,) = json.loads(out)["crowded"]
    assert code == 0 and crowded["values"] == 80 and crowded["cells"] < 3
    assert "t.csv: x: its 80 different values fall into" in err
    assert "wide.yaml: x: from 0 to 1,000,000,000,000 lie 1,000,000,000,001 values, told" in err


def test_a_drafted_schema_is_named_on_the_certificate(call, tmp_path):
    write_job(tmp_path)
    call("schema", "draft", tmp_path / "table.csv", "--target", "income", "-o", tmp_path / "d.yaml")
    write_job(tmp_path, schema="d.yaml")
    code, out, _ = call("run", tmp_path / "job.yaml", "--out", tmp_path / "r", "--quiet")
    assert code == 0 and "not covered by epsilon" in out.split("Scores")[0]


def test_schema_check_lists_values_with_counts(call, tmp_path):
    frame = table()
    frame.loc[:4, "income"] = "huge"
    write_job(tmp_path, frame)
    check = ("schema", "check", tmp_path / "table.csv", tmp_path / "people.yaml")
    code, out, err = call(*check, "--json")
    assert code == 3 and err.startswith("Error: ")
    assert {"column": "income", "rule": "unknown", "value": "huge", "count": 5} in [
        {**finding, "rule": "unknown"} for finding in json.loads(out)["findings"]
    ]
    assert "huge" in call(*check)[1]


def test_schema_check_of_a_job_tells_its_owner_what_the_job_would_say(call, tmp_path):
    frame = table(100).assign(town="north", age=[70] * 4 + [40] * 96)
    frame.loc[10:19, "income"] = ["huge"] * 7 + ["tiny"] * 3
    job = write_job(tmp_path, frame, sites={"column": "town", "names": ["north", "south"]})
    check = ("schema", "check", tmp_path / "table.csv", job)
    code, out, err = call(*check, "--json")
    told = json.loads(out)
    assert [(one["column"], one["outside"], one["share"]) for one in told["columns"]] == [
        ("age", 4, 0.04),
        ("colour", 0, 0),
        ("income", 10, 0.1),
    ]
    age, _, income = told["columns"]
    assert (age["allowed"], age["found"], age["examples"]) == ("0 to 63", "40 to 70", [["70.0", 4]])
    assert (income["found"], income["examples"]) == ("2 of 2", [["huge", 7], ["tiny", 3]])
    assert told["left_out"] == 10
    assert told["beyond"] == [{"owner": "north", "column": "income", "share": 0.1}]
    assert code == 3 and "10 rows would be left out" in err and "5% of a column is (north" in err
    lines = call(*check)[1].splitlines()
    assert len([line for line in lines if "income" in line]) == 1
    # The schema alone knows no column of owners.
    alone = json.loads(call(*check[:3], tmp_path / "people.yaml", "--json")[1])
    assert [one["column"] for one in alone["columns"] if one["fault"] == "extra"] == ["town"]
    # Each owner's share is its own: nobody is refused for the others' rows.
    frame["town"] = ["south"] * 5 + ["north"] * 95
    frame.to_csv(tmp_path / "table.csv", index=False)
    beyond = json.loads(call(*check, "--json")[1])["beyond"]
    assert [(one["owner"], one["column"]) for one in beyond] == [
        ("north", "income"),
        ("south", "age"),
    ]
    # The job's own limit is what counts.
    write_job(tmp_path, frame, sites={"column": "town", "names": ["north"]}, outside="allow")
    assert json.loads(call(*check, "--json")[1])["beyond"] == []


def test_a_site_file_says_how_its_owners_table_is_read(call, tmp_path):
    write_job(tmp_path)
    rows = table(40).rename(columns={"age": "AGE"})
    rows.to_csv(tmp_path / "own.csv", index=False, sep=";")
    words = {"path": "own.csv", "separator": ";", "rename": {"AGE": "age"}}
    write_yaml({"name": "north", "data": words}, tmp_path / "north.yaml")
    write_yaml(words, tmp_path / "alone.yaml")
    for name in ("north.yaml", "alone.yaml"):
        check = ("schema", "check", tmp_path / name, tmp_path / "people.yaml")
        code, _, err = call(*check)
        assert code == 0 and "everything is within" in err and "Caution" not in err
    assert "alone.yaml says how one is read" in call(*check, "--decimal", ",")[2]
    # What the site file says is what is suggested where nothing is said.
    code, _, err = call("schema", "check", tmp_path / "own.csv", tmp_path / "people.yaml")
    assert code == 3 and "what may mend it" in err and "  rename: {AGE: age}" in err
    check = ("schema", "check", tmp_path / "own.csv", tmp_path / "people.yaml", "--json")
    found = json.loads(call(*check)[1])
    assert found["translation"] == {"rename": {"AGE": "age"}} and found["doubts"] == []
    write_yaml({"name": "north"}, tmp_path / "none.yaml")
    code, _, err = call("schema", "check", tmp_path / "none.yaml", tmp_path / "people.yaml")
    assert code == 2 and "none.yaml: tells of no table" in err


def test_schema_check_counts_rows_that_break_a_constraint(call, tmp_path):
    frame = table()
    frame.loc[:4, ["colour", "income"]] = ["red", "high"]
    frame.loc[5:, "colour"] = "green"
    write_job(tmp_path, frame)
    constraints = [{"never": {"colour": "red", "income": "high"}}]
    write_yaml({**SCHEMA, "constraints": constraints}, tmp_path / "people.yaml")
    check = ("schema", "check", tmp_path / "table.csv", tmp_path / "people.yaml")
    code, out, _ = call(*check, "--json")
    assert code == 3
    broken = {"column": "colour, income", "rule": "never", "value": "red, high", "count": 5}
    assert json.loads(out)["findings"] == [broken]
    assert "red, high" in call(*check)[1]


@pytest.mark.parametrize(
    "arguments",
    [("run",), ("run", "demo", "--resume", "x"), ("run", "--resume", "x", "--out", "y")],
)
def test_run_needs_one_job(call, arguments):
    assert call(*arguments)[0] == 2


def test_who_gives_a_job_up_is_told_where_owners_answers_are_kept(call, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session.Session, "checkpoint", interrupt)
    accounts = {"folder": str(tmp_path / "accounts"), "epsilon": 50.0}
    job = write_job(tmp_path, federation={"ledgers": accounts})
    code, _, err = call("run", job, "--out", tmp_path / "r", "--quiet")
    (answers,) = (tmp_path / "accounts").glob("*.answers")
    assert code == 130 and f"(rm {answers})" in err


def test_a_folder_that_is_not_empty_is_left_alone(call, tmp_path):
    code, _, err = call("run", write_job(tmp_path), "--out", tmp_path)
    # No job is in it, so there is nothing to resume.
    assert code == 2 and "choose another --out" in err and "--resume" not in err


def test_an_unforeseen_error_is_one_message_and_a_traceback_on_demand(call, tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("secret 42")

    monkeypatch.setattr("fedsynth.jobs.run.prepare", broken)
    arguments = ("run", write_job(tmp_path), "--out", tmp_path / "r")
    code, _, err = call(*arguments)
    assert code == 1 and "internal error" in err and "--debug" in err and "secret" not in err
    with pytest.raises(ZeroDivisionError):
        call("--debug", *arguments)


def test_a_clients_error_is_its_own_to_know_and_shown_on_demand(call, tmp_path, monkeypatch):
    genuine = type(HISTOGRAM).contribute

    def failing(self, clients, samples, request):
        if [client for client in clients if client.name == "client-01"]:
            raise ValueError("secret 42")
        yield from genuine(self, clients, samples, request)

    monkeypatch.setattr(type(HISTOGRAM), "contribute", failing)
    federation = {"survivors": 0.6, "deadline": 600}
    arguments = ("run", write_job(tmp_path, federation=federation), "--out")
    code, out, err = call(*arguments, tmp_path / "r")
    assert code == 0 and "secret" not in out + err
    assert "lacks client-01 in 1: a fault in its own code or data" in " ".join((out + err).split())
    code, _, err = call("--debug", *arguments, tmp_path / "s")
    assert code == 0 and "client-01 failed in histogram, round 0" in err and "secret 42" in err


@pytest.mark.parametrize(
    ("where", "said"), [("prepare", "start it again"), ("_fit_and_release", "run --resume {}")]
)
def test_an_interrupted_run_says_how_to_go_on(call, tmp_path, monkeypatch, where, said):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    config, folder = write_job(tmp_path, method="mst", settings=None), tmp_path / "r"
    with monkeypatch.context() as patch:
        patch.setattr(f"fedsynth.jobs.run.{where}", interrupted)
        code, _, err = call("run", config, "--out", folder)
    assert code == 130 and said.format(folder) in err
    advice = ["--resume", folder] if "resume" in err else [config, "--out", folder]
    assert call("run", *advice, "--quiet")[0] == 0


INTERRUPTED = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "fedsynth.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from fedsynth.cli import main

main()
"""


def test_a_command_that_is_interrupted_while_it_starts_shows_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_version_is_printed(call):
    assert call("version") == (0, f"{fedsynth.__version__}\n", "")


PUBLISHED = {"privacy": {"epsilon": "inf"}, "settings": {"effort": "quick", "points": 500}}


@pytest.fixture
def briefly(monkeypatch):
    """Classifiers of a few steps, which tables of one threshold need, and few families."""
    holds, tried = families._holds, ("norm", "uniform", "logistic", "beta")
    monkeypatch.setattr(
        families, "_holds", lambda k, own: families.FAMILIES[k] in tried and holds(k, own)
    )
    monkeypatch.setattr(classifier, "_EPOCHS", 5)
    monkeypatch.setattr(classifier, "_LEAST_STEPS", 100)


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("method", ["private-fusion", "fedinfer", "fusion", "hybrid-fusion"])
def test_a_release_with_a_classifier_classifies_a_table_without_labels(call, tmp_path, method):
    changes = {} if method.startswith(("private", "fed")) else PUBLISHED
    job = write_job(tmp_path, **{"method": method, "settings": None, **changes})
    release = tmp_path / "r"
    assert call("run", job, "--out", release, "--quiet")[0] == 0
    rows = table(50, seed=5)
    rows.drop(columns="income").to_csv(tmp_path / "some.csv", index=False)
    target = tmp_path / "classified.csv"
    assert call("predict", release, tmp_path / "some.csv", "-o", target)[0] == 0
    classified = pd.read_csv(target)
    shares = classified[["probability of high", "probability of low"]].to_numpy()
    assert list(classified["predicted income"]) == [
        ["high", "low"][k] for k in shares.argmax(axis=1)
    ]
    assert abs(shares.sum(axis=1) - 1).max() < 1e-5
    if method == "fusion":
        assert (classified["predicted income"] == rows["income"]).mean() > 0.75
    assert call("predict", release, tmp_path / "some.csv", "-o", target)[0] == 2


def test_a_release_of_a_classifier_classifies_and_makes_no_rows(call, tmp_path):
    schema = Schema.from_dict(SCHEMA)
    model = fedsynth.FederatedClassifier(schema, rounds=1, rate=1.0)
    model.fit([table(60, 1), table(50, 2), table(40, 3)], epsilon=2.0, delta=1e-4)
    model.release(release := tmp_path / "r")
    table(9).drop(columns="income").to_csv(tmp_path / "some.csv", index=False)
    target = tmp_path / "classified.csv"
    assert call("predict", release, tmp_path / "some.csv", "-o", target)[0] == 0
    assert pd.read_csv(target)["predicted income"].tolist() == model.predict(table(9)).tolist()
    assert call("verify", release)[0] == 0
    sample = ["sample", release, "-n", "3", "-o", tmp_path / "x.csv"]
    others = [["count", release, "income"], ["tune", release], ["evaluate", release]]
    for command in (sample, *others):
        code, _, err = call(*command)
        assert code == 6 and ("makes no rows" in err or "without rows" in err), command
    assert not (tmp_path / "x.csv").exists()


def test_a_release_without_a_classifier_says_so(call, auto_release, tmp_path):
    table(9).to_csv(tmp_path / "some.csv", index=False)
    code, _, err = call("predict", auto_release, tmp_path / "some.csv", "-o", tmp_path / "x.csv")
    assert code == 2 and "brings no classifier" in err


@pytest.mark.usefixtures("briefly")
def test_no_privacy_is_said_beside_what_was_sent(call, tmp_path):
    job = write_job(tmp_path, method="fusion", **PUBLISHED)
    code, out, _ = call("run", job, "--out", tmp_path / "r", "--quiet")
    assert code == 0 and "Void: at least one release carries no noise" in out
    assert "Messages: 2 a client" in out
    code, out, _ = call("verify", tmp_path / "r", "--json")
    assert code != 0 and not {c["name"]: c["passed"] for c in json.loads(out)["checks"]}["not void"]
    finite = write_job(tmp_path, method="fusion", settings=None)
    code, _, err = call("run", finite, "--out", tmp_path / "s")
    assert code == 4 and "private-fusion" in err


def test_keys_that_repeat_are_told_and_are_no_fault(call, tmp_path):
    schema = Schema(columns=[Identifier(name="id"), Integer(name="n", lower=0, upper=9)])
    schema.save(tmp_path / "schema.yaml")
    pd.DataFrame({"id": ["a", "b", "a"], "n": [1, 2, 3]}).to_csv(tmp_path / "t.csv", index=False)
    code, _, err = call("schema", "check", tmp_path / "t.csv", tmp_path / "schema.yaml")
    assert code == 0 and "a row repeats an earlier row's 'id'" in err


def test_persons_are_counted_and_a_row_of_nobody_is_told(call, tmp_path):
    columns = [Identifier(name="id"), Integer(name="n", lower=0, upper=9)]
    Schema(columns=columns, person="id").save(tmp_path / "schema.yaml")

    def checked(*keys):
        pd.DataFrame({"id": keys, "n": 1}).to_csv(tmp_path / "t.csv", index=False)
        return call("schema", "check", tmp_path / "t.csv", tmp_path / "schema.yaml")

    code, _, err = checked("a", "b", "a", "a")
    assert code == 0 and "2 persons have 4 rows, 2 each in the median and 3 at most" in err
    code, _, err = checked("a", "b")
    assert code == 0 and "no person has two rows" in err
    code, out, err = checked("a", "", "a")
    assert code == 3 and "1 kinds of values are outside" in err and "(missing) (1)" in out


def test_persons_with_several_values_are_told_and_are_no_fault(call, tmp_path):
    born = Integer(name="born", lower=0, upper=9, of="person")
    Schema(columns=[Identifier(name="id"), born], person="id").save(tmp_path / "schema.yaml")
    frame = pd.DataFrame({"id": ["a", "b", "a"], "born": [1, 2, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = call("schema", "check", tmp_path / "t.csv", tmp_path / "schema.yaml")
    assert code == 0 and "persons with several values in 'born', which is `of: person`: 1" in err


def test_the_docs_list_every_command_and_what_takes_json():
    group = typer.main.get_command(cli.app)
    commands = {
        f"{name} {inner}".strip(): command
        for name, outer in group.commands.items()
        for inner, command in getattr(outer, "commands", {"": outer}).items()
    }
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    told_there = page.read_text(encoding="utf-8")
    assert [name for name in commands if f"fedsynth {name}" not in told_there] == []
    found = re.search(r"^(.*) take `--json`, the first (\w+) `--quiet`", told_there, re.M)
    told, first = re.findall("`([a-z -]+)`", found[1]), ["", "one", "two", "three", "four", "five"]
    for option, names in (("--json", told), ("--quiet", told[: first.index(found[2])])):
        takes = [n for n, c in commands.items() if option in chain(*(p.opts for p in c.params))]
        assert sorted(takes) == sorted(names)
