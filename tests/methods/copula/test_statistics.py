"""The one message: without noise it is the exact pooled counts and products, whoever is beside."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.data.tables import conform
from fedsynth.errors import FederationError
from fedsynth.federation.request import Request
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.question import Question
from fedsynth.methods.copula.statistics import ask_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.queries.terms import HAIR
from tests.methods.small import SCHEMA, federation, owners, silent_channel, table, views

TERMS = statistics_terms(Budget(epsilon=float("inf"), trust="central"), 0.0, 1)


def pooled(tables):
    import pandas as pd

    return conform(pd.concat(tables.values(), ignore_index=True), SCHEMA).columns


@pytest.mark.parametrize("hot", [0, 9])
def test_without_noise_counts_and_products_are_those_of_the_pooled_rows(hot):
    tables = owners(60, 40, 1)
    statistics = ask_statistics(silent_channel(tables), TERMS, SCHEMA, {"share": 0.5, "apart": hot})
    columns = pooled(tables)
    cells = statistics.question.cells
    labels = columns["outcome"]
    assert statistics.sigma == statistics.product_sigma == 0
    for label in (0, 1):
        mine = labels == label
        for own, at in zip(cells.columns, cells.slices(), strict=True):
            codes = own.codes(columns[own.name][mine])
            exact = np.bincount(codes, minlength=own.size)
            np.testing.assert_allclose(statistics.counts[0, label, at], exact, atol=1e-9)
        scores = [own.scores[own.codes(columns[own.name][mine])] for own in cells.columns]
        z = np.concatenate(
            [np.full((mine.sum(), 1), statistics.question.constant), *scores], axis=1
        )
        # A record whose products exceed the bound counts for less than one.
        weight = np.minimum(1.0, statistics.question.bound / (z**2).sum(axis=1))
        exact = (z * weight[:, None]).T @ z
        np.testing.assert_allclose(statistics.products[0, label], exact, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("hot", [0, 9])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_no_records_row_exceeds_the_clip_nor_is_far_below_it(norm, hot, share):
    question = Question(TableCells.of(SCHEMA, hot), share, norm)
    rows = question.rows(conform(table(200), SCHEMA).columns, 0)
    norms = rows.norms(norm)
    assert rows.dim == question.dim
    assert (norms <= HAIR).all() and norms.max() > 0.9
    ones = np.ones(len(rows))
    np.testing.assert_array_equal(clip_and_sum(rows, HAIR, norm), rows.weighted_sum(ones))


def test_a_large_record_is_clipped_in_its_products_alone():
    question = Question(TableCells.of(SCHEMA, 0), 0.5, "l2")
    frame = table(400)
    rows = question.rows(conform(frame, SCHEMA).columns, 0)
    counts, moments = rows.parts
    assert (moments.norms("l2") <= 1).all() and (moments.norms("l2") > 1 - 1e-4).any()
    np.testing.assert_array_equal(counts.norms("l2"), len(question.cells.columns) ** 0.5)


def answers(tables, settings, asked):
    clients = views(federation(tables))
    question_dim = Question(TableCells.of(SCHEMA, 9), 0.5, "l2", asked).dim
    request = Request("fusion-statistics", TERMS, question_dim, settings=settings)
    samples = [np.arange(client.records) for client in clients]
    return {
        clients[index].name: clip_and_sum(rows, HAIR)
        for index, rows in STATISTICS.contribute(clients, samples, request)
    }


def test_a_clients_contribution_does_not_depend_on_who_is_beside_it():
    tables = owners(30, 0, 50)
    settings = {"share": 0.5, "apart": 9}
    together = answers(tables, settings, 1)
    for name in ("site-0", "site-2"):
        alone = answers({name: tables[name]}, settings, 1)[name]
        np.testing.assert_array_equal(alone, together[name])
    assert not together["site-1"].any()


def test_every_group_has_a_block_of_its_own():
    tables = owners(30, 20, 50)
    groups = {"site-0": 1, "site-1": 0, "site-2": 1}
    settings = {"share": 0.5, "apart": 9}
    statistics = ask_statistics(
        silent_channel(tables), TERMS, SCHEMA, {**settings, "groups": groups}
    )
    for group, names in ((0, ["site-1"]), (1, ["site-0", "site-2"])):
        alone = ask_statistics(
            silent_channel({name: tables[name] for name in names}), TERMS, SCHEMA, settings
        )
        np.testing.assert_allclose(statistics.counts[group], alone.counts[0], atol=1e-9)
        np.testing.assert_allclose(statistics.products[group], alone.products[0], atol=1e-9)
    with pytest.raises(FederationError, match="site-2"):
        answers(tables, {**settings, "groups": {"site-0": 1, "site-1": 0}}, 2)


def test_a_client_sends_means_at_the_client_level():
    tables = owners(30, 50)
    budget = Budget(epsilon=float("inf"), unit="client", trust="central")
    terms = statistics_terms(budget, 0.0, 1)
    channel = silent_channel(tables, unit="client")
    statistics = ask_statistics(channel, terms, SCHEMA, {"share": 0.5, "apart": 9})
    means = np.zeros_like(statistics.counts)
    for name in tables:
        one = silent_channel({name: tables[name]})
        exact = ask_statistics(one, TERMS, SCHEMA, {"share": 0.5, "apart": 9})
        means += exact.counts / len(tables[name])
    np.testing.assert_allclose(statistics.counts, means, atol=1e-9)


def test_the_noise_in_counts_and_products_is_what_is_said():
    rng = np.random.default_rng(0)
    question = Question(TableCells.of(SCHEMA, 9), 0.3, "l2")
    draws = [question.answer(2.0 * rng.standard_normal(question.dim), 2.0) for _ in range(200)]
    counts = np.stack([d.counts for d in draws])
    products = np.stack([d.products for d in draws])
    diagonal = np.diagonal(products, axis1=3, axis2=4)
    off = products[:, :, :, 0, 1:]
    assert counts.std() == pytest.approx(draws[0].sigma, rel=0.02)
    assert diagonal.std() == pytest.approx(draws[0].product_sigma, rel=0.03)
    assert off.std() == pytest.approx(draws[0].product_sigma / 2**0.5, rel=0.03)
