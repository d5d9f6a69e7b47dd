"""`fedsynth select-privately`: the job file's section, its errors, and what is printed."""

from __future__ import annotations

import json

import pytest

import fedsynth as fs
from fedsynth.privacy.trail.ledger import Ledger
from tests.small_jobs import write_job

SELECT = {"trials": 2, "candidates": [{"method": "private-fusion"},
          {"method": "private-fusion", "settings": {"moment_share": 0.1}}]}  # fmt: skip
JOB = {"privacy": {"epsilon": 5.0, "delta": 1e-4, "trust": "central"}, "select_privately": SELECT,
       "federation": {"ledgers": {"folder": "accounts", "epsilon": 9.0}},
       "method": None, "settings": None}  # fmt: skip


def test_a_job_with_candidates_ends_in_a_release_that_verifies(tmp_path, call):
    job, out = write_job(tmp_path, **JOB), tmp_path / "best"
    code, said, noted = call("select-privately", job, "--out", out, "--json")
    told = json.loads(said)
    assert code == 0 and fs.verify(out).passed
    assert told["chosen"] in (0, 1) and told["trials"] == {"mean": 2.0, "law": "logarithmic"}
    for account in (tmp_path / "accounts").iterdir():
        assert len(Ledger.read(account).events) == 1
    assert "more than epsilon 9 at delta" in (out / "certificate.html").read_text()
    # Neither stderr nor the answer may tell how many there were.
    assert noted == "Trying in secret: nothing is shown of it but the best, at the end\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"candidates": [{"method": "aim"}]}, "a list of two candidates or more"),
        ({"candidates": [{"method": "aim"}, {"method": "aimm"}]}, "did you mean 'aim'"),
        ({"candidates": [{"method": "aim"}, {"settings": {}}]}, "method"),
        ({"candidates": SELECT["candidates"], "trails": 3}, "did you mean 'trials'"),
    ],
)
def test_a_mistake_in_the_section_is_named(change, said, tmp_path, call):
    job = write_job(tmp_path, **{**JOB, "select_privately": change})
    code, _, noted = call("select-privately", job, "--out", tmp_path / "best")
    assert code == 2 and said in noted and not (tmp_path / "best").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "aim"}, "takes no method"),
        ({"federation": {"survivors": 0.5, "deadline": 3}}, "federation.deadline, federation.surv"),
        ({"sample": {"rows": 50, "where": {"income": "high"}}}, "sample.where"),
        ({"holdout": 0.0}, "holdout is the share"),
    ],
)
def test_what_trials_would_not_obey_is_refused(change, said, tmp_path, call):
    code, _, noted = call(
        "select-privately", write_job(tmp_path, **{**JOB, **change}), "--out", tmp_path
    )
    assert code == 2 and said in noted


def test_run_and_select_send_to_each_other(tmp_path, call):
    with_candidates, without = write_job(tmp_path / "a", **JOB), write_job(tmp_path / "b")
    assert "fedsynth select-privately" in call("run", with_candidates, "--out", tmp_path / "c")[2]
    assert (
        "no section `select_privately`"
        in call("select-privately", without, "--out", tmp_path / "c")[2]
    )
    assert not (tmp_path / "c").exists()
