"""What clients answer: a gradient a record, or how far a discriminator moved at its client."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from scipy.stats import binom
from torch.nn import functional

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.view import View
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.gan.tasks import gradient, local_training
from fedsynth.methods.gan.tasks.gradient import GRADIENT
from fedsynth.methods.gan.tasks.local_training import TRAINING, Rules
from fedsynth.methods.training.batches import tensor
from fedsynth.models import gan
from fedsynth.models.adam import Adam
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.methods.gan.games import (
    CENTRE,
    CLIENT,
    CLIP,
    IMAGE,
    RECORD,
    TABLE,
    announcements,
    federation,
    game_on,
    initial,
    pictures,
    quadratic_game,
    request,
)
from tests.methods.small import SCHEMA, owners, sums, table, views

KINDS = {
    "plain": game_on(),
    "wasserstein": game_on(loss="wasserstein"),
    "classifier": game_on(classifier=True),
    "blurred": game_on(smoothing=0.3),
    "asks": game_on(asks=True),
    "everything": game_on(classifier=True, asks=True, smoothing=0.2, loss="wasserstein"),
    "images": game_on(IMAGE, classifier=True, smoothing=0.1),
    "quadratic": quadratic_game(),
    "quadratic with a classifier": quadratic_game(classifier=True),
}


def owned(game, *sizes):
    if game.cells.shape:
        return {f"site-{i}": pictures(size, i) for i, size in enumerate(sizes)}
    return owners(*sizes)


def dense(blocks, dim):
    """All rows that a task gave, written out, by client."""
    result = {}
    for index, rows in blocks:
        own = [rows.weighted_sum(np.eye(len(rows))[at]) for at in range(len(rows))]
        result.setdefault(index, []).extend(own)
    return {index: np.array(rows).reshape(-1, dim) for index, rows in result.items()}


def networks(game, flat):
    """Weights of discriminator and classifier that gradients may be asked of."""
    size = game.discriminator.dim
    known = gan.leaves(tensor(flat[:size]), game.discriminator.layers)
    if game.classifier is None:
        return known, []
    return known, gan.leaves(tensor(flat[size:]), game.classifier.layers)


def flat_of(weights):
    return weights[0].flatten() if len(weights) == 1 else gan.flatten(weights)


def written_out(game, flat, seen, clip):
    """Every record's row [records, dim], by automatic differentiation of its whole loss."""
    discriminator, classifier = networks(game, flat)
    share = clip / np.sqrt(2) if classifier else clip
    result = []
    for at in range(len(seen.cells)):
        if game.discriminator.kind == "quadratic":
            centre = torch.from_numpy(CENTRE[seen.classes[at]]).float()
            projected = discriminator[0] @ (seen.cells[at] - centre)
            verdict = (projected * torch.tensor([1.0, -1.0, 1.0, -1.0]) * projected).sum() / 2
        else:
            logits = game.discriminator.logits(discriminator, seen.blurred[at : at + 1])[0]
            verdict = logits[0]
            for label in seen.labels[at].reshape(-1).tolist():
                verdict = verdict + logits[1 + label]
        loss = functional.softplus(-verdict) if game.loss == "logistic" else -verdict
        parts = [flat_of(torch.autograd.grad(loss, discriminator))]
        if classifier:
            logits = game.classifier.logits(classifier, seen.cells[at : at + 1])
            loss = functional.cross_entropy(logits, seen.classes[at : at + 1])
            parts.append(flat_of(torch.autograd.grad(loss, classifier)))
        own = [part.double().numpy() for part in parts]
        result.append(np.concatenate([p * min(1.0, share / np.linalg.norm(p)) for p in own]))
    return np.array(result)


@pytest.mark.parametrize("kind", KINDS)
def test_each_records_row_is_the_clipped_gradient_of_its_own_written_out_loss(kind):
    game = KINDS[kind]
    asked = request(GRADIENT, game, RECORD)
    clients = federation(owned(game, 5, 4), game)
    samples = [np.array([3, 0]), np.array([1, 2, 3])]
    rows = dense(GRADIENT.contribute(views(clients), samples, asked), asked.dim)
    again = federation(owned(game, 5, 4), game)  # the same coins again
    for index, (client, sample) in enumerate(zip(again, samples, strict=True)):
        seen = game.seen(View(client, ""), sample, client.coins.generator())
        wanted = written_out(game, asked.arrays["weights"], seen, CLIP)
        np.testing.assert_allclose(rows[index], wanted, rtol=1e-3, atol=1e-5)


