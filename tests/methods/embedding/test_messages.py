"""The mean embedding's message: exact without noise, a client's, and what it says of classes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedsynth.data.images import Images
from fedsynth.federation.request import Request
from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.messages import Sums, announcement, ask, embedding_terms, length
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.methods.embedding.targets import targets_of
from fedsynth.methods.embedding.tasks import BOARD, EMBEDDING
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, ImageSchema
from tests.methods.small import SCHEMA, channel_to, owners, sums
from tests.methods.small import federation as clients_of

DIGITS = ImageSchema(shape=[10, 10], target=Categorical(name="digit", values=[0, 1, 2]))
SMALL = {"random_features": 40, "patch_features": 20, "components": 6}


def images(rows, seed=0, classes=3):
    """Images whose left or upper or whole is bright, by class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    pixels = rng.integers(0, 60, (rows, 10, 10))
    pixels[labels == 0, :, :5] += 150
    pixels[labels == 1, :5, :] += 150
    pixels[labels == 2] += 100
    return Images(pixels.astype(np.uint8), labels.astype(np.int64))


OWNERS = {
    "images": (
        DIGITS,
        {"a": images(40), "b": images(1300, 1, classes=2), "c": images(0), "d": images(1)},
    ),
    "table": (SCHEMA, {**owners(60, 1, 700), "empty": owners(1)["site-0"].iloc[:0]}),
}


def federation(kind, unit="record", **overrides):
    schema, owned = OWNERS[kind]
    budget = Budget(epsilon=math.inf, unit=unit, trust="central", units=len(owned))
    settings = MeanEmbeddingSettings(**{**SMALL, **overrides}).resolved(budget, schema)
    made = Embedding(schema, settings)
    clients = clients_of(owned, schema, **{BOARD: announcement(made)})
    channel = channel_to(owned, budget, schema)
    return made, clients, channel, embedding_terms(made, budget, 0.0, 1)


def by_hand(made, client):
    """Sums of a client's features, [classes, own] and [shared], record by record."""
    coding, rows = made.coding, np.arange(client.records)
    own, shared = made.rows(coding.coordinates(client.data, rows))
    classes = coding.classes_of(client.data, rows)
    blocks = np.zeros((made.schema.classes, made.own))
    np.add.at(blocks, classes, own)
    return blocks, shared.sum(axis=0)


@pytest.mark.parametrize("kind", OWNERS)
def test_without_noise_the_release_is_the_sum_over_all_records(kind):
    made, clients, channel, terms = federation(kind)
    released = ask(channel, made, terms)
    parts = [by_hand(made, client) for client in clients]
    np.testing.assert_allclose(released.own, sum(part[0] for part in parts), atol=1e-9)
    np.testing.assert_allclose(released.shared, sum(part[1] for part in parts), atol=1e-9)
    assert released.sigma == 0
    assert len(channel.ledger.events) == 1


@pytest.mark.parametrize("kind", OWNERS)
def test_at_the_client_level_everybody_sends_the_mean_of_its_records(kind):
    made, clients, channel, terms = federation(kind, "client", clip=1.0)
    released = ask(channel, made, terms)
    parts = [by_hand(made, client) for client in clients]
    means = sum(
        part[0] / max(1, client.records) for part, client in zip(parts, clients, strict=True)
    )
    np.testing.assert_allclose(released.own, means, atol=1e-9)


def test_a_client_of_one_class_is_clipped_to_what_a_client_of_all_classes_sends():
    made, clients, _, terms = federation("images", "client")
    assert made.settings.clip == pytest.approx(1 / math.sqrt(3))
    request = Request(EMBEDDING.name, terms, length(made))
    norms = np.linalg.norm(sums(EMBEDDING, clients, request), axis=1)
    assert (norms <= made.settings.clip * (1 + 1e-5)).all()
    assert norms[3] == pytest.approx(made.settings.clip, rel=1e-4)
    assert norms[2] == 0


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("kind", OWNERS)
def test_a_contribution_does_not_depend_on_who_is_simulated_beside_it(kind, unit):
    made, clients, _, terms = federation(kind, unit)
    request = Request(EMBEDDING.name, terms, length(made))
    together = sums(EMBEDDING, clients, request)
    for client, total in zip(clients, together, strict=True):
        alone = sums(EMBEDDING, [client], request)
        np.testing.assert_array_equal(alone[0], total)


def test_counts_means_and_gaussians_come_out_of_exact_sums():
    made, _, channel, terms = federation("images", upright=False)
    targets = targets_of(made, ask(channel, made, terms))
    owned = OWNERS["images"][1].values()
    labels = np.concatenate([one.labels for one in owned])
    pixels = np.concatenate([one.pixels for one in owned]).reshape(len(labels), -1) / 255
    np.testing.assert_allclose(
        targets.frequencies, np.bincount(labels, minlength=3) / len(labels), atol=1e-9
    )
    few = pixels.astype(np.float32).astype(np.float64) @ made.projection.matrix
    unit = few / np.sqrt((few**2).sum(axis=1, keepdims=True) + made.floor)
    for one in range(3):
        own = unit[labels == one]
        np.testing.assert_allclose(targets.means[one], own.mean(axis=0), atol=1e-8)
        covariance = targets.roots[one] @ targets.roots[one].T
        np.testing.assert_allclose(covariance, np.cov(own.T, bias=True), atol=1e-8)


def test_noise_on_a_covariance_makes_no_directions_to_vary_in():
    made, _, channel, terms = federation("images", components=30, upright=False)
    exact = ask(channel, made, terms)
    count = exact.own[0, 0] / made.settings.constant_share / math.sqrt(made.shares[0])
    sigma = 0.02 * count
    noise = np.random.default_rng(0).standard_normal(exact.own.shape) * sigma
    noisy = targets_of(made, Sums(exact.own + noise, exact.shared, sigma))
    assert np.linalg.matrix_rank(noisy.roots[0]) <= 7
    assert np.linalg.matrix_rank(targets_of(made, exact).roots[0]) == made.components == 30


def test_a_class_below_the_noise_is_drawn_like_all_classes_together():
    made, _, channel, terms = federation("images")
    exact = ask(channel, made, terms)
    own = exact.own.copy()
    # A count of 2 deviations of the noise in it.
    own[2] = 0.0
    own[2, 0] = 2 * 0.01
    alone = targets_of(made, Sums(own, exact.shared, 0.01))
    pooled = own.sum(axis=0)[made.moments :] / (own[:, 0].sum() / own[0, 0])
    count = own[0, 0] / made.settings.constant_share / math.sqrt(made.shares[0])
    expected = pooled / count / math.sqrt(made.shares[1])
    np.testing.assert_allclose(alone.fourier[2], expected, rtol=1e-9)
    assert alone.frequencies[2] < 0.01
    nothing = targets_of(made, Sums(np.zeros_like(own), exact.shared * 0, 0.0))
    assert np.isfinite(nothing.fourier).all()
    assert np.isfinite(nothing.roots).all()
    assert nothing.frequencies.sum() == pytest.approx(1.0)
