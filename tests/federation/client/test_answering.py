"""A client clips and adds noise last, whatever its task did, and answers even with nothing.

Every statistical check fails for a correct client with probability at most 1e-8; the five together
raise a false alarm with probability below 1e-6.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Request
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms
from tests.federation.vectors import OBEDIENT, answered, clients, ledger, terms

FALSE_ALARM = 1e-8


def request(promised: Terms, dim: int = 3, kept: int = 0, task: str = "test-vectors") -> Request:
    return Request(task, promised, dim, kept, job="job", round=4)


def has_variance(values: np.ndarray, scale: float) -> bool:
    """Whether centred Gaussian draws have the standard deviation ``scale``."""
    statistic = float((values**2).sum()) / scale**2
    low, high = stats.chi2(values.size).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    return low < statistic < high


def test_an_answer_names_its_client_and_its_round():
    answers = answered(clients(2), request(terms()))
    assert [(a.client, a.job, a.round) for a in answers] == [("c0", "job", 4), ("c1", "job", 4)]
    assert all(a.values.dtype == np.float64 and a.values.shape == (3,) for a in answers)


@given(value=st.floats(-1e30, 1e30), clip=st.floats(1e-3, 1e3))
def test_a_whole_client_moves_the_sum_by_at_most_the_clip(value: float, clip: float):
    only = answered(clients(1, value=value), request(terms(clip=clip)))
    assert np.linalg.norm(only[0].values) <= clip


@given(value=st.floats(-1e30, 1e30), records=st.integers(0, 5))
def test_every_record_is_clipped_on_its_own(value: float, records: int):
    promised = terms(unit="record")
    only = answered(clients(1, records=records, value=value), request(promised))
    size = min(1.0, abs(value) * np.sqrt(3))
    assert np.linalg.norm(only[0].values) == pytest.approx(records * size, rel=1e-5)


@given(value=st.floats(-1e30, 1e30), clip=st.floats(1e-3, 1e3))
def test_what_a_choice_rests_on_is_clipped_block_by_block(value: float, clip: float):
    promised = terms(mechanism="exponential", norm="l1", clip=clip)
    asked = replace(request(promised, 5), arrays={"starts": np.array([0, 2])})
    (only,) = answered(clients(1, 5, value=value), asked)
    assert max(np.abs(only.values[:2]).sum(), np.abs(only.values[2:]).sum()) <= clip
    assert abs(only.values).max() == pytest.approx(min(abs(value), clip / 3), rel=1e-5)


def test_a_central_answer_has_no_noise_and_a_local_one_has_all_of_it():
    dim, owners = 20_000, clients(1, 20_000, value=0.0)
    exact = answered(owners, request(terms(), dim))
    np.testing.assert_array_equal(exact[0].values, 0)
    noisy = answered(owners, request(terms(trust="local", noise_multiplier=3.0), dim))
    assert has_variance(noisy[0].values, 3.0)


def test_a_distributed_answer_has_its_share_of_the_noise():
    dim = 20_000
    promised = terms(trust="distributed", noise_multiplier=6.0, survivors=9)
    noisy = answered(clients(1, dim, value=0.0), request(promised, dim))
    assert has_variance(noisy[0].values, 2.0)


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_what_stays_at_the_client_carries_the_noise_in_full(trust: str):
    kept = 20_000
    promised = terms(unit="record", trust=trust, noise_multiplier=6.0, survivors=9)
    owner = Client("c", np.zeros((2, kept + 3)), 2, floor=OBEDIENT)
    sent = answered([owner], request(promised, 3, kept))
    held = owner.memory("job").vector.load()
    assert held is not None and held.shape == (kept,)
    assert sent[0].values.shape == (3,)
    assert has_variance(held, 6.0)


def test_kept_and_sent_parts_are_clipped_together():
    promised = terms(unit="record", noise_multiplier=0.0)
    owner = Client("c", np.full((1, 4), 100.0), 1, floor=OBEDIENT)
    sent = answered([owner], request(promised, 2, 2))
    whole = np.concatenate([owner.memory("job").vector.load(), sent[0].values])
    np.testing.assert_allclose(whole, 0.5, rtol=2e-6)


def test_drawn_records_are_independent_coin_flips():
    records, rate = 20_000, 0.3
    owner = Client("c", np.ones((records, 1)), records)
    promised = terms(unit="record", sampling=Poisson(rate))
    drawn = answered([owner], request(promised, 1))[0].values[0]
    low, high = stats.binom(records, rate).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low <= drawn / (1 - 1e-6) <= high


def test_an_empty_sample_is_an_answer_of_noise_alone():
    promised = terms(unit="record", trust="local", sampling=Poisson(1e-12))
    for records in (5, 0):
        owner = Client("c", np.ones((records, 3)), records, floor=OBEDIENT)
        only = answered([owner], request(promised))
        assert (only[0].values != 0).all()


def test_a_task_that_gives_more_rows_than_units_is_refused_without_telling_how_many():
    owners = [Client("c", np.ones((7, 3)), 7)]
    for promised in (terms(unit="record"), terms()):
        with pytest.raises(PrivacyError, match="more of them than") as refused:
            answered(owners, request(promised, task="test-too-many"))
        assert "7" not in str(refused.value)


def test_a_task_that_gives_rows_of_another_length_is_refused():
    with pytest.raises(PrivacyError, match="do not fit"):
        answered(clients(1), request(terms(), task="test-too-wide"))


def test_a_task_that_is_not_installed_is_refused():
    with pytest.raises(FederationError, match="does not know"):
        answered(clients(1), request(terms(), task="rm -rf"))


def test_clients_answered_together_answer_as_they_would_alone():
    owners = [Client(f"c{i}", np.full((2, 3), float(i)), 2) for i in range(3)]
    together = answered(owners, request(terms(unit="record")))
    for owner, one in zip(owners, together, strict=True):
        alone = answered([owner], request(terms(unit="record")))
        np.testing.assert_array_equal(alone[0].values, one.values)


def test_a_client_for_which_a_task_gives_no_rows_answers_all_the_same():
    owners = clients(3, records=2)
    together = answered(owners, request(terms(unit="record"), task="test-sending"))
    assert [one.client for one in together] == ["c0", "c1", "c2"]
    assert all((one.values == 0).all() for one in together)


def test_rows_out_of_the_clients_order_are_refused():
    with pytest.raises(PrivacyError, match="out of their order"):
        answered(clients(2), request(terms(), task="test-backwards"))


def test_nothing_can_be_kept_of_a_task_that_sends_all():
    promised = terms(unit="record")
    with pytest.raises(PrivacyError, match="kept at its client"):
        answered(clients(2), request(promised, 3, 2, task="test-sending"))


def test_an_answer_stands_before_the_next_client_is_looked_at():
    """So memory holds one of them, however many clients there are."""
    owners = clients(3)
    replies = answer(owners, request(terms()))
    first = next(replies)
    owners[2].data[:] = 0.2
    assert [one.values[0] for one in (first, *replies)] == pytest.approx([0.1, 0.1, 0.2])


def test_where_every_client_refuses_no_task_is_asked():
    owners = clients(2)
    for owner in owners:
        owner.ledger = ledger(epsilon=0.01)
    replies = list(answer(owners, request(terms(sampling=Poisson(0.5)), task="test-nobody")))
    assert [one.client for one in replies] == ["c0", "c1"]
    assert all("refuses" in one.reason for one in replies)
