"""One client that sends something else than its records' counts, beside honest ones.

What noise explains passes. The liar adds its honest share of the noise, so that nothing but its
counts gives it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import DataError, FederationError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Request, Summed
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.marginals import Domain
from fedsynth.methods.marginal.mst import MST
from fedsynth.privacy.budget import Budget
from fedsynth.queries.counting import ask_counts, counting_terms, question
from fedsynth.queries.tables import ask_marginals, table_terms
from tests.federation.vectors import OBEDIENT
from tests.methods.small import SCHEMA, channel_to, owners

BUDGET = Budget(epsilon=1e6, delta=1e-5)
CLIQUES = [(0, 1), (1, 2, 4), (3,)]
EVEN = owners(400, 400, 400, 400, 400)


def lying(monkeypatch: pytest.MonkeyPatch, *times: float) -> None:
    """The first client sends so many times its exact sum; round by round, the last from there."""
    genuine = LocalRuntime.sum

    def total(self: LocalRuntime, request: Request, cohort: Sequence[str]) -> Summed:
        summed = genuine(self, request, cohort)
        more = times[min(request.round, len(times) - 1)] - 1
        exact = ask_without_noise(self._clients[cohort[0]], request)
        return replace(summed, total=summed.total + more * exact)

    monkeypatch.setattr(LocalRuntime, "sum", total)


def ask_without_noise(client: Client, request: Request) -> np.ndarray:
    """What the client would answer if it insisted on nothing, which it does not remember."""
    memory = client.memory(request.job)
    floor, latest, tally = client.floor, memory.latest, memory.tally
    client.floor, memory.latest, memory.tally = OBEDIENT, -1, None
    bare = replace(request, terms=replace(request.terms, noise_multiplier=0.0))
    (reply,) = answer([client], bare)
    client.floor, memory.latest, memory.tally = floor, latest, tally
    return reply.values


def ask_both(most_records: int | None = None) -> None:
    """A histogram and tables, with noise that hides what ten records do."""
    channel = channel_to(EVEN, BUDGET, seed=3, most_records=most_records)
    task, starts, dim = question(SCHEMA)
    terms = counting_terms(len(starts), 10 / np.sqrt(len(starts)), BUDGET, 5)
    counts = ask_counts(channel, task, terms, starts, dim)
    encoding = TableEncoding.from_histogram(SCHEMA, counts.values, counts.sigma)
    channel.announce("encoding", encoding.to_dict())
    tables = table_terms(BUDGET, 10.0, 5)
    ask_marginals(channel, tables, Domain(encoding.sizes), CLIQUES, [1.0, 3.0, 0.5])


@pytest.mark.parametrize("most", [None, 400])
def test_honest_clients_pass_at_the_very_number_of_records_that_was_agreed(most):
    ask_both(most)


def test_counts_turned_negative_are_refused(monkeypatch):
    lying(monkeypatch, -10.0)
    with pytest.raises(FederationError, match=r"histogram, round 0.*below zero.*charged"):
        ask_both()


def test_counts_many_times_too_large_are_refused_where_it_is_agreed_how_many_there_are(monkeypatch):
    lying(monkeypatch, 10.0)
    # Everything agrees: as far as anybody can see, this client has ten times as many records.
    ask_both()
    with pytest.raises(FederationError, match=r"histogram, round 0.*most_records=400"):
        ask_both(400)
    # 14 x 400 records are no more than 5 x 3000.
    ask_both(3000)


def test_counts_a_little_too_large_are_found_by_their_total(monkeypatch):
    lying(monkeypatch, 1.5)
    with pytest.raises(FederationError, match="counts more than all clients may have"):
        ask_both(400)


def test_two_questions_answered_from_different_counts_are_refused(monkeypatch):
    lying(monkeypatch, 1.0, 3.0)
    with pytest.raises(FederationError, match=r"marginals, round 1.*disagree"):
        ask_both()


def test_questions_that_other_clients_answered_are_not_held_against_each_other(monkeypatch):
    genuine = LocalRuntime.sum

    def total(self: LocalRuntime, request: Request, cohort: Sequence[str]) -> Summed:
        return genuine(self, request, cohort[: 5 - request.round])

    monkeypatch.setattr(LocalRuntime, "sum", total)
    channel = channel_to(EVEN, BUDGET, seed=3)
    task, starts, dim = question(SCHEMA)
    terms = counting_terms(len(starts), 1.0, BUDGET, 4)
    first, second = (ask_counts(channel, task, terms, starts, dim) for _ in range(2))
    assert first.values.sum() > 1.1 * second.values.sum()
    assert channel.counted is not None and abs(channel.counted.value - 2000) < 100


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("epsilon", [0.05, 3.0])
def test_honest_jobs_of_tiny_and_empty_owners_pass(unit, epsilon):
    tables = owners(1, 0, 3, 30)
    budget = Budget(epsilon=epsilon, delta=1e-4, unit=unit)
    most = 30 if unit == "record" else None
    made = MST(SCHEMA).fit(tables, budget, most_records=most)
    assert len(made.sample(5, seed=0)) == 5 and made.incidents == ()


def test_an_owner_with_more_records_than_agreed_is_told_before_anything_is_asked(tmp_path):
    with pytest.raises(DataError, match=r"site-1 has more than 30 records.*Nothing was asked"):
        MST(SCHEMA).fit(owners(30, 31), 1.0, most_records=30, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_counted_before_a_crash_is_still_held_against_what_comes(tmp_path, monkeypatch):
    def crash(label, done, total, epsilon):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MST(SCHEMA).fit(EVEN, 3.0, folder=tmp_path, progress=crash)
    lying(monkeypatch, 4.0)
    with pytest.raises(FederationError, match=r"marginals, round 1.*disagree"):
        MST(SCHEMA).fit(EVEN, 3.0, folder=tmp_path, resume=True)
