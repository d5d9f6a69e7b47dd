"""A site keeps what is its own: its vectors, its ledger, its count of rounds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import FederationError
from fedsynth.federation.client.site import Board, MemoryState, Site, StateFile
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.sampling import FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import ledger, sites, terms


def event(promised: Terms, number: int = 0, job: str = "job") -> Event:
    return Event("test-vectors", number, promised, job)


def test_a_state_comes_back_as_it_was_saved(tmp_path: Path):
    for state in (MemoryState(), StateFile(tmp_path / "states", 3).slot(5)):
        assert state.load() is None
        state.save(np.array([1, np.nan, -0.0], np.float32))
        np.testing.assert_array_equal(state.load(), np.array([1, np.nan, -0.0], np.float32))


@given(writes=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 100)), max_size=30))
def test_slots_never_touch_each_other(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, int]]
):
    file = StateFile(tmp_path_factory.mktemp("states") / "states", 4)
    expected: dict[int, int] = {}
    for index, value in writes:
        file.slot(index).save(np.full(4, value, np.float32))
        expected[index] = value
    for index in range(21):
        found = file.slot(index).load()
        if index in expected:
            np.testing.assert_array_equal(found, np.full(4, expected[index], np.float32))
        else:
            assert found is None
    file.close()


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_vector_of_another_size_is_refused_before_it_runs_into_a_neighbour(
    tmp_path: Path, size: int
):
    file = StateFile(tmp_path / "states", 3)
    file.slot(1).save(np.ones(3, np.float32))
    with pytest.raises(FederationError, match="slot"):
        file.slot(0).save(np.zeros(size, np.float32))
    assert file.slot(0).load() is None
    np.testing.assert_array_equal(file.slot(1).load(), np.ones(3))


def test_states_survive_a_restart_and_are_for_the_owner_alone(tmp_path: Path):
    path = tmp_path / "states"
    first = StateFile(path, 2)
    first.slot(1).save(np.array([1, 2], np.float32))
    first.close()
    np.testing.assert_array_equal(StateFile(path, 2).slot(1).load(), [1, 2])
    assert path.stat().st_mode & 0o077 == 0


def test_clients_never_touched_take_no_room(tmp_path: Path):
    file = StateFile(tmp_path / "states", 1000)
    file.slot(30_000).save(np.zeros(1000, np.float32))
    assert (tmp_path / "states").stat().st_blocks * 512 < 2**20


def test_a_posted_value_is_parsed_once_and_anew_after_the_next_post():
    board, parsed = Board(), []

    def parse(value: int) -> int:
        parsed.append(value)
        return value + 1

    with pytest.raises(FederationError, match="announced 'x'"):
        board.read("x", parse)
    board.post("x", 1)
    assert board.read("x", parse) == board.read("x", parse) == 2
    board.post("x", 5)
    assert board.read("x", parse) == 6
    assert parsed == [1, 5]


def test_an_owner_without_a_ledger_consents_and_counts_the_rounds_that_are_limited():
    site = sites(1)[0]
    assert [site.consent(event(terms()), limit) for limit in (None, 3, None, 3)] == [None] * 4
    assert site.participations == 2


def test_an_owner_refuses_past_its_own_budget_and_its_ledger_stays_as_it_was():
    account = ledger(epsilon=1.0, trust="local")
    site = Site("c", np.zeros((1, 3)), 1, ledger=account)
    promised = terms(trust="local", noise_multiplier=10.0)
    answers = [site.consent(event(promised, n), 10) for n in range(10)]
    fit = sum(spent({promised: n}, 1e-5).epsilon <= 1.0 for n in range(1, 11))
    assert 0 < fit < 10
    assert answers == [None] * fit + ["its own budget is spent"] * (10 - fit)
    assert len(account.events) == site.participations == fit


def test_an_owner_charges_across_jobs():
    account = ledger(epsilon=1.0, trust="local")
    promised = terms(trust="local", noise_multiplier=6.0)
    first, second = (Site("c", np.zeros((1, 3)), 1, ledger=account) for _ in range(2))
    assert first.consent(event(promised, job="one"), None) is None
    assert second.consent(event(promised, job="two"), None) is None
    assert account.spent() == spent({promised: 2}, 1e-5)
    assert [e.job for e in account.events] == ["one", "two"]


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_drawn_owner_charges_without_amplification(trust: str):
    # It charges only when it is drawn, so the chance of being drawn must not lower the cost twice.
    account = ledger(epsilon=math.inf, trust="central")
    site = Site("c", np.zeros((1, 3)), 1, ledger=account)
    site.consent(event(terms(trust=trust, sampling=Poisson(0.01))), None)
    assert account.counts == {terms(trust=trust): 1}


def test_a_drawn_owner_of_a_fixed_size_round_stays_under_replace_one():
    account = ledger(epsilon=math.inf)
    site = Site("c", np.zeros((1, 3)), 1, ledger=account)
    site.consent(event(terms(sampling=FixedSize(2, 10))), None)
    assert account.counts == {terms(sampling=FixedSize(10, 10)): 1}


def test_records_drawn_in_secret_keep_their_amplification():
    account = ledger("record", epsilon=math.inf)
    site = Site("c", np.zeros((9, 3)), 9, ledger=account)
    promised = terms(unit="record", sampling=Poisson(0.01))
    site.consent(event(promised), None)
    assert account.counts == {promised: 1}


@pytest.mark.parametrize(
    "promised", [terms(unit="record"), terms(trust="central"), terms(noise_multiplier=0.0)]
)
def test_terms_that_an_owners_ledger_does_not_admit_are_refused_in_words(promised: Terms):
    account = ledger(epsilon=5.0, trust="local")
    site = Site("c", np.zeros((1, 3)), 1, ledger=account)
    assert isinstance(site.consent(event(promised), None), str)
    assert account.events == ()
    assert site.participations == 0


def test_an_owner_takes_part_in_no_more_rounds_than_the_job_accounts_for():
    site = sites(1)[0]
    answers = [site.consent(event(terms(), n), 2) for n in range(4)]
    assert answers[:2] == [None, None]
    assert all("2 rounds" in str(answer) for answer in answers[2:])


def test_an_owners_ledger_remembers_its_rounds_over_a_restart(tmp_path: Path):
    account = ledger(path=tmp_path / "own.jsonl")
    promised = terms(sampling=Poisson(0.5))
    first = Site("c", np.zeros((1, 3)), 1, ledger=account)
    assert first.consent(event(promised, 0, "this"), 2) is None
    assert first.consent(event(promised, 1, "other"), 2) is None
    account.close()
    second = Site("c", np.zeros((1, 3)), 1, ledger=Ledger.open(tmp_path / "own.jsonl"))
    assert second.consent(event(promised, 2, "this"), 2) is None
    assert "2 rounds" in str(second.consent(event(promised, 3, "this"), 2))


@pytest.mark.parametrize("owned", [False, True])
def test_rounds_that_ask_everybody_use_up_none_of_those_in_which_a_client_may_be_drawn(
    owned: bool,
):
    site = Site("c", np.zeros((1, 3)), 1, ledger=ledger() if owned else None)
    for number in range(2):
        assert site.consent(event(terms(clip=2.0), number), None) is None
    drawn = terms(sampling=Poisson(0.5))
    answers = [site.consent(event(drawn, 2 + n), 3) for n in range(4)]
    assert answers[:3] == [None] * 3
    assert "3 rounds" in str(answers[3])
