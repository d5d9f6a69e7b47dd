"""The ledger loses nothing, forgets nothing, and lets nothing past the budget."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import BudgetExceeded, PrivacyError, ReleaseError
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson, Sampling
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail import chain
from fedsynth.privacy.trail.job import Event, Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.owning import carries

BUDGET = Budget(epsilon=2.0, delta=1e-5, unit="record", trust="central")
EVERYONE = Everyone()


def terms(multiplier: float = 10.0, sampling: Sampling = EVERYONE, **changes) -> Terms:
    fields = {"unit": "record", "trust": "central", "clip": 1.0, **changes}
    return Terms(noise_multiplier=multiplier, sampling=sampling, **fields)


def event(number: int = 0, promised: Terms | None = None, label: str = "task") -> Event:
    return Event(label, number, promised or terms(), "job")


def filled(path: Path, count: int = 3) -> None:
    ledger = Ledger.create(Job(budget=BUDGET, job="j"), path)
    for number in range(count):
        ledger.charge(event(number))
    ledger.close()


def affordable(promised: Terms, budget: Budget = BUDGET, beside: dict | None = None) -> int:
    """The most releases that fit, one by one."""
    count = 0
    while (
        spent({**(beside or {}), promised: count + 1}, budget.resolved_delta).epsilon
        <= budget.epsilon
    ):
        count += 1
    return count


def test_an_event_is_on_disk_when_charge_returns(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.create(Job(budget=BUDGET), path)
    for number in range(3):
        ledger.charge(event(number))
        lines = path.read_bytes().splitlines()
        assert len(lines) == number + 2
        assert json.loads(lines[-1])["round"] == number
        assert Ledger.read(path).events == ledger.events


def test_reopening_continues_with_the_same_cost_and_the_same_chain(tmp_path: Path):
    first, second = tmp_path / "a", tmp_path / "b"
    filled(first, 5)
    filled(second, 2)
    resumed = Ledger.open(second)
    assert resumed.spent() == spent({terms(): 2}, 1e-5)
    for number in range(2, 5):
        resumed.charge(event(number))
    assert resumed.spent() == Ledger.read(first).spent()
    assert resumed.events == Ledger.read(first).events
    assert resumed.head == Ledger.read(second).head == Ledger.read(first).head


def test_a_ledger_in_memory_counts_like_one_on_disk(tmp_path: Path):
    filled(tmp_path / "a", 4)
    ledger = Ledger.create(Job(budget=BUDGET, job="j"))
    for number in range(4):
        ledger.charge(event(number))
    assert ledger.head == Ledger.read(tmp_path / "a").head


@settings(max_examples=40)
@given(keep=st.integers(0, 400))
def test_a_crash_in_the_middle_of_a_line_costs_only_that_line(
    tmp_path_factory: pytest.TempPathFactory, keep: int
):
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    filled(path)
    content = path.read_bytes()
    start = content.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(content[: start + min(keep, len(content) - start - 1)])
    if not path.read_bytes().endswith(b"\n"):
        with pytest.raises(ReleaseError, match="cut short"):
            Ledger.read(path)
    ledger = Ledger.open(path)
    assert [e.round for e in ledger.events] == [0, 1]
    ledger.charge(event(2))
    ledger.close()
    assert path.read_bytes() == content


@given(position=st.integers(0, 10**9), byte=st.integers(0, 255))
@settings(max_examples=150)
def test_any_edited_byte_shows(tmp_path_factory: pytest.TempPathFactory, position: int, byte: int):
    folder = tmp_path_factory.getbasetemp()
    path = folder / "edited.jsonl"
    if not (folder / "whole.jsonl").exists():
        filled(folder / "whole.jsonl")
    content = bytearray((folder / "whole.jsonl").read_bytes())
    position %= len(content)
    if content[position] == byte:
        return
    content[position] = byte
    path.write_bytes(content)
    with pytest.raises(ReleaseError):
        Ledger.read(path)


@given(position=st.integers(0, 10**9), inserted=st.binary(min_size=1, max_size=3))
def test_anything_inserted_shows(
    tmp_path_factory: pytest.TempPathFactory, position: int, inserted: bytes
):
    folder = tmp_path_factory.getbasetemp()
    path = folder / "inserted.jsonl"
    if not (folder / "base.jsonl").exists():
        filled(folder / "base.jsonl")
    content = (folder / "base.jsonl").read_bytes()
    position %= len(content) + 1
    path.write_bytes(content[:position] + inserted + content[position:])
    with pytest.raises(ReleaseError):
        Ledger.read(path)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_dropped_line_shows(tmp_path: Path, gone: int):
    path = tmp_path / "ledger.jsonl"
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    with pytest.raises(ReleaseError):
        Ledger.open(path)


@pytest.mark.parametrize("content", [b"", b"{", b"{}\n", b"\n", b"\x00\xff\n", b'{"kind":"job"}\n'])
def test_what_is_no_ledger_is_refused_and_let_go_of(tmp_path: Path, content: bytes):
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(content)
    for opener in (Ledger.open, Ledger.read, Ledger.open):  # the second time it is not locked
        with pytest.raises(ReleaseError):
            opener(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "line",
    [
        {**event(1).to_dict(), "note": "free of charge"},
        {**event(1).to_dict(), "steps": 1},
        {k: v for k, v in event(1).to_dict().items() if k != "label"},
        event(1, terms(sampling=Poisson(0.1), unit="client")).to_dict(),
    ],
    ids=["more than an event", "another spelling", "less than an event", "no release of this job"],
)
def test_a_line_that_charge_would_not_write_is_refused_however_well_it_is_chained(
    tmp_path: Path, line: dict
):
    ledger = Ledger.create(Job(budget=BUDGET), tmp_path / "ledger.jsonl")
    ledger.charge(event(0))
    ledger._lines.append(line)
    ledger.close()
    for reader in (Ledger.read, Ledger.open):
        with pytest.raises(ReleaseError, match="a line misses what a ledger line must say"):
            reader(tmp_path / "ledger.jsonl")


def test_a_missing_ledger_is_named(tmp_path: Path):
    for opener in (Ledger.open, Ledger.read):
        with pytest.raises(ReleaseError, match=r"none\.jsonl"):
            opener(tmp_path / "none.jsonl")


def test_a_ledger_is_never_overwritten(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    filled(path)
    content = path.read_bytes()
    with pytest.raises(PrivacyError, match="never overwritten"):
        Ledger.create(Job(budget=BUDGET), path)
    assert path.read_bytes() == content


def test_two_cannot_write_one_ledger(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.create(Job(budget=BUDGET), path)
    with pytest.raises(PrivacyError, match="another process"):
        Ledger.open(path)
    ledger.close()
    second = Ledger.open(path)
    with pytest.raises(PrivacyError, match="another process"):
        Ledger.open(path)
    second.close()


def test_a_ledger_that_was_replaced_while_it_was_opened_is_not_written(tmp_path: Path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    filled(path)
    lock = chain.fcntl.flock

    def late(file, how):
        shutil.copy(path, tmp_path / "new").replace(path)
        lock(file, how)

    monkeypatch.setattr(chain.fcntl, "flock", late)
    with pytest.raises(PrivacyError, match="another process"):
        Ledger.open(path)


def test_an_account_of_another_unit_carries_no_job():
    job = Job(budget=BUDGET, plan=(Planned("task", terms(), 1),))
    assert carries(Ledger.create(Job(budget=BUDGET)), job)
    assert not carries(Ledger.create(Job(budget=replace(BUDGET, unit="client"))), job)


def test_a_closed_ledger_takes_no_event(tmp_path: Path):
    ledger = Ledger.create(Job(budget=BUDGET), tmp_path / "ledger.jsonl")
    ledger.close()
    with pytest.raises(PrivacyError, match="closed"):
        ledger.charge(event())
    assert ledger.events == ()


def test_a_disk_that_cannot_be_written_stops_everything(tmp_path: Path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.create(Job(budget=BUDGET), path)
    ledger.charge(event(0))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("fedsynth.privacy.trail.chain.os.fsync", full)
        with pytest.raises(PrivacyError, match="cannot be written"):
            ledger.charge(event(1))
    with pytest.raises(PrivacyError, match="closed"):
        ledger.charge(event(1))
    assert ledger.events == (event(0),)
    # The line may have reached the disk all the same: then it stays charged.
    assert len(Ledger.open(path).events) in (1, 2)


@pytest.mark.parametrize(
    ("sampling", "multiplier"), [(EVERYONE, 5.0), (EVERYONE, 2.0), (Poisson(0.1), 1.0)]
)
def test_would_exceed_equals_counting_one_by_one(sampling: Sampling, multiplier: float):
    promised, other = terms(multiplier, sampling), terms(6.0)
    ledger = Ledger.create(Job(budget=BUDGET, plan=(Planned("task", other, 1),)))
    ledger.charge(event(0, other))
    fit = affordable(promised, beside={other: 1})
    for number in range(min(fit, 40)):
        assert not ledger.would_exceed(promised)
        if fit <= 40:
            ledger.charge(event(number, promised))
    if fit <= 40:
        assert ledger.would_exceed(promised)


@settings(max_examples=15)
@given(
    multipliers=st.lists(st.sampled_from([4.0, 7.0, 15.0]), min_size=1, max_size=15),
    epsilon=st.floats(0.3, 1.5),
)
def test_no_order_of_charges_gets_past_the_budget(multipliers: list, epsilon: float):
    budget = Budget(epsilon=epsilon, delta=1e-5, trust="central")
    ledger = Ledger.create(Job(budget=budget, plan=(Planned("task", terms(4.0), 1),)))
    counts: dict[Terms, int] = {}
    for number, multiplier in enumerate(multipliers):
        promised = terms(multiplier)
        wanted = {**counts, promised: counts.get(promised, 0) + 1}
        fits = spent(wanted, 1e-5).epsilon <= epsilon
        assert ledger.would_exceed(promised) is not fits
        if fits:
            ledger.charge(event(number, promised))
            counts = wanted
        else:
            with pytest.raises(BudgetExceeded):
                ledger.charge(event(number, promised))
    assert ledger.counts == counts
    assert ledger.spent().epsilon <= epsilon


def test_an_exhausted_budget_says_what_is_spent_and_writes_nothing(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.create(Job(budget=BUDGET), path)
    ledger.charge(event(0, terms(3.0)))
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match="nothing was asked of anybody"):
        ledger.charge(event(1, terms(1.0)))
    assert path.read_bytes() == before
    assert len(ledger.events) == 1


def test_a_release_without_noise_fits_no_finite_budget():
    ledger = Ledger.create(Job(budget=BUDGET))
    with pytest.raises(BudgetExceeded):
        ledger.charge(event(0, terms(0.0)))


def test_an_infinite_budget_refuses_nothing_and_still_counts(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    job = Job(budget=Budget(epsilon=math.inf, trust="central"))
    ledger = Ledger.create(job, path)
    ledger.charge(event(0, terms(5.0)))
    assert math.isfinite(ledger.spent().epsilon)
    ledger.charge(event(1, terms(0.0)))
    assert ledger.spent().epsilon == math.inf
    assert Ledger.read(path).job == job


def test_a_plan_that_fits_is_carried_out_to_its_last_release_and_no_further():
    promised = terms(10.0)
    fit = affordable(promised)
    ledger = Ledger.create(Job(budget=BUDGET, plan=(Planned("task", promised, fit),)))
    for number in range(fit):
        ledger.charge(event(number, promised))
    with pytest.raises(BudgetExceeded):
        ledger.charge(event(fit, promised))


def test_a_plan_that_does_not_fit_allows_nothing_beyond_the_budget():
    promised = terms(10.0)
    fit = affordable(promised)
    ledger = Ledger.create(Job(budget=BUDGET, plan=(Planned("task", promised, 10 * fit),)))
    for number in range(fit):
        ledger.charge(event(number, promised))
    assert ledger.would_exceed(promised)


def test_a_release_beside_the_plan_is_counted_beside_what_was_released():
    promised, other = terms(10.0), terms(4.0)
    fit = affordable(promised)
    ledger = Ledger.create(Job(budget=BUDGET, plan=(Planned("task", promised, fit),)))
    ledger.charge(event(0, other))
    left = affordable(promised, beside={other: 1})
    for number in range(left):
        ledger.charge(event(number, promised))
    assert left < fit
    assert ledger.would_exceed(promised)


def test_drawn_clients_are_charged_by_what_the_server_knows():
    budget = Budget(epsilon=50, delta=1e-5, unit="client", trust="distributed")
    rare = terms(3.0, Poisson(0.01), unit="client", trust="distributed")
    ledger = Ledger.create(Job(budget=budget, participations=4))
    for number in range(10):
        ledger.charge(event(number, rare))
    full = terms(3.0, unit="client", trust="distributed")
    assert ledger.spent() == spent({full: 4}, 1e-5)
    assert ledger.spent() == spent(charged(ledger.counts, 4), 1e-5)


def test_rounds_beyond_the_cap_on_participations_are_free():
    budget = Budget(epsilon=1, delta=1e-5, unit="client", trust="local")
    exact = optimal_gaussian_sigma(0.99, 1e-5)  # fits by the tight bound alone
    rare = terms(exact, Poisson(0.01), unit="client", trust="local")
    plan = (Planned("task", rare, 2),)
    ledger = Ledger.create(Job(budget=budget, participations=1, plan=plan))
    for number in range(5):
        ledger.charge(event(number, rare))
    assert ledger.spent().rdp > 1 >= ledger.spent().epsilon


@pytest.mark.parametrize(
    ("promised", "said"),
    [
        (terms(unit="client", sampling=Poisson(0.5)), "records"),
        (terms(trust="central"), "distributed trust"),
    ],
)
def test_another_unit_or_more_trust_than_promised_is_refused(promised: Terms, said: str):
    ledger = Ledger.create(Job(budget=Budget(epsilon=9, trust="distributed")))
    with pytest.raises(PrivacyError, match=said):
        ledger.charge(event(0, promised))
    assert ledger.events == ()


def test_a_row_a_client_is_charged_to_records_at_half_its_noise(tmp_path: Path):
    """One record exchanges its client's row for another: twice the clip (group privacy of 2)."""
    ledger = Ledger.create(
        Job(budget=Budget(epsilon=9, delta=1e-5, trust="distributed")), tmp_path / "ledger.jsonl"
    )
    ledger.charge(event(0, terms(6.0, unit="client", trust="distributed")))
    alone = terms(3.0, trust="distributed")
    assert ledger.spent().rdp == pytest.approx(spent({alone: 1}, 1e-5).rdp)
    ledger.close()
    assert Ledger.open(tmp_path / "ledger.jsonl").spent() == ledger.spent()
    records = Ledger.create(Job(budget=Budget(epsilon=9, unit="client", trust="distributed")))
    with pytest.raises(PrivacyError, match="clients"):
        records.charge(event(0, terms(trust="distributed")))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "exponential", "stable"])
