"""A client consents by its own ledger, its own floor, and its own count of a job's rounds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import Floor
from fedsynth.federation.request import PLAN, Incident, Request
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.filters import admits
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import clients, ledger, terms

HELD = Budget(epsilon=1.0, delta=1e-5, unit="record", trust="distributed")
KEPT = {"unit": "record", "trust": "distributed", "noise_multiplier": 6.0}


def request(
    promised: Terms, number: int = 0, job: str = "job", *, limit: int | None = None
) -> Request:
    return Request("test-vectors", promised, 3, job=job, round=number, participations=limit)


def owner(account: Ledger | None = None, floor: Floor | None = None) -> Client:
    return Client("c", np.zeros((1, 3)), 1, ledger=account, floor=floor)


def announce(client: Client, *plan: Planned, limit: int | None = None, job: str = "job") -> None:
    told = Job(budget=HELD, plan=plan, participations=limit).announced
    client.memory(job).board.post(PLAN, told)


def test_an_owner_without_a_ledger_consents_and_counts_the_rounds_that_are_limited():
    client = clients(1)[0]
    answers = [
        client.consent(request(terms(), n, limit=limit)) for n, limit in enumerate([None, 3] * 2)
    ]
    assert answers == [None] * 4
    assert client.memory("job").participations == 2


def test_an_owner_refuses_past_its_own_budget_and_its_ledger_stays_as_it_was():
    account = ledger(epsilon=1.0, trust="local")
    client = owner(account)
    promised = terms(trust="local", noise_multiplier=10.0)
    answers = [client.consent(request(promised, n, limit=10)) for n in range(10)]
    fit = sum(admits({promised: n}, 1.0, 1e-5) for n in range(1, 11))
    assert 0 < fit < 10
    assert answers == [None] * fit + ["its own budget is spent"] * (10 - fit)
    assert len(account.events) == client.memory("job").participations == fit


def test_an_owner_charges_across_jobs():
    account = ledger(epsilon=1.0, trust="local")
    promised = terms(trust="local", noise_multiplier=6.0)
    first, second = owner(account), owner(account)
    assert first.consent(request(promised, job="one", limit=None)) is None
    assert second.consent(request(promised, job="two", limit=None)) is None
    assert account.spent() == spent({promised: 2}, 1e-5)
    assert [e.job for e in account.events] == ["one", "two"]


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_drawn_owner_charges_without_amplification(trust: str):
    # It charges only when it is drawn, so the chance of being drawn must not lower the cost twice.
    account = ledger(epsilon=math.inf, trust="central")
    owner(account).consent(request(terms(trust=trust, sampling=Poisson(0.01)), limit=None))
    assert account.counts == {terms(trust=trust): 1}


def test_a_drawn_owner_of_a_fixed_size_round_stays_under_replace_one():
    account = ledger(epsilon=math.inf)
    owner(account).consent(request(terms(sampling=FixedSize(2, 10)), limit=None))
    assert account.counts == {terms(sampling=FixedSize(10, 10)): 1}


def test_records_drawn_in_secret_keep_their_amplification():
    account = ledger("record", epsilon=math.inf)
    promised = terms(unit="record", sampling=Poisson(0.01))
    owner(account).consent(request(promised, limit=None))
    assert account.counts == {promised: 1}


@pytest.mark.parametrize(
    "promised", [terms(unit="record"), terms(trust="central"), terms(noise_multiplier=0.0)]
)
def test_terms_that_an_owners_ledger_does_not_admit_are_refused_in_words(promised: Terms):
    account = ledger(epsilon=5.0, trust="local")
    client = owner(account)
    assert isinstance(client.consent(request(promised, limit=None)), str)
    assert account.events == ()
    assert client.memory("job").participations == 0


def test_an_owner_takes_part_in_no_more_rounds_than_the_job_accounts_for():
    client = clients(1)[0]
    answers = [client.consent(request(terms(), n, limit=2)) for n in range(4)]
    assert answers[:2] == [None, None]
    assert all("2 rounds" in str(answer) for answer in answers[2:])


def test_an_owners_ledger_remembers_its_rounds_over_a_restart(tmp_path: Path):
    account = ledger(path=tmp_path / "own.jsonl")
    promised = terms(sampling=Poisson(0.5))
    first = owner(account)
    assert first.consent(request(promised, 0, "this", limit=2)) is None
    assert first.consent(request(promised, 1, "other", limit=2)) is None
    account.close()
    second = owner(Ledger.open(tmp_path / "own.jsonl"))
    assert second.consent(request(promised, 2, "this", limit=2)) is None
    assert "2 rounds" in str(second.consent(request(promised, 3, "this", limit=2)))


@pytest.mark.parametrize("owned", [False, True])
def test_rounds_that_ask_everybody_use_up_none_of_those_in_which_a_client_may_be_drawn(
    owned: bool,
):
    client = owner(ledger() if owned else None)
    for number in range(2):
        assert client.consent(request(terms(clip=2.0), number, limit=None)) is None
    drawn = terms(sampling=Poisson(0.5))
    answers = [client.consent(request(drawn, 2 + n, limit=3)) for n in range(4)]
    assert answers[:3] == [None] * 3
    assert "3 rounds" in str(answers[3])


# A round once


@settings(max_examples=50)
@given(numbers=st.lists(st.integers(0, 9), max_size=20), restarts=st.sets(st.integers(0, 19)))
def test_no_round_of_a_job_is_answered_twice_whatever_copies_of_it_are_resumed(numbers, restarts):
    account = ledger(epsilon=math.inf)
    client, answered = owner(account), []
    for place, number in enumerate(numbers):
        if place in restarts:
            client = owner(account)
        reason = client.consent(request(terms(), number))
        if reason is None:
            answered.append(number)
        else:
            assert "answered twice" in reason
        assert client.consent(request(terms(), number, job=f"other-{place}")) is None
    assert answered == sorted(set(answered))
    assert [event.round for event in account.events if event.job == "job"] == answered


def test_a_round_that_was_refused_may_be_asked_again():
    client = owner(ledger(epsilon=1.0))
    assert client.consent(request(terms(noise_multiplier=0.1))) is not None
    assert client.consent(request(terms(noise_multiplier=9.0))) is None


# Floors


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"unit": "client", "sampling": Poisson(0.1)}, "accounts for records, not for clients"),
        ({"trust": "central"}, "promises distributed trust"),
        ({"survivors": 4}, "a share of the noise for 4 answers, where 3 are sure"),
        ({"noise_multiplier": 0.0}, "no noise"),
        ({"noise_multiplier": 3.0}, "more than epsilon 1 at delta 1e-05"),
    ],
)
def test_each_clause_of_a_floor_is_refused_in_words_and_costs_nothing(changes, said):
    client = owner(floor=Floor(budget=HELD, cohort=3))
    refused = request(terms(**{**KEPT, **changes}), limit=5)
    (incident,) = answer([client], refused)
    assert isinstance(incident, Incident)
    assert incident.reason.startswith("refuses: below its floor: ") and said in incident.reason
    assert client.memory("job").participations == 0
    held = terms(**KEPT, survivors=3)
    assert client.consent(request(held)) is None
    # Only the first number is too small for the floor: it is no matter of what was asked before.
    assert client.consent(replace(refused, round=1)) is not None


def test_more_protection_than_a_floor_asks_is_welcome():
    client = owner(floor=Floor(budget=replace(HELD, epsilon=3.0)))
    for number, better in enumerate(
        ({"trust": "local"}, {"unit": "client"}, {"noise_multiplier": 50.0})
    ):
        assert client.consent(request(terms(**{**KEPT, **better}), number)) is None


def test_a_floor_without_an_end_admits_rounds_without_noise_under_its_unit_and_trust():
    client = owner(floor=Floor(budget=replace(HELD, epsilon=math.inf)))
    bare = {**KEPT, "noise_multiplier": 0.0}
    assert client.consent(request(terms(**bare), 0)) is None
    assert "trust" in str(client.consent(request(terms(**{**bare, "trust": "central"}), 1)))


def test_a_floor_holds_a_job_without_a_plan_to_a_filter_and_every_job_by_itself():
    client = owner(floor=Floor(budget=HELD))
    promised = terms(**KEPT)
    fit = sum(admits({promised: n}, 1.0, 1e-5) for n in range(1, 9))
    for job in ("one", "two"):
        answers = [client.consent(request(promised, n, job)) for n in range(9)]
        assert [reason is None for reason in answers] == [True] * fit + [False] * (9 - fit)


def test_a_floor_lets_a_job_have_all_that_it_announced_and_no_more():
    promised = terms(**KEPT)
    count = 2
    whole = spent({promised: count}, 1e-5).epsilon
    assert not admits({promised: count}, whole, 1e-5)
    client = owner(floor=Floor(budget=replace(HELD, epsilon=whole)))
    announce(client, Planned("test-vectors", promised, count))
    assert client.consent(request(promised, 0)) is None
    # What is announced once the job has begun changes nothing.
    announce(client, Planned("test-vectors", promised, 2 * count))
    assert client.consent(request(promised, 1)) is None
    assert "more than epsilon" in str(client.consent(request(promised, 2)))


def test_a_plan_that_costs_more_than_the_floor_is_held_to_the_filter():
    promised = terms(**KEPT)
    clients_ = [owner(floor=Floor(budget=HELD)) for _ in range(2)]
    announce(clients_[0], Planned("test-vectors", promised, 500))
    answers = [[c.consent(request(promised, n)) for n in range(9)] for c in clients_]
    assert answers[0] == answers[1] and None not in answers[0][-1:]


def test_a_server_cannot_draw_a_client_more_often_than_it_announced():
    budget = replace(HELD, unit="client", epsilon=2.0)
    drawn = terms(trust="distributed", noise_multiplier=4.0, sampling=Poisson(0.1))
    client = owner(floor=Floor(budget=budget))
    announce(client, Planned("test-vectors", drawn, 100), limit=2)
    answers = [client.consent(request(drawn, n, limit=limit)) for n, limit in enumerate((None, 9))]
    assert answers == [None, None]
    assert "2 rounds" in str(client.consent(request(drawn, 2, limit=9)))


@pytest.mark.parametrize("unit", ["record", "client"])
def test_all_copies_of_a_job_together_cost_what_it_announced(unit: str, tmp_path: Path):
    """The ledger counts for the floor over a restart, also where its terms are not the plan's."""
    sampling = Poisson(0.1) if unit == "client" else Everyone()
    promised = terms(**{**KEPT, "unit": unit, "trust": "central"}, sampling=sampling)
    plan = Planned("test-vectors", promised, 3)
    whole = spent({promised: 3}, 1e-5).epsilon * 1.0001
    budget = replace(HELD, unit=unit, epsilon=whole, trust="central")
    path = tmp_path / "own.jsonl"
    ledger(unit, path=path).close()
    answers = []
    for number in range(5):
        client = owner(Ledger.open(path), Floor(budget=budget))
        announce(client, plan)
        answers.append(client.consent(request(promised, number)))
        client.ledger.close()
    assert answers[:3] == [None] * 3
    assert all("more than epsilon" in str(reason) for reason in answers[3:])


@pytest.mark.parametrize(
    "plan",
    [{}, {"releases": [{}], "participations": None}, {"releases": [], "participations": "9"}, []],
)
def test_a_plan_that_is_none_is_refused_in_words(plan):
    client = owner(floor=Floor(budget=HELD))
    client.memory("job").board.post(PLAN, plan)
    assert "cannot be read" in str(client.consent(request(terms(**KEPT))))


@pytest.mark.parametrize(
    ("promised", "said"),
    [
        (terms(trust="local"), "local trust"),
        (terms(noise_multiplier=0.0), "without noise"),
        (terms(trust="distributed", noise_multiplier=0.0), "without noise"),
    ],
)
def test_a_client_with_neither_floor_nor_ledger_leaves_nothing_to_nobody(promised: Terms, said):
    assert said in str(owner().consent(request(promised)))
    assert owner(ledger(trust="central")).consent(request(promised)) is None


def test_a_floor_counts_on_itself_at_least():
    with pytest.raises(ConfigError, match="at least 1"):
        Floor(budget=HELD, cohort=0)