def test_networks_see_a_records_cells_its_class_and_one_of_its_cells():
    game = game_on(asks=True)
    (client,) = federation({"a": table(400)}, game)
    rows = np.arange(0, 400, 2)
    seen = game.seen(View(client, ""), rows, np.random.default_rng(0))
    frame = table(400).iloc[rows]
    assert seen.cells.shape == (200, TABLE.width)
    assert torch.equal(seen.blurred, seen.cells)
    assert seen.classes.tolist() == (frame["outcome"] == "ill").astype(int).tolist()
    starts = np.cumsum([0, *TABLE.columns])
    for start, stop in pairwise(starts):
        assert torch.equal(seen.cells[:, start:stop].sum(1), torch.ones(200))
    smoker = seen.cells[:, starts[3] : starts[4]].argmax(1).bool().numpy()
    assert (smoker == frame["smoker"].to_numpy()).all()
    assert torch.equal(seen.labels[:, 0], seen.classes)
    cells = seen.labels[:, 1] - 2
    assert (seen.cells.gather(1, cells[:, None]) == 1).all()


def test_the_column_that_stands_as_a_rows_condition_is_drawn_evenly():
    game = game_on(asks=True)
    (client,) = federation({"a": table(2000)}, game)
    cells = game.seen(View(client, ""), np.arange(2000), np.random.default_rng(1)).labels[:, 1] - 2
    columns = np.searchsorted(np.cumsum(TABLE.columns), cells.numpy(), side="right")
    low, high = binom.ppf([1e-9, 1 - 1e-9], 2000, 1 / len(TABLE.columns))
    counts = np.bincount(columns, minlength=len(TABLE.columns))
    assert (low <= counts).all() and (counts <= high).all()


def test_smoothing_blurs_what_the_discriminator_sees_and_nothing_else():
    game = game_on(smoothing=0.5, classifier=True)
    (client,) = federation({"a": table(400)}, game)
    seen = game.seen(View(client, ""), np.arange(400), np.random.default_rng(0))
    noise = (seen.blurred - seen.cells).numpy().ravel()
    assert torch.isin(seen.cells, torch.tensor([0.0, 1.0])).all()
    assert abs(noise.std() - 0.5) < 6 * 0.5 / np.sqrt(2 * len(noise))
    assert abs(noise.mean()) < 6 * 0.5 / np.sqrt(len(noise))


def test_secret_draws_of_records_come_from_whole_entropy(monkeypatch):
    # A torch generator keeps 32 bits of its seed: whoever sees its draws can search for it.
    def refused(self):
        raise AssertionError("a secret draw from a seed of 32 bits")

    monkeypatch.setattr(NoiseSource, "seed", refused)
    game = KINDS["everything"]
    torch.manual_seed(0)
    before = torch.get_rng_state()
    clients = federation(owners(5), game)
    list(GRADIENT.contribute(views(clients), [np.arange(5)], request(GRADIENT, game, RECORD)))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("kind", ["blurred", "asks"])
def test_secret_draws_are_no_function_of_the_request(kind):
    game = KINDS[kind]
    clients = federation(owners(30), game)
    clients[0].coins = NoiseSource()
    asked = request(GRADIENT, game, RECORD)
    first, second = (sums(GRADIENT, clients, asked) for _ in range(2))
    assert not np.array_equal(first, second)


HUGE = st.sampled_from([0.0, 1.0, -1e3, 1e10, -1e30, float("nan"), float("inf")])


@effort(max_examples=10, deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([0.0, 1.0, 1e4, 1e20, 1e38]),
    st.lists(st.tuples(st.integers(0, 10_000), HUGE), max_size=5),
    st.floats(1e-3, 1e3),
    st.integers(0, 30),
)
def test_no_record_moves_the_sum_beyond_the_clip(kind, scale, broken, clip, seed):
    game = KINDS[kind]
    terms = RECORD.__class__(unit="record", trust="central", clip=clip, noise_multiplier=0.0)
    seeing = [game.discriminator] + ([game.classifier] if game.classifier else [])
    with np.errstate(over="ignore"):
        weights = initial(seeing, scale)
    for place, value in broken:
        weights[place % len(weights)] = value
    one = pictures(1, seed) if game.cells.shape else table(1, seed)
    (total,) = sums(GRADIENT, federation({"a": one}, game), request(GRADIENT, game, terms, weights))
    assert np.isfinite(total).all()
    assert np.linalg.norm(total) <= clip * (1 + 1e-5)


