"""`fedsynth plan` and `fedsynth account`."""

from __future__ import annotations

import json
import math

import pytest

from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.yaml_files import write_yaml
from tests.small_jobs import SCHEMA, write_job


@pytest.fixture
def schema(tmp_path):
    write_yaml(SCHEMA, tmp_path / "people.yaml")
    return tmp_path / "people.yaml"


def test_a_job_file_is_planned_without_its_rows(call, tmp_path):
    job = write_job(tmp_path, method="mst", settings=None)
    (tmp_path / "table.csv").unlink()
    code, out, _ = call("plan", job)
    assert code == 0
    assert "Forecast of mst for 3 clients" in out and "Solved for: noise, for epsilon 5." in out
    assert "whoever holds the release" in out
    code, out, _ = call("plan", job, "--json", "--set", "privacy.epsilon=2", "--each", 400)
    content = json.loads(out)
    assert code == 0 and content["budget"]["epsilon"] == 2 and content["records"] == 1200
    assert content["questions"][0]["signal"] > 1


def test_hospitals_ask_what_noise_it_takes(call):
    code, out, _ = call(
        "plan", "--columns", 6, "--clients", 10, "--each", 5000, "--epsilon", 1, "--json"
    )
    content = json.loads(out)
    assert code == 0 and content["method"] == "aim" and content["records"] == 50_000
    assert {error["what"] for error in content["errors"]} >= {"pairs, asked coarsely"}


def test_releases_within_an_epsilon_are_counted_or_priced(call, schema):
    options = ("--schema", schema, "--method", "mst", "--clients", 10, "--json")
    code, out, _ = call("plan", *options, "--epsilon", 1, "--delta", 1e-5, "--within", 3)
    assert code == 0 and json.loads(out)["solved_for"]["releases"] == 7
    code, out, _ = call("plan", *options, "--delta", 1e-5, "--releases", 12, "--within", 3)
    solved = json.loads(out)["solved_for"]
    assert code == 0 and solved["epsilon of each"] == pytest.approx(0.7558, abs=1e-3)
    assert solved["epsilon together"] <= 3


def test_trials_are_priced_or_get_what_the_best_may_cost(call, schema):
    options = ("--schema", schema, "--method", "mst", "--clients", 5, "--delta", 1e-5)
    code, out, _ = call("plan", *options, "--trials", 10, "--within", 2, "--json")
    content = json.loads(out)
    solved = content["solved_for"]
    assert code == 0 and solved["epsilon of each trial"] < 1.2
    assert 1.95 < solved["epsilon of the best alone"] == content["selection"]["epsilon"] <= 2
    code, out, _ = call("plan", *options, "--trials", 10, "--epsilon", 1)
    assert code == 0 and "the best trial alone" in out and "every trial:" in out


def test_a_rehearsal_tells_time_and_memory(call, schema):
    options = ("--schema", schema, "--method", "mst", "--clients", 3, "--epsilon", 1, "--rehearse")
    code, out, _ = call("plan", *options, "--each", 50, "--json")
    told = json.loads(out)["rehearsal"]
    assert code == 0 and told["records"] == 150 and told["seconds"] > 0
    assert told["memory"] >= told["before"] > 10e6
    code, out, _ = call("plan", *options, "--each", 50)
    assert code == 0 and "Rehearsed here on 150 invented rows" in " ".join(out.split())
    code, _, err = call("plan", *options)
    assert code == 2 and "number of records" in err


def test_every_unit_and_trust_is_compared(call, schema):
    code, out, _ = call(
        "plan", "--schema", schema, "--method", "mst", "--clients", 5, "--epsilon", 1, "--compare",
        "--json",
    )  # fmt: skip
    compared = json.loads(out)["compared"]
    assert code == 0 and len(compared) == 6
    assert all(one["epsilon"] <= 1 for one in compared)
    assert any("among few" in said for one in compared for said in one["said"])
    server = {one["trust"]: one["adversaries"] for one in compared if one["unit"] == "record"}
    assert [who["epsilon"] for who in server["central"] if who["who"] == "the server"] == ["inf"]
    local, central = ({e["what"]: e["error"] for e in compared[k]["errors"]} for k in (2, 1))
    # Five owners' whole noises in place of five fourths of one.
    assert local["pairs, asked coarsely"] == pytest.approx(2 * central["pairs, asked coarsely"])


def test_clients_are_solved_for_and_drawn(call, tmp_path):
    training = ("--rounds", 4, "--per-round", 20, "--noise", 1.5, "--trust", "central")
    code, out, _ = call("plan", *training, "--epsilon", 1, "--json", "--plot", tmp_path / "a.svg")
    content = json.loads(out)
    assert code == 0 and content["clients"] == content["solved_for"]["clients"]
    assert 0.99 < content["epsilon"] <= 1
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.startswith("<svg") and "local: the worst client" in drawn
    assert len(content["curves"]["clients"]) == len(content["curves"]["worst"])
    code, _, err = call("plan", *training, "--epsilon", 1, "--plot", tmp_path / "a.svg")
    assert code == 2 and "exists already" in err


