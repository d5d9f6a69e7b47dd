"""Marginals asked through the door: exact without noise, and with the noise that is claimed."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.data.tables import conform
from fedsynth.encoding.nominal import nominal_encoding
from fedsynth.encoding.table import TableEncoding
from fedsynth.marginals import Domain, count
from fedsynth.privacy.budget import Budget
from fedsynth.queries.counting import ask_counts, counting_terms, question
from fedsynth.queries.tables import ask_marginals, table_terms
from fedsynth.queries.tasks.counting import HISTOGRAM
from tests.methods.small import SCHEMA, channel_to, owners, silent_channel

CLIQUES = [(0, 1), (1, 2, 4), (3,)]
WEIGHTS = [1.0, 3.0, 0.5]


def encoded(channel, budget):
    _, starts, dim = question(SCHEMA)
    terms = counting_terms(len(starts), 0.0, budget, 1)
    counts = ask_counts(channel, HISTOGRAM, terms, starts, dim)
    encoding = TableEncoding.from_histogram(SCHEMA, counts.values, 0.0)
    channel.announce("encoding", encoding.to_dict())
    return encoding


def encoded_freely(channel):
    """An encoding that asks nothing: of the schema alone."""
    encoding = nominal_encoding(SCHEMA, 24)
    channel.announce("encoding", encoding.to_dict())
    return encoding


def codes(encoding, table):
    return encoding.encode(conform(table, SCHEMA))


def test_every_table_of_one_message_is_everyones_exact_count():
    tables = owners(30, 1, 25)
    channel = silent_channel(tables)
    budget = channel.ledger.job.budget
    encoding = encoded(channel, budget)
    domain = Domain(encoding.sizes)
    result = ask_marginals(channel, table_terms(budget, 0.0, 1), domain, CLIQUES, WEIGHTS)
    for measured, clique in zip(result, CLIQUES, strict=True):
        exact = sum(count(domain, codes(encoding, t), clique) for t in tables.values())
        assert measured.clique == clique
        np.testing.assert_allclose(measured.values, exact, atol=1e-9)
        assert measured.sigma == 0


def test_laplace_tables_share_the_l1_norm_and_say_the_deviation_of_their_noise():
    budget = Budget(epsilon=1.0, delta=1e-5, trust="central")
    channel = channel_to(owners(30), budget, seed=3)
    domain = Domain(encoded_freely(channel).sizes)
    terms = table_terms(budget, 500.0, 1, "laplace")
    result = ask_marginals(channel, terms, domain, [(0, 1), (2, 4)], [3.0, 1.0])
    for measured, share in zip(result, (0.75, 0.25), strict=True):
        assert measured.sigma == pytest.approx(np.sqrt(2) * terms.scale / share)
        spread = np.sqrt(np.mean(measured.values**2)) / measured.sigma
        assert spread == pytest.approx(1, abs=0.4)


def test_a_client_sends_its_shares_whatever_its_size():
    tables = owners(40, 2)
    channel = silent_channel(tables, "client")
    budget = channel.ledger.job.budget
    encoding = encoded(channel, budget)
    domain = Domain(encoding.sizes)
    result = ask_marginals(channel, table_terms(budget, 0.0, 1), domain, CLIQUES, WEIGHTS)
    for measured, clique in zip(result, CLIQUES, strict=True):
        shares = [count(domain, codes(encoding, t), clique) / len(t) for t in tables.values()]
        np.testing.assert_allclose(measured.values, sum(shares), atol=1e-9)
    assert channel.dropped.entries() == ()


@pytest.mark.parametrize(("trust", "factor"), [("central", 1), ("distributed", 1), ("local", 3)])
def test_the_noise_of_every_table_is_the_claimed_one_and_goes_with_its_weight(trust, factor):
    tables = owners(20, 20, 20)
    budget = Budget(epsilon=1e6, delta=1e-5, trust=trust)
    channel = channel_to(tables, budget, seed=7)
    silent = silent_channel(tables)
    encoding = encoded(silent, silent.ledger.job.budget)
    channel.announce("encoding", encoding.to_dict())
    domain = Domain(encoding.sizes)
    terms = table_terms(budget, 5.0, 3)
    errors = {clique: [] for clique in CLIQUES}
    pooled = np.concatenate([codes(encoding, t) for t in tables.values()])
    exact = {clique: count(domain, pooled, clique) for clique in CLIQUES}
    for _ in range(60):
        for measured in ask_marginals(channel, terms, domain, CLIQUES, WEIGHTS):
            clique = measured.clique
            errors[clique].append(((measured.values - exact[clique]) / measured.sigma).ravel())
            weight = WEIGHTS[CLIQUES.index(clique)] / np.linalg.norm(WEIGHTS)
            expected = 5.0 * terms.noise.wider * factor**0.5 / weight
            assert measured.sigma == pytest.approx(expected, rel=1e-4)
    for counts in errors.values():
        values = np.concatenate(counts)
        assert values.std() == pytest.approx(1, abs=4.5 / np.sqrt(2 * len(values)))
        assert abs(values.mean()) < 4.5 / np.sqrt(len(values))


def test_one_record_moves_a_message_by_its_clip_at_most():
    """Neighbouring tables: the weighted rows have norm 1 whatever the weights."""
    tables = owners(30)
    channel, fewer = silent_channel(tables), silent_channel({"a": tables["site-0"].iloc[1:]})
    budget = channel.ledger.job.budget
    encoding = encoded(channel, budget)
    fewer.announce("encoding", encoding.to_dict())
    domain = Domain(encoding.sizes)
    terms = table_terms(budget, 0.0, 1)
    both = [ask_marginals(c, terms, domain, CLIQUES, WEIGHTS) for c in (channel, fewer)]
    shares = np.array(WEIGHTS) / np.linalg.norm(WEIGHTS)
    moved = sum(
        share**2 * ((a.values - b.values) ** 2).sum()
        for share, a, b in zip(shares, *both, strict=True)
    )
    assert moved == pytest.approx(1)
    assert terms.clip >= 1