@pytest.mark.parametrize("kind", ["plain", "classifier", "images", "quadratic with a classifier"])
def test_a_records_row_does_not_depend_on_other_records(kind):
    game = game_on(IMAGE, classifier=True) if kind == "images" else KINDS[kind]
    asked = request(GRADIENT, game, RECORD)
    (client,) = federation(owned(game, 9), game)
    together = dense(GRADIENT.contribute(views([client]), [np.arange(9)], asked), asked.dim)[0]
    for at in range(9):
        alone = dense(GRADIENT.contribute(views([client]), [np.array([at])], asked), asked.dim)[0]
        np.testing.assert_allclose(alone[0], together[at], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_client_sends_does_not_depend_on_who_is_simulated_beside_it(kind):
    game = KINDS[kind]
    asked = request(GRADIENT, game, RECORD)
    joint = sums(GRADIENT, federation(owned(game, 5, 8, 3), game), asked)
    for index in range(3):
        others = federation(owned(game, 5, 8, 3), game)
        own = sums(GRADIENT, others[index : index + 1], asked)[0]
        np.testing.assert_allclose(own, joint[index], rtol=1e-4, atol=1e-6)


def test_rows_come_in_pieces_of_bounded_size_that_are_the_same_rows(monkeypatch):
    game = KINDS["classifier"]
    asked = request(GRADIENT, game, RECORD)

    def row_gradients():
        return list(GRADIENT.contribute(views(federation(owners(20, 3, 9), game)), samples, asked))

    samples = [np.arange(20), np.arange(0), np.arange(9)]
    whole = dense(row_gradients(), asked.dim)
    monkeypatch.setattr(gradient, "_CHUNK", 7)
    pieces = row_gradients()
    assert max(len(rows) for _, rows in pieces) <= 7
    assert sorted(whole) == [0, 2]
    for index, rows in dense(pieces, asked.dim).items():
        np.testing.assert_allclose(rows, whole[index], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_sample_is_a_sum_of_zeros_of_the_right_length(kind):
    game = KINDS[kind]
    asked = request(GRADIENT, game, RECORD)
    empty = table(1)[:0] if not game.cells.shape else pictures(1).take(np.arange(0))
    clients = federation({"empty": empty, **owned(game, 2)}, game)
    assert list(GRADIENT.contribute(views(clients), [np.arange(0)] * 2, asked)) == []
    totals = sums(GRADIENT, clients[:1], asked)
    assert totals.shape == (1, asked.dim) and not totals.any()


def test_without_noise_the_released_sum_is_that_of_the_pooled_rows():
    game = KINDS["classifier"]
    parts = owners(5, 8, 3)
    pooled = {"all": pd.concat(list(parts.values()), ignore_index=True)}
    released = []
    for tables in (parts, pooled):
        budget = Budget(epsilon=float("inf"), trust="central")
        ledger = Ledger.create(Job(budget=budget, insecure=True))
        channel = Channel(LocalRuntime(federation(tables, game)), ledger, NoiseSource(0))
        for key, value in announcements(game).items():
            channel.announce(key, value)
        asked = request(GRADIENT, game, RECORD)
        collected = channel.sum(GRADIENT.name, RECORD, asked.dim, arrays=asked.arrays)
        released.append(collected.value)
    np.testing.assert_allclose(*released, rtol=1e-6, atol=1e-8)


def test_tasks_refuse_the_other_unit():
    game = KINDS["plain"]
    clients = federation(owners(3), game)
    with pytest.raises(PrivacyError, match="a row a record"):
        list(answer(clients, request(GRADIENT, game, CLIENT)))
    with pytest.raises(PrivacyError, match="a row a client"):
        list(answer(federation(owners(3), game), request(TRAINING, game, RECORD)))


LOCAL = {
    "uni": game_on(),
    "sep": game_on(parts=2),
    "asks": game_on(asks=True, smoothing=0.1),
    "wasserstein with a penalty": game_on(loss="wasserstein", penalty=2.0),
    "sep with a penalty": game_on(parts=2, penalty=1.0, smoothing=0.2),
    "images": game_on(IMAGE, penalty=0.5),
    "images, sep": game_on(IMAGE, parts=2, smoothing=0.1),
}


def plain_loop(game, weights, rows, asked):
    """A client's training of one discriminator as it would be written for one client alone."""
    settings = asked.settings
    own = gan.leaves(weights, game.discriminator.layers)
    adam = Adam(own, settings["learning_rate"], betas=(0.5, 0.999))

    def verdict(cells, labels):
        logits = game.discriminator.logits(own, cells)
        total = logits[:, 0]
        if labels is not None:
            for column in labels.reshape(len(labels), -1).T:
                total = total + logits.gather(1, 1 + column[:, None])[:, 0]
        return total

    for step in range(settings["steps"]):
        at = slice(step * settings["batch_size"], (step + 1) * settings["batch_size"])
        labels = None if rows.labels is None else rows.labels[at]
        given = None if rows.asked is None else rows.asked[at]
        real, fake = verdict(rows.real[at], labels), verdict(rows.fakes[at], given)
        if game.loss == "logistic":
            loss = functional.softplus(-real).mean() + functional.softplus(fake).mean()
        else:
            loss = fake.mean() - real.mean()
        if game.penalty:
            cells = rows.fakes[at].clone().requires_grad_()
            (slopes,) = torch.autograd.grad(verdict(cells, given).sum(), cells, create_graph=True)
            excess = (slopes.norm(dim=1) - 1).clamp(min=0)
            loss = loss + game.penalty * excess.square().mean()
        if "proximal" in settings:
            flat = torch.cat([weight.flatten() for weight in own])
            begun = torch.cat([w.flatten() for w in gan.leaves(weights, game.discriminator.layers)])
            loss = loss + settings["proximal"] / 2 * (flat - begun.detach()).square().sum()
        adam.step(torch.autograd.grad(loss, own))
    return gan.flatten(own)


@pytest.mark.parametrize("kind", LOCAL)
def test_local_training_is_a_plain_loop_for_each_client_and_class(kind):
    game = LOCAL[kind]
    # Of one kind with FedProx's term, too.
    near = {"proximal": 5.0} if kind == next(iter(LOCAL)) else {}
    asked = request(TRAINING, game, CLIENT, **near)
    clients = federation(owned(game, 7, 30, 12), game)
    # Before the door clips a client's whole row.
    moved = local_training._update(views(clients), Rules.of(View(clients[0], ""), asked))
    again = federation(owned(game, 7, 30, 12), game)  # the same coins again
    size, flat = game.discriminator.dim, tensor(asked.arrays["weights"])
    for index, client in enumerate(again):
        view = View(client, "")
        for part, rows in local_training._local_rows(view, Rules.of(view, asked)):
            at = slice(part * size, (part + 1) * size)
            wanted = plain_loop(game, flat[at], rows, asked) - flat[at]
            np.testing.assert_allclose(moved[index, at], wanted.numpy(), atol=2e-5)
            assert np.abs(moved[index, at]).max() > 1e-3


@pytest.mark.parametrize("kind", ["uni", "sep", "asks", "images", "images, sep"])
def test_a_clients_way_does_not_depend_on_who_is_simulated_beside_it(kind, monkeypatch):
    game = LOCAL[kind]
    asked = request(TRAINING, game, CLIENT)
    joint = sums(TRAINING, federation(owned(game, 5, 8, 3), game), asked)
    for index in range(3):
        others = federation(owned(game, 5, 8, 3), game)
        own = sums(TRAINING, others[index : index + 1], asked)[0]
        np.testing.assert_allclose(own, joint[index], atol=1e-5)
    # Nor on how many are simulated at once.
    monkeypatch.setattr(local_training, "_FLOATS", 1)
    apart = sums(TRAINING, federation(owned(game, 5, 8, 3), game), asked)
    np.testing.assert_allclose(apart, joint, atol=1e-5)


def test_a_clients_rows_are_gone_through_again_where_a_round_wants_more_than_it_has():
    game = game_on()
    (client,) = federation(owners(5), game)
    rules = Rules.of(View(client, ""), request(TRAINING, game, CLIENT, steps=3, batch_size=4))
    ((_, rows),) = local_training._local_rows(View(client, ""), rules)
    known = game.seen(View(client, ""), np.arange(5), np.random.default_rng(0))
    cells = [tuple(row) for row in known.cells.tolist()]
    assert len(set(cells)) == 5
    places = [cells.index(tuple(row)) for row in rows.real.tolist()]
    for start in (0, 5):
        assert sorted(places[start : start + 5]) == list(range(5))
    assert len(places) == 12 and len(set(places[10:])) == 2
    assert rows.labels.tolist() == known.classes[places].tolist()


def test_under_sep_a_discriminator_sees_rows_of_its_class_alone_and_no_label():
    game = game_on(parts=2)
    (client,) = federation(owners(30), game)
    view = View(client, "")
    known = game.seen(view, np.arange(30), np.random.default_rng(0))
    local_rows = dict(
        local_training._local_rows(view, Rules.of(view, request(TRAINING, game, CLIENT)))
    )
    assert sorted(local_rows) == [0, 1]
    for part, rows in local_rows.items():
        allowed = {tuple(row) for row in known.cells[known.classes == part].tolist()}
        assert {tuple(row) for row in rows.real.tolist()} <= allowed
        assert rows.labels is None and rows.asked is None


def test_generated_rows_are_asked_for_by_released_shares_and_not_by_a_clients_own():
    game = game_on()
    ill = table(60)
    (client,) = federation({"a": ill[ill["outcome"] == "ill"]}, game)
    rules = Rules.of(View(client, ""), request(TRAINING, game, CLIENT, steps=50, batch_size=40))
    ((_, rows),) = local_training._local_rows(View(client, ""), rules)
    assert (rows.labels == 1).all()
    low, high = binom.ppf([1e-9, 1 - 1e-9], 2000, 0.3)
    assert low <= int((rows.asked == 1).sum()) <= high


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("rate", [1e-2, 1e2, 1e30])
@pytest.mark.parametrize("scale", [1.0, 1e20])
def test_no_client_moves_the_sum_beyond_the_clip(parts, rate, scale):
    game = game_on(parts=parts, loss="wasserstein", penalty=1.0)
    weights = initial([game.discriminator] * parts, scale)
    asked = request(TRAINING, game, CLIENT, weights, learning_rate=rate)
    totals = sums(TRAINING, federation(owners(20, 3), game), asked)
    assert np.isfinite(totals).all()
    assert (np.linalg.norm(totals, axis=1) <= CLIP * (1 + 1e-5)).all()
    each = np.linalg.norm(totals.reshape(2, parts, -1), axis=2)
    assert (each <= CLIP / np.sqrt(parts) * (1 + 1e-5)).all()
    if rate == 1e2 and scale == 1:
        assert (each >= CLIP / np.sqrt(parts) * 0.99).all()


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_weights_that_are_no_numbers_move_no_client_beyond_the_clip(broken):
    game = game_on(parts=2)
    weights = initial([game.discriminator] * 2)
    weights[3] = broken
    asked = request(TRAINING, game, CLIENT, weights)
    totals = sums(TRAINING, federation(owners(20), game), asked)
    assert np.isfinite(totals).all()
    assert np.linalg.norm(totals) <= CLIP * (1 + 1e-5)
    # The other class's part is none the worse for it.
    assert np.abs(totals[0, game.discriminator.dim :]).max() > 1e-3


@pytest.mark.parametrize("kind", ["uni", "sep", "images", "images, sep"])
def test_a_client_without_rows_moves_nothing(kind):
    game = LOCAL[kind]
    empty = pictures(1).take(np.arange(0)) if game.cells.shape else table(1)[:0]
    clients = federation({"empty": empty, **owned(game, 6)}, game)
    totals = sums(TRAINING, clients, request(TRAINING, game, CLIENT))
    assert not totals[0].any() and totals[1].any()
    alone = sums(TRAINING, clients[:1], request(TRAINING, game, CLIENT))
    assert alone.shape == totals[:1].shape and not alone.any()


def test_a_client_that_lacks_a_class_leaves_its_discriminator_alone():
    game, frame = game_on(parts=2), table(40)
    clients = federation({"a": frame[frame["outcome"] == "ill"]}, game)
    totals = sums(TRAINING, clients, request(TRAINING, game, CLIENT))
    well, ill = totals[0].reshape(2, -1)
    assert not well.any() and ill.any()


def test_games_survive_being_announced():
    for game in (*KINDS.values(), *LOCAL.values()):
        assert type(game).from_dict(game.to_dict()) == game


def test_the_schemas_target_is_no_cell_of_a_game_with_classes():
    assert len(TABLE.columns) == len(SCHEMA.modelled) - 1