def test_a_row_a_client_costs_what_its_charge_as_a_record_says_whoever_adds_noise(mechanism: str):
    kind = {"mechanism": mechanism, "norm": "l2" if mechanism == "gaussian" else "l1"}
    if mechanism == "stable":
        kind["alpha"] = 1.5
    whole, half = terms(12.0, unit="client", **kind), terms(6.0, **kind)
    assert charged({whole: 3}, 2, "record") == {half: 3}
    assert charged({whole: 3, half: 1}, None, "record") == {half: 4}
    assert charged({whole: 3}, None, "client") == charged({whole: 3}) == {whole: 3}


def test_a_plan_with_rows_a_client_is_as_affordable_as_it_was_calibrated():
    votes = terms(2.5 * optimal_gaussian_sigma(2.0, 1e-5) * math.sqrt(2), unit="client")
    job = Job(budget=BUDGET, plan=(Planned("votes", votes, 1),))
    ledger = Ledger.create(job)
    ledger.charge(event(0, votes, "votes"))
    assert ledger.spent().epsilon <= 2.0
    short = terms(1.5 * optimal_gaussian_sigma(2.0, 1e-5), unit="client")
    with pytest.raises(BudgetExceeded):
        Ledger.create(Job(budget=BUDGET, plan=(Planned("votes", short, 1),))).charge(
            event(0, short, "votes")
        )