def test_a_training_is_drawn_and_told_in_words(call, tmp_path):
    code, out, _ = call(
        "plan", "--rounds", 3, "--per-round", 20, "--noise", 4, "--clients", 900,
        "--trust", "local", "--plot", tmp_path / "a.svg",
    )  # fmt: skip
    assert code == 0 and "as often as on average, 1 time," in out
    assert "local, an average client" in out


def test_a_training_that_protects_nobody_says_what_noise_would(call):
    code, out, _ = call(
        "plan", "--rounds", 9, "--rate", 1, "--noise", 0.5, "--clients", 500, "--trust", "central"
    )
    assert code == 0
    assert "beyond 20" in out and "costs epsilon 10" in out


def test_who_may_drop_out_of_secure_sums_is_told_with_what_it_costs(call):
    asked = ("plan", "--columns", 3, "--epsilon", 1, "--clients", 10, "--survivors", 0.8)
    code, out, _ = call(*asked, "--secure")
    assert code == 0
    assert "8 of 10 owners must answer every round, and 2 may drop out" in out
    assert "added up by the whole protocol" not in call(*asked)[1]
    told = json.loads(call(*asked, "--secure", "--json")[1])["secure"]
    assert told == {"cohort": 10, "threshold": 8, "curious": 1, "may_drop": 2}
    assert json.loads(call(*asked, "--json")[1])["secure"] is None
    code, _, err = call(*asked, "--secure", "--trust", "central")
    assert code == 2 and "under central trust no shares of noise are added up" in err


@pytest.mark.parametrize("what", [("--columns", 3), ("--rounds", 3, "--rate", 0.5)])
def test_two_owners_are_told_what_either_choice_leaves_the_other_with(call, what):
    options = (*what, "--epsilon", 1, "--delta", 1e-5, "--unit", "record", "--clients", 2, "--json")
    code, out, _ = call("plan", *options)
    content = json.loads(out)
    other = content["adversaries"][-1]
    assert code == 0 and other["who"] == "one owner" and other["promised"] and other["epsilon"] <= 1
    assert "must be chosen" in content["warnings"][0]
    _, careless, _ = call("plan", *options, "--curious", 0)
    left = json.loads(careless)["adversaries"][-1]
    assert not left["promised"] and left["epsilon"] > 1.4
    assert f"epsilon {left['epsilon']:.4g} against" in content["warnings"][0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say what is planned"),
        (("--columns", 3, "--clients", 3), "give --epsilon"),
        (("--columns", 3, "--epsilon", 1), "give --clients"),
        (("--columns", 0, "--epsilon", 1, "--clients", 3), "at least 1"),
        (("--columns", 3, "--noise", 1, "--clients", 3), "aim has none"),
        (("--columns", 3, "--epsilon", 1, "--clients", 3, "--method", "ami"), "no method"),
        (("--rounds", 3, "--noise", 1, "--clients", 9), "--per-round"),
        (("--rounds", 3, "--per-round", 3, "--noise", 1), "give one"),
        (("--rounds", 3, "--rate", 1, "--clients", 9), "give --epsilon"),
        (("--rounds", 3, "--rate", 1, "--clients", 9, "--epsilon", 1, "--compare"), "schema"),
        (("--columns", 3, "--clients", 9, "--trials", 3, "--releases", 2), "best alone"),
        (("--columns", 3, "--clients", 9, "--epsilon", 1, "--trials", 0.5), "trials must be"),
    ],
)
def test_what_is_missing_is_said(call, options, said):
    code, _, err = call("plan", *options)
    assert code == 2 and said in err


def test_owners_accounts_are_told_and_drawn(call, tmp_path):
    ledger = Ledger.of_owner(tmp_path / "north.jsonl", Budget(epsilon=3.0, delta=1e-6))
    terms = Terms(unit="record", trust="local", clip=1.0, noise_multiplier=6.0)
    ledger.charge(Event("marginals", 0, terms, "a" * 32))
    ledger.close()
    code, out, _ = call("account", tmp_path, "--plot", tmp_path / "b.svg")
    assert code == 0 and "north" in out and "job aaaaaaaaaaaa" in out
    assert "north" in (tmp_path / "b.svg").read_text()
    code, out, _ = call("account", tmp_path, "--json", "--page", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "limit, and by what" in page and "<svg" in page and "no limit" not in page
    assert (tmp_path / "a.html").stat().st_mode & 0o077 == 0
    (account,) = json.loads(out)
    assert code == 0 and account["jobs"][0]["spent"] == account["spent"] < 3
    Ledger.of_owner(tmp_path / "south.jsonl", Budget(epsilon=math.inf)).close()
    code, out, _ = call("account", tmp_path)
    assert code == 0 and "no limit at delta 1e-05" in out and "sets one for good" in out
    assert json.loads(call("account", tmp_path, "--json")[1])[1]["left"] == "inf"
    code, _, err = call("account", tmp_path / "none")
    assert code == 2 and "no such folder" in err
