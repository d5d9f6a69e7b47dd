"""Charges read from raw lines: rule by rule as worked by hand, and as the first accountant's."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import FedsynthError, ReleaseError
from fedsynth.privacy import mechanisms, units
from fedsynth.privacy.accounting import charged, replaces_one
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trust import TRUSTS
from fedsynth.privacy.verify import charges, clips, gaussian, moments, pure
from fedsynth.privacy.verify.charges import Charge, charge, structure
from tests.charges import charges_of

TERMS = {
    "unit": "record",
    "trust": "central",
    "clip": 0.5,
    "noise_multiplier": 6.0,
    "norm": "l2",
    "mechanism": "gaussian",
    "sampling": {"kind": "everyone"},
    "survivors": 3,
}
POISSON = {"kind": "poisson", "rate": 0.25}
FIXED = {"kind": "fixed-size", "size": 2, "population": 8}


def lines(*releases: dict, steps: tuple[int, ...] = (), **budget) -> list[dict]:
    """A ledger of releases that differ from :data:`TERMS` so; its job's fields are the budget's."""
    limit = budget.pop("participations", None)
    given = {"epsilon": 9, "delta": 1e-5, "unit": "record", "trust": "central", "units": None}
    terms = [{**TERMS, **release} for release in releases]
    job = {
        "kind": "job",
        "format": 1,
        "job": "j",
        "budget": {**given, **budget},
        "participations": limit,
        "plan": [{"label": "stage", "terms": one, "count": 1} for one in terms],
    }
    events = [
        {"kind": "event", "label": "task", "round": at, "job": "j", "terms": one}
        for at, one in enumerate(terms)
    ]
    for event, number in zip(events, steps, strict=False):
        event["steps"] = number
    return [job, *events]


CLIENT, DISTRIBUTED, LOCAL = {"unit": "client"}, {"trust": "distributed"}, {"trust": "local"}
DRAWN = {**CLIENT, **DISTRIBUTED, "sampling": POISSON}
WHOLE = Charge("gaussian", 6.0)


@pytest.mark.parametrize(
    ("ledger", "counts"),
    [
        (lines({}, {}), {WHOLE: 2}),
        # What a record's client adds, and which share of it, is no matter; nor is the clip.
        (lines({"clip": 2.0}, {**DISTRIBUTED, "survivors": 9}, LOCAL), {WHOLE: 3}),
        (lines(DISTRIBUTED | {"curious": 2}, trust="distributed"), {WHOLE: 1}),
        # Records are drawn in secret, whoever is trusted.
        (
            lines(*({"sampling": POISSON, "trust": trust} for trust in TRUSTS)),
            {Charge("gaussian", 6.0, sampling="poisson", rate=0.25): 3},
        ),
        (lines({"sampling": {"kind": "poisson", "rate": 1}}), {WHOLE: 1}),
        # A message of so many noisy sums.
        (lines(LOCAL, LOCAL, steps=(40,)), {WHOLE: 41}),
        # A client's row in a job about records.
        (lines(CLIENT, DRAWN, participations=1), {Charge("gaussian", 3.0): 2}),
        (
            lines({**CLIENT, "norm": "l1", "mechanism": "stable", "alpha": 1.5}),
            {Charge("stable", 3.0, 1.5): 1},
        ),
        # Drawn clients: in secret where the server is trusted, else in as many rounds as they may.
        (
            lines(*3 * [CLIENT | {"sampling": POISSON}], unit="client", participations=2),
            {Charge("gaussian", 6.0, sampling="poisson", rate=0.25): 3},
        ),
        (lines(*3 * [DRAWN], unit="client"), {WHOLE: 3}),
        (lines(*3 * [DRAWN], unit="client", participations=2), {WHOLE: 2}),
        (lines(*3 * [DRAWN], unit="client", participations=5), {WHOLE: 3}),
        (
            lines(*3 * [DRAWN | LOCAL], unit="client", participations=2, steps=(3, 1, 5)),
            {WHOLE: 8},
        ),
        # Whom nobody drew has agreed to no limit.
        (
            lines(*2 * [CLIENT | LOCAL], *3 * [DRAWN], unit="client", participations=1),
            {WHOLE: 3},
        ),
        # Samples of a fixed size: who is in them shows as well, and neighbours exchange one.
        (
            lines(CLIENT | {"sampling": FIXED}, CLIENT, unit="client"),
            {Charge("gaussian", 6.0, sampling="fixed-size", rate=0.25): 1, WHOLE: 1},
        ),
        (
            lines(*3 * [CLIENT | LOCAL | {"sampling": FIXED}], unit="client", participations=2),
            {Charge("gaussian", 6.0, sampling="fixed-size"): 2},
        ),
        (lines({"noise_multiplier": 0}), {Charge("gaussian", 0.0): 1}),
        ([*lines({}), {"kind": "closing", "files": {}}], {WHOLE: 1}),
    ],
)
def test_a_ledger_is_charged_as_the_argument_says(ledger: list[dict], counts: dict[Charge, int]):
    read = charge(ledger)
    assert read.counts == counts
    assert read.replace_one is any(one.sampling == "fixed-size" for one in counts)
    assert all(passed for _, passed, _ in structure(ledger))


@pytest.mark.parametrize(
    ("delta", "units", "found"),
    [(1e-3, 10**6, 1e-3), (None, None, 1e-5), (None, 1000, 1e-5), (None, 10**6, 10**-6.6)],
)
def test_delta_is_as_given_or_as_the_number_of_units_asks(delta, units, found):
    read = charge(lines({}, delta=delta, units=units))
    assert read.delta == pytest.approx(found, rel=1e-12)
    assert read.delta == pytest.approx(Budget(epsilon=1, delta=delta, units=units).resolved_delta)


@st.composite
def ledgers(draw) -> Ledger:
    """Any that can be written, of few different terms, so that releases are alike."""
    unit, limit = draw(st.sampled_from(units.names())), draw(st.none() | st.integers(1, 4))
    ledger = Ledger.create(
        Job(budget=Budget(epsilon=1, unit=unit, trust="central"), participations=limit)
    )
    samplings = st.sampled_from([Everyone(), Poisson(0.25), Poisson(1.0), FixedSize(2, 8)])
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(mechanisms.names()))
        given = {
            "unit": draw(st.sampled_from(units.names())),
            "trust": draw(st.sampled_from(sorted(TRUSTS))),
            "mechanism": kind,
            "alpha": draw(st.sampled_from([None, 1.5])),
            "sampling": draw(samplings),
            "clip": draw(st.sampled_from([1.0, 2])),
            "noise_multiplier": draw(st.sampled_from([0.0, 3, 6.0])),
            "survivors": draw(st.integers(1, 2)),
            "curious": draw(st.sampled_from([0, 0, 1])),
        }
        joined = units.unit_of(given["unit"]).joined
        given["weigh"] = draw(st.sampled_from(["person", "row"])) if joined else None
        try:
            terms = Terms(norm=norm_of(kind), **given)
            ledger.admit(terms)
        except FedsynthError:
            continue
        # Only where records are hidden does a client train by itself.
        steps = draw(st.integers(1, 5)) if terms.protects.per_record else 1
        ledger.count(Event("task", number, terms, "j", steps))
    return ledger


@settings(max_examples=60)
@given(ledgers())
def test_both_accountants_charge_every_ledger_alike(ledger: Ledger):
    job = ledger.job
    raw = [{"kind": "job", **job.to_dict()}, *(event.to_dict() for event in ledger.events)]
    first = charged(ledger.counts, job.participations, job.budget.unit)
    second = charge(json.loads(json.dumps(raw)))
    assert second.counts == charges_of(first)
    assert second.replace_one is replaces_one(first)
    assert second.delta == pytest.approx(job.budget.resolved_delta)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "house"}, "may move any number"),
        ({"unit": ["record"]}, "may move any number"),
        ({"trust": "blind"}, "blind trust"),
        ({"mechanism": "levy"}, "levy noise"),
        ({"mechanism": ["gaussian"]}, "noise for rows"),
        ({"mechanism": "laplace"}, "laplace noise for rows that are clipped in l2"),
        ({"norm": "l1"}, "gaussian noise for rows that are clipped in l1"),
        ({"alpha": 1.5}, "gaussian noise of index 1.5"),
        ({"mechanism": "stable", "norm": "l1"}, "stable noise of index None"),
        ({"mechanism": "stable", "norm": "l1", "alpha": 2}, "stable noise of index 2"),
        ({"noise_multiplier": -1.0}, "noise of -1.0"),
        ({"noise_multiplier": float("nan")}, "noise of nan"),
        ({"noise_multiplier": True}, "noise of True"),
        ({"noise_multiplier": "6"}, "noise of 6"),
        ({"clip": 0}, "a clip of 0"),
        ({"clip": 10**400}, "a clip of 1000"),
        ({"sampling": "everyone"}, "terms that are none"),
        ({"sampling": {"kind": "chosen"}}, "chosen sampling"),
        ({"sampling": {"kind": "everyone", "rate": 0.1}}, "unknown fields [(]rate"),
        ({"sampling": {"kind": "poisson"}}, "no rate"),
        ({"sampling": {"kind": "poisson", "rate": 1.5}}, "rate of 1.5"),
        ({"sampling": {"kind": "poisson", "rate": 0}}, "rate of 0"),
        ({"sampling": FIXED}, "records in samples of a fixed size"),
        ({"sampling": {**FIXED, "size": 9}}, "9 drawn of 8"),
        ({"sampling": {**FIXED, "size": 2.0}}, "2.0 drawn of 8"),
        ({"mechanism": "exponential", "norm": "l1", "sampling": POISSON}, "a choice"),
        ({"mechanism": "exponential", "norm": "l1", **DISTRIBUTED}, "a choice"),
        ({"survivors": 0}, "0 survivors"),
        ({**DISTRIBUTED, "curious": -1}, "-1 curious"),
        ({**DISTRIBUTED, "curious": 3}, "nobody carries the noise"),
        ({**DISTRIBUTED, "curious": 1.0}, "1.0 curious"),
        ({"curious": 1}, "under central trust, where noise has no shares"),
        ({**LOCAL, "curious": 1}, "under local trust, where noise has no shares"),
        ({"weigh": "row"}, "records' rows that are weighed by row"),
        ({"unit": "person", "weigh": "row"}, "rows of persons, of which one record may move any"),
        ({"amplified": True}, "unknown fields [(]amplified"),
    ],
)
def test_a_release_that_no_rule_covers_is_refused_with_words(change: dict, words: str):
    with pytest.raises(ReleaseError, match=words):
        charge(lines({}, change))


def test_persons_are_charged_as_records_are_and_exchange_rows_of_clients():
    person = {"unit": "person", "weigh": "row"}
    ledger = lines(person, {**person, "sampling": POISSON}, {"unit": "client"}, unit="person")
    assert charge(ledger).counts == {
        Charge("gaussian", 6.0): 1,
        Charge("gaussian", 6.0, sampling="poisson", rate=0.25): 1,
        Charge("gaussian", 3.0): 1,
    }
    for change, words in (
        ({"unit": "person"}, "persons' rows that are weighed by None"),
        ({"unit": "person", "weigh": "house"}, "weighed by house"),
        ({}, "rows of records, of which one person may move any number"),
        ({**person, "sampling": FIXED}, "persons in samples of a fixed size"),
    ):
        with pytest.raises(ReleaseError, match=words):
            charge(lines(person, change, unit="person"))


@pytest.mark.parametrize(
    ("ledger", "words"),
    [
        ([], "begins with the line of its job"),
        (lines({})[1:], "begins with the line of its job"),
        ([*lines({}), *lines({})], "line 3 is of an unknown kind: job"),
        ([*lines({}), {"kind": "refund"}], "line 3 is of an unknown kind: refund"),
        ([*lines({}), {"kind": "closing"}, lines({})[1]], "line 4: a release after"),
        ([*lines({}), {"kind": "event"}], "line 3: a release with no job, label, round, terms"),
        ([*lines({}), lines({})[1] | {"free": True}], r"unknown fields \(free"),
        (lines({}, steps=(0,)), "0 steps"),
        (lines({}, steps=(True,)), "True steps"),
        (lines({}, unit="client"), "rows of records, of which one client may move any number"),
        (lines({}, trust="distributed"), "central trust, where distributed trust is promised"),
        (lines(DISTRIBUTED, trust="distributed", curious=1), "where 1 are promised"),
        (lines({}, delta=0), "line 1"),
        (lines({}, units=0), "line 1"),
        (lines({}, unit="house"), "line 1"),
        (lines({}, trust="blind"), "line 1"),
        (lines({}, participations=0), "line 1"),
    ],
)
def test_lines_that_are_no_ledger_are_refused_with_words(ledger: list[dict], words: str):
    with pytest.raises(ReleaseError, match=words):
        charge(ledger)


@pytest.mark.parametrize("content", [b"{", b"[1]\n", b'{"kind":"job"}\nnull\n', b"\xff\n"])
def test_a_file_that_holds_no_lines_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "ledger.jsonl").write_bytes(content)
    for name in ("ledger.jsonl", "none.jsonl"):
        with pytest.raises(ReleaseError, match=name):
            charges.lines_of(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (lambda ledger: ledger[:1], "rounds", "no release"),
        (lambda ledger: [*ledger[:2], *ledger[3:]], "rounds", "release 2 is of round 2"),
        (lambda ledger: [*ledger, ledger[-1]], "rounds", "release 4 is of round 2"),
        (lambda ledger: [ledger[0], *ledger[:0:-1]], "rounds", "release 1 is of round 2"),
        (lambda ledger: [*ledger[:2], ledger[2] | {"round": True}], "rounds", "round True"),
        (lambda ledger: [ledger[0] | {"plan": []}, *ledger[1:]], "plan", "nothing was planned"),
        (
            lambda ledger: [*ledger[:3], ledger[3] | {"terms": {**TERMS, "clip": 0.6}}],
            "plan",
            "task: released under terms that were not planned",
        ),
    ],
)
def test_rounds_rise_by_one_and_every_release_was_planned(
    change: Callable[[list[dict]], list[dict]], name: str, words: str
):
    found = {check: (passed, said) for check, passed, said in structure(change(lines({}, {}, {})))}
    passed, said = found.pop(name)
    assert not passed and words in said
    assert all(passed for passed, _ in found.values())


@pytest.mark.parametrize(
    ("clips", "fits"),
    [
        ((0.5, 0.5, 0.5), True),
        ((0.5, 1.5, 1.5), True),
        ((1.5, 1.5, 1.5), True),
        # One number for all, and nothing else.
        ((0.5, 1.5, 1.0), False),
    ],
)
def test_a_persons_clip_may_be_chosen_later_once_for_all_releases(clips, fits):
    person = {"unit": "person", "weigh": "row"}
    for clip_known, as_planned in ((None, fits), (0.5, set(clips) == {0.5})):
        chosen = lines(person, person, person, unit="person", person_clip=clip_known)
        for event, clip in zip(chosen[1:], clips, strict=True):
            event["terms"] = {**event["terms"], "clip": clip}
        found = {check: passed for check, passed, _ in structure(chosen)}
        assert found["plan"] is as_planned
    # All else is as it was planned.
    chosen = lines(person, unit="person", person_clip=None)
    chosen[1]["terms"] = {**chosen[1]["terms"], "noise_multiplier": 5.0}
    assert not {check: passed for check, passed, _ in structure(chosen)}["plan"]


def test_a_ledger_of_an_earlier_version_is_read(tmp_path: Path):
    """Without settings, with whole numbers, and its releases labelled otherwise than its plan."""
    promised = Terms(unit="record", trust="distributed", clip=1, noise_multiplier=6)
    job = Job(budget=Budget(epsilon=3), plan=(Planned("coarse", promised, 2),))
    ledger = Ledger.create(job, tmp_path / "ledger.jsonl")
    for number in range(2):
        ledger._lines.append(Event("marginals", number, promised, job.job).to_dict())
    ledger.close()
    raw = charges.lines_of(tmp_path / "ledger.jsonl")
    assert "settings_digest" not in raw[0]
    assert charge(raw).counts == {WHOLE: 2}
    assert all(passed for _, passed, _ in structure(raw))


@pytest.mark.parametrize("module", [charges, clips, gaussian, moments, pure])
def test_the_second_accountant_imports_nothing_of_the_first(module):
    """Whatever modules there will be: import-linter is told by name."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    verify = "fedsynth.privacy.verify"
    assert {name for name in imported if name.startswith(("fedsynth", "dp_accounting"))} <= {
        "fedsynth.errors",
        "fedsynth.files",
        verify,
        f"{verify}.charges",
        f"{verify}.clips",
    }