# Written by the version before settings_digest and the exponential mechanism.
_EARLIER = (
    '{"budget":{"delta":1e-05,"epsilon":3,"trust":"distributed","unit":"record","units":null},'
    '"format":1,"hash":"4d701c8efb5496dfba683862f345d24c9066ba3bca2477e4d4c458ff845de651",'
    '"insecure":false,"job":"0123456789abcdef","kind":"job","line":0,"participations":null,'
    '"plan":[{"count":2,"label":"task","terms":{TERMS}}],"previous":"{START}",'
    '"schema_digest":"{SCHEMA}","schema_provenance":"declared"}\n'
    '{"hash":"0d97fe2b18585e11767f2e1113bd1f2c19f7df81fa7700415e003c43e2b4d105",'
    '"job":"0123456789abcdef","kind":"event","label":"task","line":1,"previous":'
    '"4d701c8efb5496dfba683862f345d24c9066ba3bca2477e4d4c458ff845de651","round":0,'
    '"terms":{TERMS}}\n'
).replace(
    "{TERMS}",
    '{"clip":0.5,"mechanism":"gaussian","noise_multiplier":6.0,"norm":"l2","sampling":'
    '{"kind":"poisson","rate":0.25},"survivors":3,"trust":"distributed","unit":"record"}',
)


