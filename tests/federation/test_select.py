"""Selection by the exponential mechanism: sensitivity, order, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import chisquare

from fedsynth.data.tables import Conformed
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import BudgetExceeded, ConfigError, FederationError, PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.server.scores import Scores
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms.exponential import bounded_range_delta
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.tables import table_arrays, table_terms
from fedsynth.queries.tasks.marginals import MARGINALS
from fedsynth.schema import Categorical, Schema
from tests.federation.vectors import OBEDIENT, Watched
from tests.federation.vectors import channel as channel_to

SIZES = (2, 3, 2)
CLIQUES = [(0, 1), (1, 2), (0,)]
STARTS = np.array([0, 6, 12])
DIM = 14
SCHEMA = Schema(
    columns=[
        Categorical(name=f"c{k}", values=[str(v) for v in range(size)])
        for k, size in enumerate(SIZES)
    ]
)
ENCODING = TableEncoding(SCHEMA, (None,) * 3, tuple(np.full(s, 1 / s) for s in SIZES), 1.0)


def house(tables, budget, seed=None, **changes):
    clients = [
        Client(
            f"s{k}",
            Conformed({f"c{j}": t[:, j] for j in range(3)}, {}, len(t)),
            len(t),
            floor=OBEDIENT,
        )
        for k, t in enumerate(tables)
    ]
    job = Job(budget=budget, insecure=seed is not None)
    house = channel_to(Watched(clients, **changes), Ledger.create(job), seed=seed)
    house.announce("encoding", ENCODING.to_dict())
    return house


def select(channel, terms, estimate=None, **changes):
    given = {
        "estimate": np.zeros(DIM) if estimate is None else estimate,
        "starts": STARTS,
        "weights": np.ones(3),
        "penalties": np.zeros(3),
        "arrays": table_arrays(CLIQUES, np.ones(3)),
    }
    return channel.select(MARGINALS.name, terms, **{**given, **changes})


def exact(tables):
    rows = np.concatenate(tables)
    result = [np.zeros(SIZES[:2]), np.zeros(SIZES[1:]), np.zeros(SIZES[0])]
    for table, clique in zip(result, CLIQUES, strict=True):
        np.add.at(table, tuple(rows[:, list(clique)].T), 1)
    return np.concatenate([table.ravel() for table in result])


def made(rng, *rows):
    return [np.column_stack([rng.integers(0, s, n) for s in SIZES]).astype(np.int64) for n in rows]


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_adding_a_record_moves_no_score_by_more_than_its_clip(seed):
    rng = np.random.default_rng(seed)
    table = made(rng, 30)[0]
    scores = Scores(rng.normal(0, 20, DIM), STARTS, np.array([1.0, 0.5, 0.2]), rng.normal(size=3))
    moved = scores.of(exact([table])) - scores.of(exact([table[:-1]]))
    assert (np.abs(moved) <= scores.weights + 1e-9).all()


def test_without_noise_the_furthest_block_of_everyones_sum_is_chosen():
    rng = np.random.default_rng(0)
    tables = made(rng, 40, 1, 25)
    budget = Budget(epsilon=float("inf"), trust="central")
    terms = table_terms(budget, 0.0, 1, "exponential")
    total = exact(tables)
    for block, (start, stop) in enumerate([(0, 6), (6, 12), (12, 14)]):
        estimate = total.copy()
        estimate[start:stop] += 1.0
        assert select(house(tables, budget, 0), terms, estimate) == block
    estimate = total + 1.0
    assert select(house(tables, budget, 0), terms, estimate, penalties=np.array([6, 5, 0])) == 2
    assert select(house(tables, budget, 0), terms, estimate, weights=np.array([0.1, 1, 0.1])) == 1


def test_a_whole_client_weighs_one_record_and_is_clipped_block_by_block():
    tables = made(np.random.default_rng(1), 50, 2)
    budget = Budget(epsilon=float("inf"), unit="client", trust="central", units=2)
    terms = table_terms(budget, 0.0, 1, "exponential")
    shares = sum(exact([table]) / len(table) for table in tables)
    estimate = shares.copy()
    estimate[6] += 0.1
    channel = house(tables, budget, 0)
    assert select(channel, terms, estimate) == 1
    assert channel.dropped.entries() == ()


def test_the_choice_is_charged_before_anybody_is_asked_and_refused_beyond_the_budget():
    tables = made(np.random.default_rng(2), 20)
    budget = Budget(epsilon=0.5, delta=1e-5, trust="central")
    channel = house(tables, budget)
    terms = table_terms(budget, 20.0, 1, "exponential")
    for number in range(1, 4):
        assert select(channel, terms) in (0, 1, 2)
        assert len(channel.ledger.events) == number
    with pytest.raises(BudgetExceeded):
        select(channel, table_terms(budget, 1.0, 1, "exponential"))
    assert len(channel.ledger.events) == 3


def test_sums_do_not_select_and_selections_do_not_sum():
    tables = made(np.random.default_rng(3), 20)
    budget = Budget(epsilon=5, trust="central")
    channel = house(tables, budget)
    with pytest.raises(PrivacyError, match="select"):
        select(channel, table_terms(budget, 9.0, 1))
    with pytest.raises(PrivacyError, match="sum"):
        channel.sum(MARGINALS.name, table_terms(budget, 9.0, 1, "exponential"), DIM)
    assert channel.ledger.events == ()
    assert isinstance(table_terms(budget, 9.0, 1), Terms)


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": np.array([1.0, 2.0, 1.0])},
        {"weights": np.array([1.0, 0.0, 1.0])},
        {"weights": np.ones(2)},
        {"penalties": np.array([0.0, np.nan, 0.0])},
        {"starts": np.array([0, 6, 6])},
        {"starts": np.array([1, 6, 12])},
        {"estimate": np.full(DIM, np.inf)},
    ],
)
def test_scores_of_unbounded_sensitivity_or_shape_are_refused_before_the_charge(changes):
    budget = Budget(epsilon=5, trust="central")
    channel = house(made(np.random.default_rng(4), 20), budget)
    with pytest.raises(ConfigError):
        select(channel, table_terms(budget, 9.0, 1, "exponential"), **changes)
    assert channel.ledger.events == ()


def test_choices_are_drawn_as_the_softmax_of_the_exact_scores_says():
    tables = made(np.random.default_rng(5), 12, 9)
    budget = Budget(epsilon=float("inf"), trust="central")
    terms = table_terms(budget, 4.0, 1, "exponential")
    estimate = exact(tables) + np.linspace(0, 1, DIM)
    weights, penalties = np.array([1.0, 0.7, 0.4]), np.array([0.5, -1.0, 0.0])
    scores = Scores(estimate, STARTS, weights, penalties).of(exact(tables))
    assert 1 < np.ptp(scores) < 8
    channel = house(tables, budget, 0)
    drawn = [
        select(channel, terms, estimate, weights=weights, penalties=penalties) for _ in range(600)
    ]
    expected = 600 * softmax(scores / (4.0 * terms.clip))
    assert chisquare(np.bincount(drawn, minlength=3), expected).pvalue > 1e-4


def test_neighbours_choose_alike_as_far_as_the_curve_allows():
    """Exactly, from the scores of neighbouring tables: the chance of any set of choices."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        table, multiplier = made(rng, 15)[0], rng.uniform(0.3, 4)
        estimate = exact([table]) * rng.uniform(0, 2)
        scores = Scores(estimate, STARTS, rng.uniform(0.1, 1, 3), rng.normal(size=3))
        here = softmax(scores.of(exact([table])) / multiplier)
        there = softmax(scores.of(exact([np.delete(table, rng.integers(15), 0)])) / multiplier)
        for epsilon in np.linspace(-1, 1, 9) * 2 / multiplier:
            bound = bounded_range_delta(np.array([epsilon]), 2 / multiplier)[0]
            for p, q in ((here, there), (there, here)):
                assert np.maximum(p - np.exp(epsilon) * q, 0).sum() <= bound + 1e-9


def test_a_choice_without_a_quorum_is_lost_and_stays_charged():
    tables = made(np.random.default_rng(8), 8, 8, 8)
    budget = Budget(epsilon=5, delta=1e-5, trust="central")
    channel = house(tables, budget, answering=1)
    with pytest.raises(FederationError, match="1 usable answers, 2 needed"):
        select(channel, table_terms(budget, 9.0, 1, "exponential"))
    assert len(channel.ledger.events) == 1
    assert channel.ledger.spent().epsilon > 0
