"""Votes: one-hot, summed exactly without noise, and hidden by noise of the papers' sensitivity."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tests.methods.small as small
from fedsynth.errors import FederationError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.request import Request
from fedsynth.methods.pate.denoising import Smoother
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.pate.votes import ask_votes
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.queries.votes import Votes, vote_terms

INPUTS = Inputs(small.SCHEMA)
QUERIES = INPUTS.matrix(small.federation(small.table(30, seed=9))[0].data)


def terms(unit: str = "record", noise: float = 0.0, queries: int = 30):
    budget = Budget(epsilon=math.inf, unit=unit, trust="central", units=3)
    return vote_terms(budget, noise, 1, queries, "gaussian")


def counted(tables, unit: str = "record", teachers: int = 4) -> Votes:
    channel = small.silent_channel(tables, unit)
    return ask_votes(channel, terms(unit), QUERIES, 2, teachers, 20)


@pytest.mark.parametrize(("norm", "length"), [("gaussian", math.sqrt(2 * 30)), ("laplace", 60)])
def test_a_record_exchanges_all_votes_of_one_teacher(norm, length):
    # Papernot et al.: one exchanged vote moves two counts by 1 each.
    budget = Budget(epsilon=1.0, unit="record", trust="central")
    assert vote_terms(budget, 1.0, 1, 30, norm).clip == pytest.approx(length, rel=1e-4)


def test_a_client_adds_one_vote_to_each_query():
    assert terms("client").clip == pytest.approx(math.sqrt(30), rel=1e-4)


def test_without_noise_every_teacher_with_records_has_one_vote_on_each_query():
    votes = counted(small.owners(300, 200))
    assert votes.teachers == 8
    np.testing.assert_allclose(votes.counts.sum(axis=1), 8, rtol=1e-4)
    np.testing.assert_allclose(votes.counts, np.round(votes.counts), atol=1e-3)


def test_the_sum_of_two_clients_is_that_of_each_alone():
    # Teachers' groups are drawn by coins, so each client has one teacher here.
    both = counted(small.owners(60, 50), teachers=1).counts
    alone = [
        counted({name: table}, teachers=1).counts for name, table in small.owners(60, 50).items()
    ]
    np.testing.assert_allclose(both, sum(alone), atol=1e-9)


def test_a_client_votes_as_it_would_alone():
    request = Request(
        "pate-votes",
        terms(),
        60,
        arrays={"queries": QUERIES.astype(np.float32)},
        settings={"groups": 3, "steps": 10},
        job="job",
    )
    tables = small.owners(60, 0, 40)
    together = answer(small.federation(tables, job="job"), request)
    for one, own in zip(together, small.federation(tables, job="job"), strict=True):
        (alone,) = answer([own], request)
        assert alone.client == one.client
        np.testing.assert_array_equal(alone.values, one.values)


def test_a_teacher_of_one_class_votes_for_it_and_one_without_records_for_nothing():
    ill = small.table(40).assign(outcome="ill")
    votes = counted({"a": ill, "b": small.table(0)}, teachers=1)
    np.testing.assert_allclose(votes.counts, np.tile([0.0, 1.0], (30, 1)), atol=1e-4)
    assert votes.teachers == 2
    # Nothing is as a vote for every class alike.
    np.testing.assert_allclose(votes.shares, np.tile([0.25, 0.75], (30, 1)), atol=1e-4)


def test_a_whole_client_has_one_vote_however_many_teachers():
    for teachers in (1, 5):
        votes = counted(small.owners(80, 70), "client", teachers)
        assert votes.teachers == 2
        np.testing.assert_allclose(votes.counts.sum(axis=1), 2, rtol=1e-4)


def test_teachers_learn_from_their_own_records():
    votes = counted(small.owners(300, 300), teachers=3)
    ill = small.table(30, seed=9)["outcome"] == "ill"
    assert ((votes.counts[:, 1] > 3) == ill).mean() > 0.9


@pytest.mark.parametrize("queries", [QUERIES[:, :-1], QUERIES[:0], QUERIES[:20], QUERIES[0]])
def test_queries_that_are_no_rows_of_the_schema_are_refused(queries):
    request = Request(
        "pate-votes",
        terms(),
        60,
        arrays={"queries": queries},
        settings={"groups": 1, "steps": 1},
    )
    with pytest.raises(FederationError, match="queries"):
        list(answer(small.federation(small.table(9)), request))


def noisy(shares: np.ndarray, sigma: float, teachers: int, seed: int = 0) -> Votes:
    draws = np.random.default_rng(seed).normal(size=shares.shape) * sigma
    return Votes(shares * teachers + draws, sigma, teachers)


def test_shares_sum_to_one_and_the_stated_variance_is_that_of_their_noise():
    true = np.tile([0.2, 0.3, 0.5], (4000, 1))
    votes = noisy(true, 50.0, 100)
    np.testing.assert_allclose(votes.shares.sum(axis=1), 1)
    assert (votes.shares - true).var() == pytest.approx(votes.share_variance, rel=0.05)


def smooth_shares(rows: np.ndarray) -> np.ndarray:
    positive = 0.5 + 0.4 * np.tanh(2 * rows[:, 0])
    return np.stack([1 - positive, positive], axis=1)


def test_denoising_takes_off_most_of_the_noise_and_none_of_clear_votes():
    rows = np.random.default_rng(1).normal(size=(400, 5))
    true = smooth_shares(rows)
    standards = np.zeros(5), np.ones(5)
    for sigma, least in ((40.0, 2.5), (1e-3, 0.9)):
        votes = noisy(true, sigma, 100)
        smoothed = Smoother.fit(rows, votes, standards).shares(rows)
        raw = np.sqrt(((votes.shares - true) ** 2).mean())
        left = np.sqrt(((smoothed - true) ** 2).mean())
        assert left < max(raw / least, 0.01)
        np.testing.assert_allclose(smoothed.sum(axis=1), 1)


def test_pure_noise_says_nothing_of_any_row():
    rows = np.random.default_rng(1).normal(size=(300, 5))
    even = np.full((300, 2), 0.5)
    smoothed = Smoother.fit(rows, noisy(even, 200.0, 100), (np.zeros(5), np.ones(5))).shares(rows)
    assert np.abs(smoothed - 0.5).max() < 0.25


def test_denoising_agrees_with_the_textbook_posterior_mean():
    # Rasmussen and Williams, equation 2.25, by a dense solve.
    rows = np.random.default_rng(2).normal(size=(60, 3))
    votes = noisy(smooth_shares(rows), 20.0, 100)
    smoother = Smoother.fit(rows, votes, (np.zeros(3), np.ones(3)))
    centred = votes.shares - votes.shares.mean(axis=0)
    distance = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    kernel = (
        rows @ rows.T / 3
        if smoother.length == 0
        else np.exp(-distance / (2 * smoother.length**2 * 3))
    )
    result = []
    for amplitude in np.geomspace(1e-5, 10, 25):
        for nugget in (1e-6, 1e-4, 1e-3, 1e-2, 1e-1):
            noise = (votes.share_variance + nugget) * np.eye(60)
            result.append(amplitude * np.linalg.solve(amplitude * kernel + noise, centred))
    gaps = [np.abs(own - smoother.weights).max() for own in result]
    assert min(gaps) < 1e-8


def test_the_noise_at_epsilon_one_is_that_of_the_docstring():
    assert optimal_gaussian_sigma(1.0, 1e-5) == pytest.approx(3.7, abs=0.05)


def test_a_teacher_votes_as_if_its_classes_were_equally_frequent():
    rng = np.random.default_rng(0)
    table = small.table(3000)
    ill = rng.random(3000) < 0.05
    dose = np.clip(np.where(ill, 6, 4) + rng.standard_normal(3000), 0, 10).round(1)
    colour = rng.choice(["red", "green"], 3000)
    mixed = table.assign(outcome=np.where(ill, "ill", "well"), dose=dose, colour=colour)
    # Of even classes dose 5.8 is likelier ill; of these, where one in 20 is, not below 6.5.
    asked = table[:30].assign(dose=5.8, colour="green")
    queries = INPUTS.matrix(small.federation(asked)[0].data)
    channel = small.silent_channel({"a": mixed})
    counts = ask_votes(channel, terms(), queries, 2, 1, 300).counts
    assert counts[:, 1].mean() > 0.8


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_stated_deviation_is_that_of_the_noise(noise):
    budget = Budget(epsilon=math.inf, unit="record", trust="central")
    asked = vote_terms(budget, 1.0, 1, 30, noise)
    votes = ask_votes(small.silent_channel(small.owners(4)), asked, QUERIES, 2, 1, 1)
    # One vote a query is nothing beside it; 60 draws tell sqrt(2) from 1.
    assert votes.counts.std() == pytest.approx(votes.sigma, rel=0.25)
