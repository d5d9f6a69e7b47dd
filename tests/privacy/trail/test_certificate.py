"""A certificate says what its ledger says, fits its JSON schema, and tells no private count."""

from __future__ import annotations

import json
import math
from importlib import resources
from itertools import product
from pathlib import Path

import jsonschema
import pytest

from fedsynth.errors import ReleaseError
from fedsynth.plain import round_up
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson, Sampling
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.certificate import NAME, Certificate, certify, sha256
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger

SCHEMA = json.loads(
    resources.files("fedsynth.privacy.trail").joinpath("certificate.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
FILES = {"rows.csv": "a" * 64, "ledger.jsonl": "0" * 64}


def ledger_of(
    unit: str = "record",
    trust: str = "central",
    mechanism: str = "gaussian",
    sampling: Sampling | None = None,
    multiplier: float = 20.0,
    **job,
) -> Ledger:
    budget = job.pop("budget", Budget(epsilon=math.inf, delta=1e-5, unit=unit, trust=trust))
    ledger = Ledger.create(Job(budget=budget, schema_digest="b" * 64, **job))
    terms = Terms(
        unit=unit,
        trust=trust,
        clip=0.5,
        noise_multiplier=multiplier,
        norm="l2" if mechanism == "gaussian" else "l1",
        mechanism=mechanism,
        sampling=sampling or Everyone(),
        survivors=3 if trust == "distributed" else 1,
        alpha=1.5 if mechanism == "stable" else None,
        weigh=budget.weigh,
    )
    for number in range(2):
        ledger.charge(Event("task", number, terms, ledger.job.job))
    return ledger


def combinations():
    for unit, trust, mechanism, sampling, multiplier in product(
        ("record", "person", "client"),
        ("central", "distributed", "local"),
        ("gaussian", "laplace", "exponential", "stable"),
        (Everyone(), Poisson(0.2), FixedSize(2, 10)),
        (20.0, 0.0),
    ):
        if mechanism == "laplace" and sampling != Everyone():
            continue
        if mechanism == "stable" and isinstance(sampling, FixedSize):
            continue
        if mechanism == "exponential" and (trust != "central" or sampling != Everyone()):
            continue
        if unit != "client" and (isinstance(sampling, FixedSize) or not multiplier):
            continue
        yield unit, trust, mechanism, sampling, multiplier


@pytest.mark.parametrize(
    ("unit", "trust", "mechanism", "sampling", "multiplier"), list(combinations())
)
def test_every_certificate_fits_the_schema(
    unit: str, trust: str, mechanism: str, sampling: Sampling, multiplier: float, tmp_path: Path
):
    certificate = certify(ledger_of(unit, trust, mechanism, sampling, multiplier), FILES)
    certificate.save(tmp_path)
    VALIDATOR.validate(json.loads((tmp_path / NAME).read_text()))
    assert Certificate.load(tmp_path) == certificate
    assert (certificate.void is None) is (multiplier > 0)
    assert math.isinf(certificate.epsilon) is (multiplier == 0)


def test_certificates_with_every_remark_fit_the_schema():
    budget = Budget(epsilon=50, delta=0.2, unit="client", trust="central", units=9)
    remarked = ledger_of(
        "client", budget=budget, schema_provenance="private-data",
        owners_provenance="private-data", insecure=True, participations=3,
    )  # fmt: skip
    empty = Ledger.create(Job(budget=Budget(epsilon=1)))
    for ledger in (remarked, empty):
        VALIDATOR.validate(certify(ledger, FILES).content)
    content = certify(remarked, {}).content
    assert [words in caution for words, caution in zip(
        ("outright", "epsilon 50 is above 10", "among few"), content["cautions"], strict=True
    )] == [True] * 3  # fmt: skip
    schema, owners = content["not_covered"]
    assert all("not covered by epsilon" in sentence for sentence in (schema, owners))
    assert schema.startswith("The schema") and owners.startswith("The owners' names")
    assert certify(empty, {}).content["not_covered"] == []
    assert "known seed" in content["void"]


def test_the_schema_is_itself_valid_and_strict():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def objects(part: object):
        if isinstance(part, dict):
            if part.get("type") == "object":
                yield part
            for value in part.values():
                yield from objects(value)
        elif isinstance(part, list):
            for value in part:
                yield from objects(value)

    for part in objects(SCHEMA):
        assert part["additionalProperties"] is False or "propertyNames" in part
        # Written only where they say something, so that earlier certificates stay as they are.
        optional = {"steps", "alpha", "curious", "clients", "adversaries", "incidents"}
        optional |= {"date", "method", "parts", "trials", "weigh"}
        assert set(part.get("required", [])) == set(part.get("properties", {})) - optional


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: c.update(extra=1),
        lambda c: c.pop("sentence"),
        lambda c: c["guarantee"].update(epsilon=-1),
        lambda c: c["guarantee"].update(epsilon="Infinity"),
        lambda c: c["guarantee"].update(answered=10),
        lambda c: c["guarantee"].update(unit="row"),
        lambda c: c["releases"][0]["terms"].update(clip=0),
        lambda c: c["releases"][0]["terms"].update(mechanism="laplace"),
        lambda c: c["releases"][0]["terms"].update(mechanism="exponential"),
        lambda c: c["releases"][0]["terms"].update(
            mechanism="exponential", norm="l1", sampling={"kind": "poisson", "rate": 0.5}
        ),
        lambda c: c["releases"][0]["terms"].update(
            mechanism="exponential", norm="l1", trust="distributed"
        ),
        lambda c: c["releases"][0]["terms"].update(sampling={"kind": "poisson", "rate": 2}),
        lambda c: c["releases"][0]["terms"].update(alpha=1.5),
        lambda c: c["releases"][0]["terms"].update(mechanism="stable", norm="l1"),
        lambda c: c["releases"][0]["terms"].update(mechanism="stable", alpha=1.5),
        lambda c: c["releases"][0]["terms"].update(mechanism="stable", norm="l1", alpha=2),
        lambda c: c["releases"][0]["terms"].update(mechanism="levy", norm="l1", alpha=1.5),
        lambda c: c["ledger"].update(head="xyz"),
        lambda c: c["files"].update({"../x": "a" * 64}),
        lambda c: c["files"].update({"x": "short"}),
    ],
)
def test_the_schema_refuses_what_no_certificate_says(damage):
    content = json.loads(json.dumps(certify(ledger_of(), FILES).content))
    damage(content)
    assert not VALIDATOR.is_valid(content)


