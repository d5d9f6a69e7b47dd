"""Persons at the door: drawn whole, cut nowhere, each clipped as one, refused where it is unclear.

The statistical check fails for a correct client with probability below 1e-8.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.joining import draw_records, pieces
from fedsynth.federation.client.steps import Steps
from fedsynth.federation.client.tasks import joins, register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Incident, Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms
from tests.federation.vectors import OBEDIENT, answered, terms


@dataclass(frozen=True)
class Owned:
    """Vectors, and whose they are."""

    values: np.ndarray
    persons: np.ndarray | None

    def take(self, rows: np.ndarray) -> Owned:
        return Owned(self.values[rows], None if self.persons is None else self.persons[rows])


class Ordered:
    """A row a record, in pieces of two records or so."""

    name = "test-ordered"
    keeps_order = True

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            for piece in pieces([client], [sample], request, 2):
                yield index, DenseRows(client.data.values[sample[piece]])


class Disordered(Ordered):
    """Says nothing of the order of its rows."""

    name = "test-disordered"
    keeps_order = False


class Cutting(Ordered):
    """Cuts samples where it likes."""

    name = "test-cutting"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            for start in range(len(sample)):
                yield index, DenseRows(client.data.values[sample[start : start + 1]])


class Lacking(Ordered):
    """Leaves a client's last record out."""

    name = "test-lacking"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            yield index, DenseRows(client.data.values[sample[:-1]])


class Doubling(Ordered):
    """Gives every record's row twice."""

    name = "test-doubling"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            yield index, DenseRows(client.data.values[np.repeat(sample, 2)])


class Sums:
    """A group's row is the number of its records."""

    name = "test-group-sums"

    def group_rows(self, groups, request):
        for position, group in enumerate(groups):
            yield position, np.full(2, float(group.records))


for _task in (Ordered(), Disordered(), Cutting(), Lacking(), Doubling(), Sums()):
    register(_task)


def person_terms(**changes) -> Terms:
    return terms(**{"unit": "person", "weigh": "row", "noise_multiplier": 0.0, **changes})


def owner(persons, values=None, name="c", seed=0) -> Client:
    persons = np.asarray(persons)
    if values is None:
        values = np.random.default_rng(seed).normal(size=(len(persons), 3))
    return Client(name, Owned(values, persons), len(persons), floor=OBEDIENT)


def asked(promised: Terms, task: str = "test-ordered", dim: int = 3, **more) -> Request:
    return Request(task, promised, dim, job="job", **more)


def clipped(client: Client, clip: float, weigh: str) -> np.ndarray:
    """What a client is to answer, a person at a time: the definition."""
    total = np.zeros(3)
    for person in np.unique(client.data.persons):
        own = client.data.values[client.data.persons == person]
        mean = own.sum(axis=0) / (len(own) if weigh == "person" else 1)
        total += mean * min(1.0, clip / max(np.linalg.norm(mean), 1e-12))
    return total


@settings(max_examples=40, deadline=None)
@given(
    persons=st.lists(st.integers(0, 5), max_size=20),
    clip=st.floats(0.1, 10),
    weigh=st.sampled_from(["person", "row"]),
)
def test_a_person_is_clipped_as_one_wherever_its_rows_stand(persons, clip, weigh):
    clients = [owner(persons, seed=len(persons)), owner([7, 7, 8], name="d")]
    answers = answered(clients, asked(person_terms(clip=clip, weigh=weigh)))
    for client, given_ in zip(clients, answers, strict=True):
        expected = clipped(client, clip, weigh)
        np.testing.assert_allclose(given_.values, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("weigh", ["person", "row"])
def test_a_person_of_a_thousand_rows_moves_an_answer_no_further_than_the_clip(weigh, mechanism):
    norm = "l2" if mechanism == "gaussian" else "l1"
    promised = person_terms(weigh=weigh, mechanism=mechanism, norm=norm)
    persons = np.r_[np.zeros(5, int), np.ones(1000, int)]
    values = np.full((1005, 3), 40.0)
    (whole,) = answered([owner(persons, values)], asked(promised))
    (without,) = answered([owner(persons[:5], values[:5])], asked(promised))
    moved = np.linalg.norm(whole.values - without.values, 2 if norm == "l2" else 1)
    assert 0.999 < moved <= 1.0


def test_a_person_that_a_task_cuts_in_two_is_refused_not_clipped_twice():
    with pytest.raises(PrivacyError, match="in two"):
        answered([owner([0, 1, 1])], asked(person_terms(), "test-cutting"))
    # Persons of one row each can be cut anywhere.
    assert answered([owner([0, 1, 2])], asked(person_terms(), "test-cutting"))


@pytest.mark.parametrize(("task", "said"), [("test-lacking", "fewer"), ("test-doubling", "more")])
def test_rows_that_are_not_one_a_record_leave_no_client(task, said):
    left = []
    with pytest.raises(PrivacyError, match=said):
        for one in answer([owner([0, 1]), owner([0, 1], name="d")], asked(person_terms(), task)):
            left.append(one)
    assert not left


def test_a_task_that_does_not_keep_the_order_is_asked_for_no_persons():
    with pytest.raises(PrivacyError, match="does not say whose"):
        answered([owner([0, 1])], asked(person_terms(), "test-disordered"))
    assert answered([owner([0, 1])], asked(terms(unit="record"), "test-disordered"))
    assert not joins("test-disordered") and joins("test-ordered") and joins("test-group-sums")


def test_a_client_that_does_not_know_whose_its_rows_are_refuses():
    nobody = Client("c", Owned(np.ones((2, 3)), None), 2, floor=OBEDIENT)
    refused, *_ = answer([nobody, owner([0, 1], name="d")], asked(person_terms()))
    assert isinstance(refused, Incident) and "whose" in refused.reason


@settings(max_examples=30, deadline=None)
@given(
    persons=st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=1, max_size=3),
    size=st.integers(1, 6),
)
def test_pieces_hold_every_record_once_and_cut_no_person(persons, size):
    views = [View(owner(one, name=f"c{i}"), "job") for i, one in enumerate(persons)]
    request = asked(person_terms())
    samples = [draw_records(view, request) for view in views]
    labels = np.concatenate(
        [10 * i + v.data.persons[s] for i, (v, s) in enumerate(zip(views, samples, strict=True))]
        + [np.zeros(0, int)]
    )
    whole = [labels[piece] for piece in pieces(views, samples, request, size)]
    assert np.concatenate([*whole, np.zeros(0, int)]).tolist() == labels.tolist()
    seen = [label for one in whole for label in np.unique(one).tolist()]
    assert len(seen) == len(set(seen))
    # No longer than asked for, but by one person.
    assert all(len(one) <= size or len(set(one.tolist())) == 1 for one in whole)