def test_a_ledger_of_an_earlier_version_is_read_continued_and_copied_to_the_same_head(
    exact_costs,
    tmp_path: Path,
):
    text = _EARLIER.replace("{START}", "0" * 64).replace("{SCHEMA}", "ab" * 32)
    (tmp_path / "ledger.jsonl").write_text(text)
    ledger = Ledger.open(tmp_path / "ledger.jsonl")
    ledger.charge(Event("task", 1, ledger.events[0].terms, ledger.job.job))
    assert ledger.head == "146029df46acae05317b0ac5e78cdeebd10c87fa4089b1269cb578bda5f70eb7"
    assert ledger.spent().pld == pytest.approx(0.22409751962156804, rel=1e-9)
    ledger.write_to(tmp_path / "copy.jsonl")
    ledger.close()
    assert (tmp_path / "copy.jsonl").read_bytes() == (tmp_path / "ledger.jsonl").read_bytes()
    assert Ledger.read(tmp_path / "copy.jsonl").head == ledger.head


def test_a_job_remembers_its_settings(tmp_path: Path):
    job = Job(budget=BUDGET, settings_digest="cd" * 32)
    Ledger.create(job, tmp_path / "ledger.jsonl").close()
    assert Ledger.read(tmp_path / "ledger.jsonl").job == job