@pytest.mark.parametrize(
    ("unit", "trust", "sampling", "relation", "word"),
    [
        ("record", "distributed", Poisson(0.2), "add-or-remove-one", "Adding or removing"),
        ("client", "central", Poisson(0.2), "zero-out-one", "contribution"),
        ("client", "central", FixedSize(2, 10), "replace-one", "Exchanging"),
        ("client", "local", FixedSize(2, 10), "replace-one", "Exchanging"),
        ("client", "distributed", Everyone(), "zero-out-one", "contribution"),
        ("client", "local", Poisson(0.2), "zero-out-one", "contribution"),
    ],
)
def test_the_sentence_says_which_neighbours_its_epsilon_is_about(
    unit: str, trust: str, sampling: Sampling, relation: str, word: str
):
    certificate = certify(ledger_of(unit, trust, sampling=sampling), FILES)
    assert certificate.content["guarantee"]["neighbours"] == relation
    assert word in certificate.sentence
    assert f"epsilon {round_up(certificate.epsilon, 4)}" in certificate.sentence


def test_a_certificate_of_format_1_says_what_it_said():
    """It is derived anew where it is verified, and has to come out the same."""
    budget = Budget(epsilon=50, delta=1e-3, trust="central", units=500)
    old, new = (
        certify(ledger_of(budget=budget, format=format), FILES).content["cautions"]
        for format in (1, 2)
    )
    assert old == [] and len(new) == 2


def test_choices_are_put_into_words_and_nothing_else_is():
    said = certify(ledger_of(mechanism="exponential"), FILES).content["guarantee"]
    plain = certify(ledger_of(), FILES).content["guarantee"]
    assert "nothing but the choice is released" in said["trust_in_words"]
    assert plain["trust_in_words"] in said["trust_in_words"]
    assert "exponential" not in plain["trust_in_words"]


def test_heavy_tails_are_put_into_words_and_nothing_else_is():
    ledger = ledger_of(mechanism="stable", trust="distributed")
    said, plain = certify(ledger, FILES).content, certify(ledger_of(), FILES).content
    assert said["cautions"][:-1] == plain["cautions"]
    assert said["cautions"][-1].startswith("task (alpha 1.5): symmetric alpha-stable noise")
    assert "variance is infinite" in said["cautions"][-1]
    assert said["releases"][0]["terms"]["alpha"] == 1.5
    assert "alpha" not in plain["releases"][0]["terms"]


