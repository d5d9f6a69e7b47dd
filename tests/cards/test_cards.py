"""A release's metadata and annex: true of it, readable by others, silent on what nobody knows."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from fedsynth.cards import writing
from fedsynth.cards.annex import UNKNOWN, read_report, write_annex
from fedsynth.cards.croissant import describe
from fedsynth.cards.writing import write_card
from fedsynth.cli import app as cli
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.privacy.trail.certificate import Certificate

RELEASE = Path(__file__).parents[1] / "privacy" / "verify" / "format-2"
HEAD = Certificate.load(RELEASE).content["ledger"]["head"]


def _report(folder: Path, *, public: bool = False, head: str = HEAD, **privacy: object) -> Path:
    folder.mkdir()
    content = {
        "certificate": {"head": head},
        "disclosure": {"public": public},
        "privacy": {"risks": [], "membership": [], "attributes": [], **privacy},
    }
    (folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_every_file_is_described_by_its_own_hash_and_every_column_is_a_field():
    described = describe(RELEASE)
    for one in described["distribution"]:
        file = RELEASE / one["contentUrl"]
        assert one["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    (records,) = described["recordSet"]
    header = next(csv.reader((RELEASE / "rows.csv").open(encoding="utf-8")))
    assert [field["source"]["extract"]["column"] for field in records["field"]] == header
    assert {field["source"]["fileObject"]["@id"] for field in records["field"]} == {"rows.csv"}


def test_croissants_own_library_finds_no_fault_and_reads_the_rows(tmp_path):
    croissant = pytest.importorskip("mlcroissant", reason="pip install mlcroissant")
    copy = shutil.copytree(RELEASE, tmp_path / "release")
    (copy / "croissant.json").write_text(json.dumps(describe(RELEASE)), encoding="utf-8")
    found = croissant.Dataset(jsonld=copy / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    rows = list(csv.DictReader((RELEASE / "rows.csv").open(encoding="utf-8")))
    assert sum(1 for _ in found.records("rows")) == len(rows)


def test_nothing_is_said_that_the_publisher_has_to_say():
    assert not {"license", "creator", "url", "citeAs"} & describe(RELEASE).keys()
    assert write_annex(RELEASE, None).count(UNKNOWN) >= 6


def test_the_annex_bounds_all_three_tests_by_the_certificates_epsilon():
    """At epsilon e and delta d: right at most (e^e + d) / (1 + e^e) of the time."""
    certificate = Certificate.load(RELEASE)
    e = 2.718281828459045**certificate.epsilon
    right = 100 * (e + certificate.content["guarantee"]["delta"]) / (1 + e)
    text = write_annex(RELEASE, None)
    assert text.count(f"right about it {right:.1f} % of the time at most") == 2
    assert f"e^{certificate.epsilon:.3g}" in text.split("### Inference")[1]
    assert text.count("**Measured.** Nothing: no evaluation was given") == 3


def test_measured_attacks_stand_under_their_own_test(tmp_path):
    risks = [
        {"name": f"{kind}, x", "sentence": f"<{kind}> found."}
        for kind in ("singling out", "linkability", "inference")
    ]
    told = read_report(
        _report(tmp_path / "report", risks=risks, membership=[{"sentence": "A member | was."}]),
        Certificate.load(RELEASE),
    )
    text = write_annex(RELEASE, told)
    assert "Not to be published" in text
    for heading, sentence in (
        ("Singling out", r"\<singling out\> found."),
        ("Singling out", r"A member \| was."),
        ("Linkability", r"\<linkability\> found."),
        ("Inference", r"\<inference\> found."),
    ):
        assert sentence in text.split(f"### {heading}\n")[1].split("\n##")[0]
        assert text.count(sentence) == 1


def test_a_report_of_another_release_is_refused(tmp_path):
    other = _report(tmp_path / "other", head="0" * 64)
    with pytest.raises(ConfigError, match="another release"):
        read_report(other, Certificate.load(RELEASE))
    (other / "report.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ConfigError, match="damaged"):
        read_report(other, Certificate.load(RELEASE))


@pytest.mark.parametrize(("public", "mode"), [(False, 0o600), (True, 0o644)])
def test_an_annex_with_private_figures_is_for_its_writer_alone(tmp_path, monkeypatch, public, mode):
    # `tests/privacy/verify` verifies this one, by the exact accountant.
    monkeypatch.setattr(writing, "require", lambda folder: None)
    before = os.umask(0o022)
    try:
        report = _report(tmp_path / "report", public=public)
        _, annex = write_card(_whole(tmp_path), tmp_path / "card", report)
    finally:
        os.umask(before)
    assert annex.stat().st_mode & 0o777 == mode


def test_no_card_is_written_of_a_release_that_does_not_verify(tmp_path):
    broken = _whole(tmp_path)
    (broken / "rows.csv").write_text("age\n1\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="does not verify"):
        write_card(broken, tmp_path / "card")
    assert not (tmp_path / "card").exists()


def test_a_release_takes_no_card_into_itself(tmp_path):
    whole = _whole(tmp_path)
    before = sorted(whole.iterdir())
    assert cli.run(["card", str(whole), "--out", str(whole)]) == 2
    assert sorted(whole.iterdir()) == before


def _whole(tmp_path: Path) -> Path:
    return shutil.copytree(RELEASE, tmp_path / "release")
