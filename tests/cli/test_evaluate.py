"""`fedsynth evaluate`: two tables, a release, scores within a budget; each fault one message."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.cli import app as cli
from fedsynth.yaml_files import write_yaml
from tests.small_jobs import SCHEMA, table, write_job

MST = {"method": "mst", "settings": None}
QUICK = ("--models", "standard", "--quiet")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A job of three owners, and its release."""
    folder = tmp_path_factory.mktemp("release")
    assert (
        cli.run(["run", str(write_job(folder, **MST)), "--out", str(folder / "r"), "--quiet"]) == 0
    )
    return folder / "r"


@pytest.fixture
def files(tmp_path):
    """Three tables of the same population, with a schema."""
    write_job(tmp_path)
    for seed, name in enumerate(("real", "synthetic", "train")):
        table(60, seed).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def pair(files, *names):
    """Options that name files by their role."""
    return [part for name in names for part in (f"--{name}", files / f"{name}.csv")]


def test_a_release_is_judged_by_its_own_job(call, release):
    code, out, err = call("evaluate", release, "--models", "standard")
    assert code == 0, err
    target = release.parent / "r-report"
    assert f"Report: {target / 'report.html'}" in out
    assert "attacks, of which told training rows from others: none." in out
    assert "Beware" in out and "This report was computed on private rows" in out
    assert "fidelity 5/5" in err and "attacks 5/5" in err and "epsilon" not in err
    content = json.loads((target / "report.json").read_text())
    assert content["data"]["rows"] == {"real": 40, "synthetic": 50, "train": 160}
    assert content["certificate"]["epsilon"] == pytest.approx(5, abs=0.5)
    assert content["title"] == "r"
    assert content["clients"] is None
    assert not {"report.html", "report.json"} & {path.name for path in release.iterdir()}
    code, _, err = call("evaluate", release, *QUICK)
    assert code == 2 and "r-report exists already" in err


def test_the_default_folder_lies_beside_the_release_wherever_one_stands(
    call, release, tmp_path, monkeypatch
):
    copy = tmp_path / "here"
    copy.mkdir()
    for path in release.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(copy)
    table(60, 0).to_csv(tmp_path / "real.csv", index=False)
    code, _, err = call("evaluate", ".", "--real", tmp_path / "real.csv", *QUICK)
    assert code == 0, err
    assert (tmp_path / "here-report" / "report.html").exists()
    assert not list(copy.glob("*report*"))


def test_a_private_report_does_not_go_into_the_release(call, release):
    code, _, err = call("evaluate", release, "--out", release / "report", *QUICK)
    assert code == 2 and "go beside the release, not into it" in err
    assert not (release / "report").exists()


def test_json_is_printed_and_is_the_report(call, release, tmp_path):
    code, out, err = call("evaluate", release, "--out", tmp_path / "x", "--json", *QUICK)
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((tmp_path / "x" / "report.json").read_text())


def test_any_two_tables_with_a_schema(call, files):
    arguments = pair(files, "real", "synthetic", "train")
    schema = ("--schema", files / "people.yaml")
    code, out, err = call(
        "evaluate", *arguments, *schema, "--out", files / "x", "--secret", "colour", *QUICK
    )
    assert code == 0, err
    content = json.loads((files / "x" / "report.json").read_text())
    assert content["data"]["rows"] == {"real": 60, "synthetic": 60, "train": 60}
    assert (content["data"]["target"], content["title"]) == ("income", "synthetic.csv")
    assert [one["column"] for one in content["privacy"]["attributes"]] == ["colour"]
    assert content["clients"] is None and content["certificate"] is None
    assert "AUROC on real rows" in out and "No certificate" in out


def test_without_a_schema_one_is_drafted_and_without_train_nothing_is_attacked(
    call, files, monkeypatch
):
    monkeypatch.chdir(files)
    code, out, _ = call("evaluate", *pair(files, "real", "synthetic"), *QUICK)
    assert code == 0 and "Report: report/report.html" in out.replace("\\", "/")
    content = json.loads((files / "report" / "report.json").read_text())
    assert "No schema was given" in content["notes"][0]
    assert content["privacy"]["membership"] == [] and content["utility"] is None
    assert "Not run. Membership" in out and "attacks, of which" not in out