def test_a_row_a_client_in_a_job_that_protects_records_is_named_with_its_price():
    ledger = ledger_of(trust="distributed")
    whole = Terms(unit="client", trust="distributed", clip=1.0, noise_multiplier=30.0, survivors=3)
    ledger.charge(Event("votes", 2, whole, ledger.job.job))
    content = certify(ledger, FILES).content
    VALIDATOR.validate(content)
    caution = content["cautions"][-1]
    assert caution.startswith("votes: one row for a whole client")
    assert "half their noise multiplier" in caution
    assert content["guarantee"]["neighbours"] == "add-or-remove-one"
    assert content["guarantee"]["unit"] == "record"


@pytest.mark.parametrize(
    ("given", "described"),
    [
        ({}, "rows of a random person: each of a person's k rows weighs 1/k (weigh: person)"),
        ({"weigh": "row", "person_clip": 3}, "random rows"),
    ],
)
def test_a_guarantee_of_persons_says_who_is_one_and_what_the_rows_describe(given, described):
    budget = Budget(epsilon=math.inf, unit="person", trust="central", **given)
    ledger = ledger_of("person", budget=budget)
    content = certify(ledger, FILES).content
    assert "any one person with all its rows at one owner" in content["sentence"]
    apart, weighed = content["cautions"][-2:]
    assert "with rows at k owners epsilon is up to k times as large" in apart
    assert described in weighed
    assert content["guarantee"]["neighbours"] == "add-or-remove-one"
    # A ledger says how rows were weighed, and is read as it was written.
    assert Job.from_dict(ledger.job.to_dict()) == ledger.job


def test_the_quoted_epsilon_is_never_below_what_the_server_could_learn():
    for trust in ("central", "distributed", "local"):
        ledger = ledger_of("client", trust, sampling=Poisson(0.1))
        guarantee = certify(ledger, FILES).content["guarantee"]
        assert guarantee["epsilon"] == ledger.spent().epsilon
        assert guarantee["epsilon"] == min(guarantee["rdp"], guarantee["pld"])


def test_a_huge_epsilon_is_put_into_words():
    certificate = certify(ledger_of(multiplier=0.01), FILES)
    assert "astronomical" in certificate.sentence


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"format": 1}', "[" * 100_000, '{"format": 2, "files": {}}'],
)
def test_a_damaged_certificate_is_refused_by_name(tmp_path: Path, text: str):
    (tmp_path / NAME).write_text(text)
    with pytest.raises(ReleaseError, match=NAME):
        Certificate.load(tmp_path)


def test_a_certificate_that_is_no_text_or_no_file_is_refused(tmp_path: Path):
    (tmp_path / NAME).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReleaseError, match="damaged"):
        Certificate.load(tmp_path)
    with pytest.raises(ReleaseError, match="missing"):
        Certificate.load(tmp_path / "none")
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    with pytest.raises(ReleaseError):
        Certificate.load(tmp_path)


def test_a_file_is_hashed_as_any_other_tool_would(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"abc")
    assert sha256(tmp_path / "f").startswith("ba7816bf8f01cfea414140de5dae2223")


def test_a_certificate_is_shown_with_its_figures():
    budget = Budget(epsilon=3.0, delta=1e-5, unit="record", trust="distributed", curious=0)
    ledger = ledger_of(
        trust="distributed", budget=budget, clients=4, schema_provenance="private-data"
    )
    certificate = certify(ledger, FILES)
    shown, html = " ".join(repr(certificate).split()), certificate._repr_html_()
    assert certificate.sentence in shown and certificate.sentence in html
    for one in certificate.content["adversaries"]:
        assert f"{one['epsilon']:.4g}" in shown and one["who"] in html
    told = [*certificate.content["not_covered"], *certificate.content["cautions"]]
    assert told and all(sentence in shown for sentence in told)
    assert ledger.head in shown and 'class="void"' not in html


def test_a_void_certificate_promises_nobody_anything():
    certificate = certify(ledger_of(multiplier=0.0), FILES)
    shown, html = repr(certificate), certificate._repr_html_()
    assert "! Void: at least one release carries no noise" in shown
    assert "promised" not in shown and '<p class="void">Void:' in html


def test_a_certificate_that_is_none_can_be_looked_at():
    assert "Certificate object at" in repr(Certificate({}))