def test_less_trust_than_promised_is_welcome():
    ledger = Ledger.create(Job(budget=Budget(epsilon=9, trust="distributed")))
    ledger.charge(event(0, terms(trust="local")))
    assert len(ledger.events) == 1


def test_fixed_size_beside_poisson_rounds_is_refused_before_it_is_written():
    budget = Budget(epsilon=9, delta=1e-5, unit="client", trust="central")
    ledger = Ledger.create(Job(budget=budget))
    ledger.charge(event(0, terms(unit="client", sampling=Poisson(0.1))))
    with pytest.raises(PrivacyError, match="no analysis"):
        ledger.charge(event(1, terms(unit="client", sampling=FixedSize(1, 10))))
    assert len(ledger.events) == 1


def test_everything_a_job_says_comes_back(tmp_path: Path):
    job = Job(
        budget=Budget(epsilon=3.5, units=100, unit="client", trust="local"),
        plan=(Planned("a", terms(2.0, FixedSize(2, 9), unit="client", trust="local"), 3),),
        participations=5,
        schema_digest="0" * 64,
        schema_provenance="private-data",
        owners_provenance="private-data",
        insecure=True,
    )
    Ledger.create(job, tmp_path / "ledger.jsonl").close()
    assert Ledger.read(tmp_path / "ledger.jsonl").job == job
    assert Job(budget=BUDGET).job != Job(budget=BUDGET).job
