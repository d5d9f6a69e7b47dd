"""A release's files, job and schema are those of its ledger, and who vouches for it is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fedsynth.errors import PrivacyError, ReleaseError
from fedsynth.jobs.loading import load
from fedsynth.plain import hash_plain
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.agreement import agreement_of
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER, MODEL, NAME, PAGE, SCHEMA, sha256
from fedsynth.privacy.trail.job import Closing, Event, Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.sealing import seal
from fedsynth.privacy.trail.signatures import NAME as SIGNATURES
from fedsynth.privacy.trail.signatures import make_key, sign
from fedsynth.privacy.verify import charges
from fedsynth.privacy.verify.verification import verify
from fedsynth.release import read_release
from fedsynth.yaml_files import read_yaml, write_yaml

FORMAT_1, FORMAT_2 = (Path(__file__).parent / f"format-{number}" for number in (1, 2))
TERMS = Terms(
    unit="record", trust="distributed", clip=1.0, noise_multiplier=6.0, survivors=3, curious=1
)
SCHEMA_OF = {"kind": "table", "columns": [{"kind": "boolean", "name": "ill"}]}
SETTINGS = {"bins": 8, "share": 0.1}
AGREED = {
    "seed": 0,
    "holdout": 0.2,
    "outside": 0.05,
    "federation": {"survivors": 0.8, "most_records": 50},
    "sites": {"paths": {"north": "north.csv", "south": "south.csv"}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "release"
    made.mkdir()
    budget = Budget(epsilon=2.0, delta=1e-5, curious=1)
    job = Job(
        budget=budget,
        plan=(Planned("task", TERMS, 2),),
        schema_digest=hash_plain(SCHEMA_OF),
        settings_digest=hash_plain(SETTINGS),
        agreed_digest=hash_plain(agreement_of(AGREED)),
        method="aim",
        clients=3,
    )
    ledger = Ledger.create(job, made / LEDGER)
    for number in range(2):
        ledger.charge(Event("task", number, TERMS, job.job))
    ledger.close()
    (made / "rows.csv").write_text("ill\ntrue\n")
    (made / MODEL).write_text(json.dumps({"method": "aim"}))
    write_yaml(SCHEMA_OF, made / SCHEMA)
    privacy = {"epsilon": 2.0, "delta": 1e-5, "unit": "record", "trust": "distributed"}
    asked = {"privacy": privacy, "method": "aim", "settings": SETTINGS, "sample": {"rows": 5}}
    write_yaml({**asked, **AGREED}, made / CONFIG)
    seal(made, ledger, ["rows.csv", MODEL, SCHEMA, CONFIG])
    return made


def certify_anew(folder: Path, *names: str) -> None:
    """What somebody does who has changed files: the certificate lists their new hashes."""
    content = json.loads((folder / NAME).read_text())
    for name in names:
        content["files"][name] = sha256(folder / name)
    (folder / NAME).write_text(json.dumps(content))


def failed(folder: Path, **asked) -> set[str]:
    return {check.name for check in verify(folder, **asked) if not check.passed}


def found(folder: Path, name: str, **asked) -> str:
    return next(check.found for check in verify(folder, **asked) if check.name == name)


def head(folder: Path) -> str:
    return Ledger.read(folder / LEDGER).head


def close_anew(folder: Path) -> None:
    """What the job's own server could do: a closing line for other files, and a certificate."""
    ledger = Ledger.read(folder / LEDGER)
    names = [p.name for p in folder.iterdir() if p.name not in (LEDGER, NAME, PAGE)]
    seal(folder, ledger, names)


def test_a_sound_release_verifies(folder: Path):
    assert not failed(folder, head=head(folder))
    assert {"closing line", "job", "schema"} <= {check.name for check in verify(folder)}


@pytest.mark.parametrize("name", ["rows.csv", MODEL, SCHEMA, CONFIG])
def test_a_file_that_the_ledger_does_not_name_is_found_whatever_the_certificate_lists(
    folder: Path, name: str
):
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    certify_anew(folder, name)
    assert "closing line" in failed(folder)


