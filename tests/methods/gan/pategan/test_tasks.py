"""Teachers are distinct, see their own records alone, and vote one-hot."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import tests.methods.small as small
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import FederationError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.groups import groups_of
from fedsynth.federation.request import Request
from fedsynth.methods.gan.networks import game_of
from fedsynth.methods.gan.pategan.settings import PATEGANSettings
from fedsynth.methods.gan.pategan.tasks import _records
from fedsynth.methods.gan.pategan.teachers import Teacher, train, training_set
from fedsynth.models import gan
from fedsynth.models.adam import Adam
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.queries.votes import vote_terms

SCHEMA = small.SCHEMA
LAYOUT = HistogramLayout.of(SCHEMA)
ENCODING = TableEncoding.from_histogram(
    SCHEMA,
    np.bincount(
        LAYOUT.positions(small.federation(small.table(500))[0].data).ravel(), minlength=LAYOUT.dim
    ).astype(float),
    0.0,
    8,
)
SETTINGS = PATEGANSettings(discriminator_hidden=(8,), hidden=(8,)).resolved(
    Budget(epsilon=1.0), SCHEMA
)
GAME = game_of(SETTINGS, SCHEMA, ENCODING)
COLUMNS = len(GAME.cells.columns)


# Of the coins by which the last of 60 records is alone in one of 40 groups.
ALONE = 4


def codes(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Generated rows: every column on its own, evenly."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(size, size=rows) for size in GAME.cells.columns]
    return np.stack(drawn, axis=1).astype(np.int32), rng.integers(0, 2, rows)


def request(unit: str = "record", count: int = 40, teachers: int = 3, number: int = 0, **changes):
    budget = Budget(epsilon=math.inf, unit=unit, trust="central", units=3)
    fakes, fake_labels = codes(200, 1)
    asked, labels = codes(count, 2)
    arrays = {
        "fakes": fakes,
        "fake_labels": fake_labels,
        "queries": asked,
        "query_labels": labels,
        **changes,
    }
    settings = {
        "groups": teachers,
        "steps": 3,
        "warmup": 20,
        "batch_size": 16,
        "learning_rate": 1e-2,
    }
    return Request(
        "pate-verdicts",
        vote_terms(budget, 0.0, 1, count, "gaussian"),
        2 * count,
        arrays=arrays,
        settings=settings,
        job="job",
        round=number,
    )


def clients(*sizes: int, **tables):
    announced = {"encoding": ENCODING.to_dict(), "game": GAME.to_dict()}
    return small.federation({**small.owners(*sizes), **tables}, job="job", **announced)


def votes(nets, asked: Request) -> np.ndarray:
    """[queries, 2] of all clients."""
    return sum(a.values for a in answer(nets, asked)).reshape(-1, 2)


def test_every_teacher_with_records_of_a_class_has_one_vote_on_a_row_of_it():
    counts = votes(clients(90, 80), request())
    np.testing.assert_allclose(counts.sum(axis=1), 6, rtol=1e-4)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)


def test_a_whole_client_has_one_vote_however_many_teachers():
    for teachers in (1, 3):
        counts = votes(clients(90, 80), request("client", teachers=teachers))
        np.testing.assert_allclose(counts.sum(axis=1), 2, rtol=1e-4)


def test_nobody_votes_on_a_class_that_none_of_its_records_has():
    ill = small.table(60).assign(outcome="ill")
    asked = request(teachers=1)
    counts = votes(clients(a=ill), asked)
    np.testing.assert_allclose(counts.sum(axis=1), asked.arrays["query_labels"], atol=1e-3)


def test_a_client_without_records_votes_for_nothing():
    assert not votes(clients(0, 30)[:1], request()).any()


def test_teachers_are_distinct_networks_taught_by_their_own_records():
    (client,) = clients(200)
    asked = request()
    votes([client], asked)
    groups = groups_of(client, asked)
    flats = [group.memory["pate-gan"].flat for group in groups]
    assert all(not torch.equal(a, b) for i, a in enumerate(flats) for b in flats[i + 1 :])
    held = [group.memory["records"] for group in groups]
    assert [len(own) for own in held] == [group.records for group in groups]
    assert sum(map(len, held)) == 200
    whole = ENCODING.encode(client.data)
    target = [c.name for c in SCHEMA.modelled].index(SCHEMA.target)
    rest = np.delete(whole, target, axis=1)
    together = torch.cat(held).numpy()
    assert sorted(map(tuple, together)) == sorted(map(tuple, rest.astype(np.float32)))


def test_another_groups_records_change_nothing_of_a_teacher():
    first, second = clients(200), clients(200)
    asked = request()
    other = groups_of(second[0], asked)[1]
    for values in other.data.columns.values():
        values[:] = values[:1]
    votes(first, asked)
    votes(second, asked)
    for number, same in ((0, True), (1, False), (2, True)):
        one, two = (groups_of(s[0], asked)[number].memory["pate-gan"].flat for s in (first, second))
        assert torch.equal(one, two) == same


def test_a_record_that_leaves_its_group_empty_changes_no_other_teacher_in_the_last_bit():
    asked = request(teachers=40)
    # Of this many rows, rounding in a stack depends on the place in it.
    asked = replace(asked, settings={**asked.settings, "batch_size": 10})
    table, taught = small.table(60), []
    for rows in (table, table[:-1]):
        (client,) = clients(rest=rows)
        client.coins = NoiseSource(ALONE)
        votes([client], asked)
        taught.append(groups_of(client, asked))
    whole, less = taught
    changed = [i for i in range(40) if whole[i].records != less[i].records]
    assert len(changed) == 1 and less[changed[0]].records == 0
    for i in (i for i in range(40) if less[i].records):
        assert torch.equal(whole[i].memory["pate-gan"].flat, less[i].memory["pate-gan"].flat)


def test_a_client_votes_as_it_would_alone():
    together = answer(clients(90, 0, 70), request())
    for index, one in enumerate(together):
        own = clients(90, 0, 70)[index]
        (alone,) = answer([own], request())
        np.testing.assert_array_equal(alone.values, one.values)


def test_teachers_go_on_from_round_to_round():
    (client,) = clients(90)
    votes([client], request())
    groups = groups_of(client, request())
    assert [group.memory["pate-gan"].steps for group in groups] == [20, 20, 20]
    votes([client], request(number=1))
    assert [group.memory["pate-gan"].steps for group in groups] == [23, 23, 23]


def test_teachers_tell_real_rows_from_rows_of_independent_columns():
    (client,) = clients(900)
    real, labels = _records(GAME, groups_of(client, request(teachers=1))[0])
    fakes, fake_labels = codes(40, 5)
    mixed = np.concatenate([real[:40].numpy(), fakes])
    own = np.concatenate([labels[:40].numpy(), fake_labels])
    asked = request(count=80, teachers=1, queries=mixed.astype(np.int32), query_labels=own)
    for number in range(15):
        counts = votes([client], Request(**{**vars(asked), "round": number}))
    assert counts[:40, 1].mean() > counts[40:, 1].mean() + 0.4


def test_stacked_steps_are_those_of_torchs_adam():
    torch.manual_seed(0)
    fakes, fake_labels = (torch.from_numpy(part) for part in codes(50, 3))
    teachers, given = [], []
    for seed in (1, 2):
        own, labels = (torch.from_numpy(part) for part in codes(30, seed))
        rng = np.random.default_rng(seed)
        given.append(training_set(own.float(), labels, fakes.float(), fake_labels, 4, 8, rng))
        teachers.append(Teacher.new(GAME.discriminator, seed))
    teachers_trained = train(GAME, teachers, given, 1e-2)
    for teacher, own_set, after in zip(teachers, given, teachers_trained, strict=True):
        weights = gan.leaves(teacher.flat, GAME.discriminator.layers)
        adam = Adam(weights, 1e-2, betas=(0.5, 0.999))
        for real, fake in zip(own_set.real, own_set.fake, strict=True):
            one = GAME.discriminate(
                weights, GAME.dense(own_set.records[real]), own_set.labels[real]
            )
            two = GAME.discriminate(
                weights, GAME.dense(own_set.fakes[fake]), own_set.fake_labels[fake]
            )
            loss = torch.nn.functional.softplus(-one).mean()
            loss = loss + torch.nn.functional.softplus(two).mean()
            adam.step(torch.autograd.grad(loss, weights))
        torch.testing.assert_close(after.flat, gan.flatten(weights), rtol=1e-4, atol=1e-6)
        assert after.steps == 4


def test_generated_rows_have_the_classes_of_the_records_they_stand_against():
    own, _ = (torch.from_numpy(part) for part in codes(30, 1))
    fakes, fake_labels = (torch.from_numpy(part) for part in codes(50, 3))
    ones = torch.ones(30, dtype=torch.int64)
    own_set = training_set(own, ones, fakes, fake_labels, 5, 8, np.random.default_rng(0))
    assert (fake_labels[own_set.fake] == 1).all()
    # A class that was not generated is met by any row.
    none = training_set(own, ones, fakes, torch.zeros(50), 5, 8, np.random.default_rng(0))
    assert none.fake.shape == (5, 8)


@pytest.mark.parametrize(
    "broken",
    [
        {"queries": np.zeros((40, COLUMNS + 1))},
        {"fakes": np.zeros((0, COLUMNS))},
        {"fakes": np.zeros(COLUMNS)},
        {"fakes": np.full((200, COLUMNS), 1000)},
        {"queries": np.full((40, COLUMNS), -1)},
        {"queries": np.full((40, COLUMNS), np.nan)},
        {"query_labels": np.full(40, 2)},
        {"fake_labels": np.zeros(3, np.int64)},
        {"queries": np.zeros((41, COLUMNS)), "query_labels": np.zeros(41, np.int64)},
    ],
)
def test_rows_that_are_none_of_the_game_are_refused(broken):
    with pytest.raises(FederationError, match="pate-verdicts"):
        votes(clients(9), request(**broken))