def test_a_copy_is_said_not_to_be_handed_out(call, files):
    copied = ["--real", files / "real.csv", "--train", files / "train.csv"]
    copied += ["--synthetic", files / "train.csv", "--schema", files / "people.yaml"]
    code, out, _ = call("evaluate", *copied, "--out", files / "x", *QUICK)
    assert code == 0 and "Do not hand these rows out" in out
    assert "told training rows from others: membership, density ratio" in out


def test_public_rows_are_said_to_be_public(call, files):
    code, out, _ = call(
        "evaluate", *pair(files, "real", "synthetic"), "--public", "--out", files / "x", *QUICK
    )
    content = json.loads((files / "x" / "report.json").read_text())
    assert code == 0 and "private rows" not in out
    assert content["disclosure"]["public"] is True
    assert "declared public" in content["disclosure"]["text"]
    assert "declared public" in (files / "x" / "report.html").read_text(encoding="utf-8")


def test_a_release_is_held_against_other_rows(call, release, files):
    code, *_ = call(
        "evaluate", release, *pair(files, "real", "train"), "--out", files / "x", *QUICK
    )
    content = json.loads((files / "x" / "report.json").read_text())
    assert code == 0 and content["data"]["rows"] == {"real": 60, "synthetic": 50, "train": 60}
    assert content["certificate"] is not None and content["clients"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "say what to evaluate: the folder of a release, or --synthetic FILE"),
        ("{r} --synthetic {d}/synthetic.csv", "say what to evaluate"),
        ("--real {d}/real.csv", "say what to evaluate"),
        ("--synthetic {d}/synthetic.csv", "--real FILE"),
        ("{r} --schema {d}/people.yaml", "leave --schema away"),
        ("{r} --train {d}/train.csv", "--train goes with --real"),
        ("{r} --delta 1e-6", "--delta belongs to --epsilon"),
        ("{r} --epsilon 1 --real {d}/real.csv", "--epsilon needs a RELEASE"),
        ("--epsilon 1 --synthetic {d}/synthetic.csv --real {d}/real.csv", "needs a RELEASE"),
        ("{r} --epsilon 1 --secret age", "--secret"),
        ("{r} --epsilon 1 --public", "--public"),
        ("{r} --epsilon 1 --quasi-identifier age", "--quasi-identifier"),
        ("{r} --models fast", "--models is standard or thorough, not 'fast'"),
        ("{r} --sensitive age", "name those, too"),
        ("{r} --secret agee", "secrets: there is no column 'agee'; did you mean 'age'"),
        ("{r} --quasi-identifier agee --sensitive income", "there is no column 'agee'"),
        ("{r} --epsilon inf", "leave it away for a report"),
        ("{r} --epsilon 0", "epsilon must be positive"),
        ("--synthetic {d}/a.npz --real {d}/b.npz", "images need a schema: give --schema FILE"),
        ("{r} --out {d}/real.csv", "exists already"),
    ],
)
def test_wrong_options_are_explained(call, release, files, arguments, message):
    given = arguments.format(r=release, d=files).split()
    out = () if "--out" in given else ("--out", files / "x")
    code, _, err = call("evaluate", *given, *out, "--quiet")
    assert (code, message in err) == (2, True), err
    assert not (files / "x").exists()


@pytest.mark.parametrize("name", ["real", "synthetic", "train"])
def test_a_missing_file_is_named(call, files, name):
    (files / f"{name}.csv").unlink()
    code, _, err = call(
        "evaluate", *pair(files, "real", "synthetic", "train"), "--out", files / "x", *QUICK
    )
    assert code == 3 and f"{name}.csv" in err and not (files / "x").exists()


def test_columns_that_differ_name_the_side(call, files):
    table(60, 1).drop(columns="age").to_csv(files / "synthetic.csv", index=False)
    code, _, err = call("evaluate", *pair(files, "real", "synthetic"), "--out", files / "x", *QUICK)
    assert code == 3 and "synthetic: lacks columns of the schema: 'age'" in err


