"""A client consents by its own ledger and its own count of a job's rounds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Request
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.sampling import FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import clients, ledger, terms


def request(
    promised: Terms, number: int = 0, job: str = "job", *, limit: int | None = None
) -> Request:
    return Request("test-vectors", promised, 3, job=job, round=number, participations=limit)


def test_an_owner_without_a_ledger_consents_and_counts_the_rounds_that_are_limited():
    client = clients(1)[0]
    assert [client.consent(request(terms(), limit=limit)) for limit in (None, 3, None, 3)] == [
        None
    ] * 4
    assert client.memory("job").participations == 2


def test_an_owner_refuses_past_its_own_budget_and_its_ledger_stays_as_it_was():
    account = ledger(epsilon=1.0, trust="local")
    client = Client("c", np.zeros((1, 3)), 1, ledger=account)
    promised = terms(trust="local", noise_multiplier=10.0)
    answers = [client.consent(request(promised, n, limit=10)) for n in range(10)]
    fit = sum(spent({promised: n}, 1e-5).epsilon <= 1.0 for n in range(1, 11))
    assert 0 < fit < 10
    assert answers == [None] * fit + ["its own budget is spent"] * (10 - fit)
    assert len(account.events) == client.memory("job").participations == fit


def test_an_owner_charges_across_jobs():
    account = ledger(epsilon=1.0, trust="local")
    promised = terms(trust="local", noise_multiplier=6.0)
    first, second = (Client("c", np.zeros((1, 3)), 1, ledger=account) for _ in range(2))
    assert first.consent(request(promised, job="one", limit=None)) is None
    assert second.consent(request(promised, job="two", limit=None)) is None
    assert account.spent() == spent({promised: 2}, 1e-5)
    assert [e.job for e in account.events] == ["one", "two"]


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_drawn_owner_charges_without_amplification(trust: str):
    # It charges only when it is drawn, so the chance of being drawn must not lower the cost twice.
    account = ledger(epsilon=math.inf, trust="central")
    client = Client("c", np.zeros((1, 3)), 1, ledger=account)
    client.consent(request(terms(trust=trust, sampling=Poisson(0.01)), limit=None))
    assert account.counts == {terms(trust=trust): 1}


def test_a_drawn_owner_of_a_fixed_size_round_stays_under_replace_one():
    account = ledger(epsilon=math.inf)
    client = Client("c", np.zeros((1, 3)), 1, ledger=account)
    client.consent(request(terms(sampling=FixedSize(2, 10)), limit=None))
    assert account.counts == {terms(sampling=FixedSize(10, 10)): 1}


def test_records_drawn_in_secret_keep_their_amplification():
    account = ledger("record", epsilon=math.inf)
    client = Client("c", np.zeros((9, 3)), 9, ledger=account)
    promised = terms(unit="record", sampling=Poisson(0.01))
    client.consent(request(promised, limit=None))
    assert account.counts == {promised: 1}


@pytest.mark.parametrize(
    "promised", [terms(unit="record"), terms(trust="central"), terms(noise_multiplier=0.0)]
)
def test_terms_that_an_owners_ledger_does_not_admit_are_refused_in_words(promised: Terms):
    account = ledger(epsilon=5.0, trust="local")
    client = Client("c", np.zeros((1, 3)), 1, ledger=account)
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
    first = Client("c", np.zeros((1, 3)), 1, ledger=account)
    assert first.consent(request(promised, 0, "this", limit=2)) is None
    assert first.consent(request(promised, 1, "other", limit=2)) is None
    account.close()
    second = Client("c", np.zeros((1, 3)), 1, ledger=Ledger.open(tmp_path / "own.jsonl"))
    assert second.consent(request(promised, 2, "this", limit=2)) is None
    assert "2 rounds" in str(second.consent(request(promised, 3, "this", limit=2)))


@pytest.mark.parametrize("owned", [False, True])
def test_rounds_that_ask_everybody_use_up_none_of_those_in_which_a_client_may_be_drawn(
    owned: bool,
):
    client = Client("c", np.zeros((1, 3)), 1, ledger=ledger() if owned else None)
    for number in range(2):
        assert client.consent(request(terms(clip=2.0), number, limit=None)) is None
    drawn = terms(sampling=Poisson(0.5))
    answers = [client.consent(request(drawn, 2 + n, limit=3)) for n in range(4)]
    assert answers[:3] == [None] * 3
    assert "3 rounds" in str(answers[3])