def test_pieces_of_records_are_as_long_as_asked_for():
    views = [View(owner([0] * 5), "job"), View(owner([1] * 4, name="d"), "job")]
    request = asked(terms(unit="record"))
    samples = [np.arange(5), np.arange(4)]
    found = [(p.start, p.stop) for p in pieces(views, samples, request, 4)]
    assert found == [(0, 4), (4, 8), (8, 9)]


def test_coins_are_thrown_for_persons_and_take_all_their_rows():
    persons = np.repeat(np.arange(2000), [1, 3] * 1000)
    client = View(owner(persons), "job")
    client._client.coins = NoiseSource(1)
    request = asked(person_terms(sampling=Poisson(0.3)))
    sample = draw_records(client, request)
    drawn = np.unique(persons[sample])
    assert np.array_equal(np.sort(sample), np.flatnonzero(np.isin(persons, drawn)))
    # Binomial of 2,000 coins: six standard deviations.
    assert abs(len(drawn) - 600) < 6 * np.sqrt(2000 * 0.3 * 0.7)
    odd = (drawn % 2 == 1).sum()
    assert abs(odd - 300) < 6 * np.sqrt(1000 * 0.3 * 0.7)


def test_steps_of_a_training_clip_persons_too():
    client = View(owner([0, 0, 0, 1], np.full((4, 3), 9.0)), "job")
    request = asked(person_terms(trust="local"), steps=1)
    with pytest.raises(PrivacyError, match="does not say whose"):
        Steps(client, request)
    total = Steps(client, request, keeps_order=True).sum(
        lambda view, sample: DenseRows(view.data.values[sample])
    )
    assert np.linalg.norm(total) == pytest.approx(2.0, rel=1e-5)
    with pytest.raises(PrivacyError, match="fewer"):
        Steps(client, request, keeps_order=True).sum(
            lambda view, sample: DenseRows(view.data.values[sample[:3]])
        )


def test_all_rows_of_a_person_are_in_one_group_and_its_coin_is_its_own():
    persons = np.repeat(np.arange(40), 5)
    client = owner(np.random.default_rng(2).permutation(persons))
    client.coins = NoiseSource(4)
    request = asked(person_terms(clip=1e6), "test-group-sums", 2, settings={"groups": 8})
    (sent,) = answered([client], request)
    assert sent.values[0] == pytest.approx(200)
    groups = [set(group.data.persons.tolist()) for group in client.memory("job").groups]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 40
    assert sum(bool(group) for group in groups) > 4
    with pytest.raises(PrivacyError, match="without sampling"):
        drawn = replace(request.terms, sampling=Poisson(0.5))
        answered([client], replace(request, terms=drawn, round=1))


@pytest.mark.parametrize("first", ["person", "client"])
def test_groups_of_persons_are_never_those_that_records_were_put_in_one_by_one(first):
    client = owner(np.repeat(np.arange(4), 5))
    of_persons = asked(person_terms(), "test-group-sums", 2, settings={"groups": 3})
    of_clients = replace(of_persons, terms=terms(unit="client"))
    asked_first, then = (of_persons, of_clients)[:: 1 if first == "person" else -1]
    assert not isinstance(answered([client], asked_first)[0], Incident)
    with pytest.raises(PrivacyError, match="never changes its group"):
        answered([client], replace(then, round=1))
