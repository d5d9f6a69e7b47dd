"""What was verified, as a person sees it."""

from __future__ import annotations

from fedsynth.privacy.verify.check import Check, Checks

GOOD, BAD = Check("ledger", True, "chain intact"), Check("rows.csv", False, "changed <b>")


def test_checks_that_hold_are_a_table():
    checks = Checks([GOOD])
    assert checks.passed and checks == (GOOD,)
    assert repr(checks).splitlines()[0] == "Verified: 1 checks hold"
    assert "ledger  ok  chain intact" in repr(checks)


def test_checks_that_fail_are_named_first():
    checks = Checks([GOOD, BAD])
    assert not checks.passed
    lines = repr(checks).splitlines()
    assert lines[:2] == ["Not verified", "! 1 of 2 checks fail: rows.csv."]
    assert "rows.csv  FAILED  changed <b>" in lines
    assert '<p class="void">1 of 2 checks fail: rows.csv.</p>' in checks._repr_html_()
    assert "changed &lt;b&gt;" in checks._repr_html_()