@pytest.mark.parametrize("name", ["rows.csv", "schema.yaml", "certificate.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_release_is_not_evaluated(call, release, tmp_path, name, damage):
    copy = tmp_path / "r"
    copy.mkdir()
    for path in release.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    body = (copy / name).read_bytes()
    if damage == "cut":
        (copy / name).write_bytes(body[:-20])
    else:
        (copy / name).unlink()
    code, _, err = call("evaluate", copy, *QUICK)
    assert code == 6 and (name in err or "no complete release" in err)
    assert not (tmp_path / "r-report").exists()


def test_a_job_without_held_out_rows_asks_for_some(call, tmp_path):
    job = write_job(tmp_path, holdout=0, **MST)
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    code, _, err = call("evaluate", tmp_path / "r", *QUICK)
    assert code == 2 and "held no rows out" in err and "give --real FILE" in err


def test_a_release_without_its_data_asks_for_real_rows(call, tmp_path):
    job = write_job(tmp_path, **MST)
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    (tmp_path / "table.csv").unlink()
    code, _, err = call("evaluate", tmp_path / "r", *QUICK)
    assert code == 3 and "table.csv: no such file" in err and "--real" in err


def test_a_release_that_was_moved_is_told_where_its_rows_are(call, tmp_path):
    privacy = {"epsilon": 5.0, "delta": 1e-4, "trust": "central"}
    sites = {"paths": {"north": "table.csv", "south": "south.csv"}}
    job = write_job(tmp_path / "a", data=None, sites=sites, privacy=privacy, **MST)
    table(60, 1).to_csv(tmp_path / "a" / "south.csv", index=False)
    assert call("run", job, "--out", tmp_path / "a" / "r", "--quiet")[0] == 0
    (tmp_path / "b" / "deep").mkdir(parents=True)
    moved = (tmp_path / "a" / "r").rename(tmp_path / "b" / "deep" / "r")
    code, _, err = call("evaluate", moved, *QUICK)
    assert code == 3 and "--set data.path=FILE" in err
    there = [
        *("--set", f"sites.paths.north={tmp_path / 'a' / 'table.csv'}"),
        *("--set", f"sites.paths.south={tmp_path / 'a' / 'south.csv'}"),
    ]
    other = ("--set", f"sites.paths.nort={tmp_path / 'a' / 'south.csv'}")
    for change, message in ((("--set", "seed=1"), "only where its"), (other, "no such owner")):
        code, _, err = call("evaluate", moved, *there, *change, *QUICK)
        assert code == 2 and message in err
    code, out, err = call("evaluate", moved, *there, "--epsilon", 20, "--out", tmp_path / "s")
    assert code == 0 and "north" in out, err


def test_a_release_without_a_job_file_asks_for_real_rows(call, tmp_path):
    schema = fs.Schema.from_dict(SCHEMA)
    synth = fs.MST(schema).fit([table()], fs.Budget(epsilon=5, delta=1e-4))
    synth.release(tmp_path / "r", synth.sample(30, seed=0))
    code, _, err = call("evaluate", tmp_path / "r", *QUICK)
    assert code == 2 and "--real FILE" in err


def test_scores_within_a_budget_have_a_certificate_of_their_own(call, release, tmp_path):
    target = tmp_path / "scores"
    code, out, err = call("evaluate", release, "--epsilon", 20, "--out", target)
    assert code == 0, err
    names = {path.name for path in target.iterdir()}
    assert {"ledger.jsonl", "certificate.json", "scores.json"} <= names
    assert not {"report.html", "report.json"} & names
    assert "Held-out records paid for these scores" in err and "fedsynth verify" in out
    assert "holdout" in out and "client-00" not in out and "+-" in out
    assert "Adding or removing any one record" in out
    assert call("verify", target)[0] == 0
    content = json.loads((target / "certificate.json").read_text())
    assert content["guarantee"]["epsilon"] <= 20
    assert content["guarantee"]["delta"] == 1e-4
    code, _, err = call("evaluate", release, "--epsilon", 20, "--out", target)
    assert code == 2 and "exists already" in err


def test_scores_are_printed_as_json_with_a_delta_of_ones_own(call, release, tmp_path):
    code, out, err = call(
        *("evaluate", release, "--epsilon", 10, "--delta", 1e-6, "--out", tmp_path / "s"),
        *("--json", "--quiet"),
    )
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["certificate"]["guarantee"]["delta"] == 1e-6
    assert [one["name"] for one in content["owners"]] == ["holdout"]
    assert "Held-out records paid" in content["who_paid"]


def test_owners_of_their_own_are_scored_apart_and_clients_pay_twice(call, tmp_path):
    frame = table(90).assign(town=np.arange(90) % 3)
    sites = {"column": "town"}
    privacy = {"epsilon": 8, "delta": 1e-4, "unit": "client", "trust": "central"}
    for unit in ("record", "client"):
        changes = {"holdout": 0.4, "sites": sites, "privacy": privacy | {"unit": unit}, **MST}
        job = write_job(tmp_path / unit, frame, **changes)
        assert call("run", job, "--out", tmp_path / unit / "r", "--quiet")[0] == 0
        asked = ("--epsilon", 20, "--out", tmp_path / unit / "s", "--quiet")
        code, out, err = call("evaluate", tmp_path / unit / "r", *asked)
        assert code == 0, err
        assert ("Every client paid for these scores" in err) == (unit == "client")
        named = {line.split()[0] for line in out.splitlines() if "+-" in line}
        assert (named >= {"0", "2", "all"}) == (unit == "record")


def test_simulated_owners_pay_for_no_scores_of_clients(call, tmp_path):
    privacy = {"epsilon": 8, "delta": 1e-4, "unit": "client", "trust": "central"}
    job = write_job(tmp_path, privacy=privacy, **MST)
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    code, _, err = call("evaluate", tmp_path / "r", "--epsilon", 1, "--out", tmp_path / "s")
    assert code == 2 and "are no owner's" in err


def test_test_images_are_nobodys_and_pay_for_no_scores_of_clients(call, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (80, 6, 6), dtype=np.uint8)
    labels = {"y": np.arange(60) % 2, "ty": np.arange(20) % 2, "who": np.arange(60) % 3}
    np.savez(tmp_path / "i.npz", x=pixels[:60], tx=pixels[60:], **labels)
    job = write_job(
        tmp_path,
        data={"path": "i.npz", "keys": ["x", "y"], "test_keys": ["tx", "ty"]},
        sites={"path": "i.npz", "column": "who"},
        privacy={"epsilon": 8, "delta": 1e-4, "unit": "client", "trust": "central"},
        holdout=0,
    )
    target = {"kind": "categorical", "name": "digit", "values": [0, 1]}
    write_yaml({"kind": "image", "shape": [6, 6], "target": target}, tmp_path / "people.yaml")
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    code, _, err = call("evaluate", tmp_path / "r", "--epsilon", 1, "--out", tmp_path / "s")
    assert code == 2 and "are no owner's" in err


def test_a_delta_that_promises_nothing_is_refused(call, release, tmp_path):
    asked = ("--epsilon", 1, "--delta", 0.9, "--out", tmp_path / "s")
    code, _, err = call("evaluate", release, *asked)
    assert code == 2 and "promises nothing" in err


def test_another_job_file_than_the_release_was_made_by_is_refused(call, release, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("seed: 0", "seed: 1"))
    code, _, err = call("evaluate", copy, "--out", tmp_path / "x")
    assert code == 6 and "was changed" in err


def test_an_epsilon_that_carries_nothing_is_refused(call, release, tmp_path):
    asked = ("--epsilon", 1e-9, "--delta", 1e-12)
    code, _, err = call("evaluate", release, *asked, "--out", tmp_path / "s", "--quiet")
    assert code == 4 and "epsilon" in err
    assert not (tmp_path / "s").exists()


def test_owners_with_little_held_out_do_not_stop_a_report(call, tmp_path):
    frame = table(60).assign(town=["north"] * 55 + ["south"] * 5)
    privacy = {"epsilon": 1.0, "delta": 1e-5, "curious": 1}
    sites = {"column": "town"}
    job = write_job(tmp_path, frame, sites=sites, holdout=0.4, privacy=privacy, **MST)
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    code, _, err = call("evaluate", tmp_path / "r", "--seed", 1, *QUICK)
    assert code == 0, err
    content = json.loads((tmp_path / "r-report" / "report.json").read_text())
    assert [one["name"] for one in content["clients"]] == ["north", "south"]
    assert sum(one["rows"] for one in content["clients"]) == 24
    assert content["seed"] == 1


def test_quasi_identifiers_are_tabled(call, files):
    pytest.importorskip("pycanon")
    columns = ("--quasi-identifier", "age", "--quasi-identifier", "colour", "--sensitive", "income")
    code, *_ = call(
        "evaluate", *pair(files, "real", "synthetic"), *columns, "--out", files / "x", *QUICK
    )
    content = json.loads((files / "x" / "report.json").read_text())
    assert code == 0
    assert content["privacy"]["anonymity"]["quasi_identifiers"] == ["age", "colour"]
    assert content["privacy"]["anonymity"]["sensitive"] == ["income"]


def test_images_of_a_release_are_judged(call, tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (80, 6, 6), dtype=np.uint8)
    np.savez(tmp_path / "i.npz", x=pixels, y=np.arange(80) % 2, who=np.arange(80) % 4)
    target = {"kind": "categorical", "name": "digit", "values": [0, 1]}
    job = write_job(tmp_path, data={"path": "i.npz"}, sites={"path": "i.npz", "column": "who"})
    write_yaml({"kind": "image", "shape": [6, 6], "target": target}, tmp_path / "people.yaml")
    assert call("run", job, "--out", tmp_path / "r", "--quiet")[0] == 0
    code, out, err = call("evaluate", tmp_path / "r", "--quiet")
    assert code == 0, err
    assert "A network trained on these images reads" in out
    content = json.loads((tmp_path / "r-report" / "report.json").read_text())
    assert content["images"]["grid"]["synthetic"].startswith("data:image/png;base64,")
    assert len(content["clients"]) == 4
    schema = ("--schema", tmp_path / "people.yaml")
    files = ("--real", tmp_path / "i.npz", "--synthetic", tmp_path / "r" / "rows.npz")
    assert call("evaluate", *files, *schema, "--out", tmp_path / "y", "--quiet")[0] == 0


def test_help_names_the_options(call):
    code, out, _ = call("evaluate", "--help")
    assert code == 0 and "--quasi-identifier" in out and "--epsilon" in out


def test_parquet_and_csv_are_alike(call, files):
    pd.read_csv(files / "synthetic.csv").to_parquet(files / "synthetic.parquet")
    # Without a target: what models learn of the rows is no matter here.
    content = {key: value for key, value in SCHEMA.items() if key != "target"}
    write_yaml(content, files / "columns.yaml")
    schema = ("--schema", files / "columns.yaml")
    fidelities = []
    for name in ("synthetic.csv", "synthetic.parquet"):
        arguments = ("--real", files / "real.csv", "--synthetic", files / name, *schema)
        code, out, _ = call("evaluate", *arguments, "--out", files / f"of-{name}", "--json", *QUICK)
        assert code == 0
        fidelities.append(json.loads(out)["fidelity"])
    assert fidelities[0] == fidelities[1]


def test_a_target_may_be_named_where_no_schema_is(call, files):
    named = (*pair(files, "real", "synthetic"), "--target", "income")
    code, out, err = call("evaluate", *named, "--out", files / "y", "--json", *QUICK)
    assert code == 0, err
    assert json.loads(out)["utility"]["target"] == "income"
    schema = ("--schema", files / "people.yaml")
    code, _, err = call("evaluate", *named, *schema, "--out", files / "z", *QUICK)
    assert code == 2 and "the schema names the target" in err
