"""A client clips and adds noise last, whatever its task did, and answers even with nothing.

Every statistical check fails for a correct client with probability at most 1e-8; the five together
raise a false alarm with probability below 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.site import Site
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms
from tests.federation.vectors import sites, terms

FALSE_ALARM = 1e-8


def request(promised: Terms, dim: int = 3, kept: int = 0, task: str = "test-vectors") -> Request:
    return Request(task, promised, dim, kept, job="job", round=4)


def has_variance(values: np.ndarray, scale: float) -> bool:
    """Whether centred Gaussian draws have the standard deviation ``scale``."""
    statistic = float((values**2).sum()) / scale**2
    low, high = stats.chi2(values.size).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    return low < statistic < high


def test_an_answer_names_its_client_and_its_round():
    answers = answer(sites(2), request(terms()), NoiseSource())
    assert [(a.client, a.job, a.round) for a in answers] == [("c0", "job", 4), ("c1", "job", 4)]
    assert all(a.values.dtype == np.float64 and a.values.shape == (3,) for a in answers)


@given(value=st.floats(-1e30, 1e30), clip=st.floats(1e-3, 1e3))
def test_a_whole_client_moves_the_sum_by_at_most_the_clip(value: float, clip: float):
    only = answer(sites(1, value=value), request(terms(clip=clip)), NoiseSource())
    assert np.linalg.norm(only[0].values) <= clip


@given(value=st.floats(-1e30, 1e30), records=st.integers(0, 5))
def test_every_record_is_clipped_on_its_own(value: float, records: int):
    promised = terms(unit="record")
    only = answer(sites(1, records=records, value=value), request(promised), NoiseSource())
    size = min(1.0, abs(value) * np.sqrt(3))
    assert np.linalg.norm(only[0].values) == pytest.approx(records * size, rel=1e-5)


def test_a_central_answer_has_no_noise_and_a_local_one_has_all_of_it():
    dim, owners = 20_000, sites(1, 20_000, value=0.0)
    exact = answer(owners, request(terms(), dim), NoiseSource())
    np.testing.assert_array_equal(exact[0].values, 0)
    noisy = answer(owners, request(terms(trust="local", noise_multiplier=3.0), dim), NoiseSource())
    assert has_variance(noisy[0].values, 3.0)


def test_a_distributed_answer_has_its_share_of_the_noise():
    dim = 20_000
    promised = terms(trust="distributed", noise_multiplier=6.0, survivors=9)
    noisy = answer(sites(1, dim, value=0.0), request(promised, dim), NoiseSource())
    assert has_variance(noisy[0].values, 2.0)


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_what_stays_at_the_client_carries_the_noise_in_full(trust: str):
    kept = 20_000
    promised = terms(unit="record", trust=trust, noise_multiplier=6.0, survivors=9)
    owner = Site("c", np.zeros((2, kept + 3)), 2)
    sent = answer([owner], request(promised, 3, kept), NoiseSource())
    held = owner.state.load()
    assert held is not None and held.shape == (kept,)
    assert sent[0].values.shape == (3,)
    assert has_variance(held, 6.0)


def test_kept_and_sent_parts_are_clipped_together():
    promised = terms(unit="record", noise_multiplier=0.0)
    owner = Site("c", np.full((1, 4), 100.0), 1)
    sent = answer([owner], request(promised, 2, 2), NoiseSource())
    whole = np.concatenate([owner.state.load(), sent[0].values])
    np.testing.assert_allclose(whole, 0.5, rtol=2e-6)


def test_drawn_records_are_independent_coin_flips():
    records, rate = 20_000, 0.3
    owner = Site("c", np.ones((records, 1)), records)
    promised = terms(unit="record", sampling=Poisson(rate))
    drawn = answer([owner], request(promised, 1), NoiseSource())[0].values[0]
    low, high = stats.binom(records, rate).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low <= drawn / (1 - 1e-6) <= high


def test_an_empty_sample_is_an_answer_of_noise_alone():
    promised = terms(unit="record", trust="local", sampling=Poisson(1e-12))
    for owner in (Site("c", np.ones((5, 3)), 5), Site("c", np.ones((0, 3)), 0)):
        only = answer([owner], request(promised), NoiseSource())
        assert (only[0].values != 0).all()


def test_a_task_that_gives_more_rows_than_units_is_refused_without_telling_how_many():
    owners = [Site("c", np.ones((7, 3)), 7)]
    for promised in (terms(unit="record"), terms()):
        with pytest.raises(PrivacyError, match="more of them than") as refused:
            answer(owners, request(promised, task="test-too-many"), NoiseSource())
        assert "7" not in str(refused.value)


def test_a_task_that_gives_rows_of_another_length_is_refused():
    with pytest.raises(PrivacyError, match="do not fit"):
        answer(sites(1), request(terms(), task="test-too-wide"), NoiseSource())


def test_a_task_that_is_not_installed_is_refused():
    with pytest.raises(FederationError, match="does not know"):
        answer(sites(1), request(terms(), task="rm -rf"), NoiseSource())


def test_sites_answered_together_answer_as_they_would_alone():
    owners = [Site(f"c{i}", np.full((2, 3), float(i)), 2) for i in range(3)]
    together = answer(owners, request(terms(unit="record")), NoiseSource())
    for owner, one in zip(owners, together, strict=True):
        alone = answer([owner], request(terms(unit="record")), NoiseSource())
        np.testing.assert_array_equal(alone[0].values, one.values)