CHANGES: list[Callable[[dict], object]] = [
    lambda c: c.update(method="mst"),
    lambda c: c["settings"].update(bins=9),
    lambda c: c["settings"].pop("bins"),
    lambda c: c.pop("settings"),
    lambda c: c["privacy"].update(epsilon=0.5),
    lambda c: c["privacy"].update(epsilon="inf"),
    lambda c: c["privacy"].update(delta=1e-6),
    lambda c: c["privacy"].update(unit="client"),
    lambda c: c["privacy"].update(trust="local"),
    lambda c: c["privacy"].update(curious=2),
    lambda c: c.update(seed=1),
    lambda c: c.update(holdout=0.5),
    lambda c: c.pop("holdout"),
    lambda c: c.update(outside="allow"),
    lambda c: c["federation"].update(survivors=1.0),
    lambda c: c["federation"].pop("most_records"),
    lambda c: c["sites"]["paths"].update(west="west.csv"),
    lambda c: c["sites"]["paths"].pop("south"),
    lambda c: c.update(sites={"clients": 2, "scheme": "uniform"}),
    lambda c: c.pop("privacy"),
    lambda c: c["privacy"].update(epsilon="much"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_job_other_than_the_ledgers_is_found_even_where_the_ledger_was_closed_over_it(
    folder: Path, change: Callable[[dict], object]
):
    content = read_yaml(folder / CONFIG, ReleaseError)
    change(content)
    write_yaml(content, folder / CONFIG)
    close_anew(folder)
    assert failed(folder) == {"job"}


def test_another_schema_or_method_is_found_even_where_the_ledger_was_closed_over_it(folder: Path):
    write_yaml({**SCHEMA_OF, "name": "other"}, folder / SCHEMA)
    (folder / MODEL).write_text(json.dumps({"method": "mst"}))
    close_anew(folder)
    assert failed(folder) == {"schema", "job"}


@pytest.mark.parametrize(
    ("deviation", "sound"),
    [(0.0, False), (7.3, False), (7.4, True), ([9, 7.3], False), ([9, 7.4], True), ([], False)],
)
def test_a_model_of_tables_with_less_noise_than_the_ledger_promises_is_found(
    folder: Path, deviation: float | list[float], sound: bool
):
    # Three answers, of which two carry noise of multiplier 6 together: 6 sqrt(3/2) = 7.348.
    model = {"method": "aim", "measured": [[[0], 9.0], [[1], deviation]]}
    (folder / MODEL).write_text(json.dumps(model))
    close_anew(folder)
    assert failed(folder) == (set() if sound else {"job"})


@pytest.mark.parametrize("name", [SCHEMA, CONFIG, MODEL])
def test_what_cannot_be_read_is_said(folder: Path, name: str):
    (folder / name).write_text('{"method": "aim", "method": "aim"}')
    close_anew(folder)
    assert any("cannot be read" in check.found for check in verify(folder) if not check.passed)


def test_a_release_without_its_schema_or_job_is_found(folder: Path):
    for name in (SCHEMA, CONFIG):
        (folder / name).unlink()
    close_anew(folder)
    assert failed(folder) == {"schema", "job"}


def test_an_unlisted_file_a_link_and_a_key_that_stands_twice_are_found(folder: Path):
    (folder / "notes.txt").write_text("x")
    assert failed(folder) == {"other files"}
    (folder / "notes.txt").unlink()
    (folder / "rows.csv").rename(folder.parent / "rows.csv")
    (folder / "rows.csv").symlink_to(folder.parent / "rows.csv")
    assert failed(folder) == {"rows.csv"}
    text = (folder / NAME).read_text()
    (folder / NAME).write_text(text.replace("{", '{"format": 2, ', 1))
    with pytest.raises(ReleaseError, match="damaged"):
        verify(folder)


def test_a_ledger_without_its_last_line_is_found(folder: Path):
    lines = (folder / LEDGER).read_bytes().splitlines(keepends=True)
    (folder / LEDGER).write_bytes(b"".join(lines[:-1]))
    certify_anew(folder, LEDGER)
    assert {"closing line", "ledger"} & failed(folder)


def test_nothing_is_charged_after_the_last_line(folder: Path):
    ledger = Ledger.open(folder / LEDGER)
    with pytest.raises(PrivacyError, match="closed"):
        ledger.charge(Event("task", 2, TERMS, ledger.job.job))
    ledger.close()
    assert not failed(folder)


def test_a_closing_line_is_written_once_for_the_same_files(folder: Path):
    before = (folder / LEDGER).read_bytes()
    close_anew(folder)
    assert (folder / LEDGER).read_bytes() == before
    (folder / "rows.csv").write_text("ill\nfalse\n")
    close_anew(folder)
    assert (folder / LEDGER).read_bytes().count(b'"kind":"closing"') == 2
    assert not failed(folder)


def test_an_event_after_the_last_line_is_no_ledger(folder: Path):
    ledger = Ledger.read(folder / LEDGER)
    copy = Ledger.create(ledger.job, folder / "copy.jsonl")
    lines = copy._lines
    lines.append(Closing({}).to_dict())
    lines.append(Event("task", 0, TERMS, ledger.job.job).to_dict())
    copy.close()
    with pytest.raises(ReleaseError, match="misses what a ledger line must say"):
        Ledger.read(folder / "copy.jsonl")


def test_a_published_head_holds_for_its_release_alone(folder: Path):
    published = head(folder)
    assert not failed(folder, head=f" {published.upper()}\n")
    assert failed(folder, head="0" * 64) == {"head"}
    (folder / "rows.csv").write_text("ill\nfalse\n")
    close_anew(folder)
    assert not failed(folder) and failed(folder, head=published) == {"head"}


def test_who_vouches_is_told_and_a_trusted_key_must_have_signed(folder: Path, tmp_path: Path):
    assert "nobody vouches" in found(folder, "signatures")
    keys = tmp_path / "keys"
    keys.mkdir()
    north, _ = make_key(keys / "north")
    assert failed(folder, trust=keys) == {"trust"}
    sign(folder, head(folder), north, "North")
    make_key(keys / "south")
    assert "North" in found(folder, "signatures")
    assert "north vouched" in found(folder, "trust", trust=keys)
    assert "not south" in found(folder, "trust", trust=keys)
    assert failed(folder, trust=keys / "south.pub") == {"trust"}
    assert not failed(folder, trust=keys / "north.pub")


def test_a_signature_of_another_release_is_found(folder: Path, tmp_path: Path):
    north, public = make_key(tmp_path / "north")
    sign(folder, "0" * 64, north, "North")
    assert failed(folder) == {"signatures"} and "signatures" in failed(folder, trust=public)
    (folder / SIGNATURES).write_text("[1]")
    assert failed(folder) == {"signatures"}


def test_a_release_of_format_1_verifies_and_says_what_it_does_not_bind(tmp_path: Path):
    old = shutil.copytree(FORMAT_1, tmp_path / "old")
    assert not failed(old)
    said = found(old, "format 1")
    # Two owners: the other one is left with half of the noise.
    assert "certificate alone" in said and "epsilon is 1.465" in said
    (old / "notes.txt").write_text("x")
    assert not failed(old) and "notes.txt" in found(old, "other files")


@pytest.mark.parametrize("stored", [FORMAT_1, FORMAT_2], ids=["1", "2"])
def test_what_an_earlier_fedsynth_wrote_is_verified_read_and_drawn_from_for_good(stored: Path):
    assert not failed(stored)
    rows, _, _ = read_release(stored)
    assert list(load(stored).sample(3, seed=0)) == list(rows)


@pytest.mark.parametrize(
    ("mechanism", "fault"),
    [("gaussian", 0.9), ("stable", 0.9), ("laplace", 0.5), ("gaussian", 1.0), ("laplace", 1.0)],
)
def test_epsilon_of_adversaries_is_held_against_shares_that_are_counted_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str, fault: float
):
    fields = {"norm": "l2" if mechanism == "gaussian" else "l1", "mechanism": mechanism}
    fields["alpha"] = 1.5 if mechanism == "stable" else None
    made = replace(TERMS, **fields)
    job = Job(
        budget=Budget(epsilon=90.0, delta=1e-5, curious=1),
        plan=(Planned("task", made, 1),),
        clients=3,
    )
    ledger = Ledger.create(job)
    ledger.charge(Event("task", 0, made, job.job))
    right = type(made.noise).left
    # Less of the noise is taken off than colluding owners know.
    monkeypatch.setattr(type(made.noise), "left", lambda *a: (right(*a) or 0.01) / fault)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    seal(tmp_path, ledger, ["rows.csv"])
    assert ("adversaries" in failed(tmp_path)) is (fault < 1 or mechanism == "laplace")


def test_adversaries_that_the_second_accountant_counts_otherwise_are_refused(folder, monkeypatch):
    assert not failed(folder)
    monkeypatch.setattr(charges, "colluders", lambda lines: [1])
    assert failed(folder) == {"adversaries"}
