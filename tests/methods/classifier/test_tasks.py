"""What leaves a client in a round of a classifier's training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.request import Request
from fedsynth.methods.classifier.features import Features, cuts_by_bounds
from fedsynth.methods.classifier.records import Model
from fedsynth.methods.classifier.tasks.gradient import GRADIENT
from fedsynth.methods.classifier.tasks.local_training import TRAINING
from fedsynth.models.classifier import Network
from fedsynth.models.vae import unflatten
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.terms import Terms
from tests.methods.small import SCHEMA, owners, sums
from tests.methods.small import federation as clients_of

RECORD = Terms(unit="record", trust="central", clip=0.5, noise_multiplier=0.0)
CLIENT = Terms(unit="client", trust="central", clip=0.5, noise_multiplier=0.0)


def federation(tables, hidden=()):
    features = Features(SCHEMA, cuts_by_bounds(SCHEMA))
    model = Model(features, Network(features.width, hidden, 2))
    return clients_of(tables, classifier=model.to_dict()), model


def request(task, model, terms, **settings):
    weights = torch.randn(model.network.dim, generator=torch.Generator().manual_seed(1)) / 3
    known = {"learning_rate": 0.1, "weight_decay": 0.1, "batch_size": 4, "local_epochs": 1}
    return Request(
        task.name,
        terms,
        dim=len(weights),
        arrays={"weights": weights.numpy()},
        settings={**known, **settings},
    )


def gradients_of(client, model, weights):
    """Of each record's cross-entropy, by automatic differentiation of the written-out loss."""
    x = torch.from_numpy(model.features.vectors(client.data))
    y = torch.from_numpy(model.features.labels(client.data))

    def loss(flat, row, label):
        *pairs, last = zip(*[iter(unflatten(flat, model.network.layers))] * 2, strict=True)
        for matrix, bias in pairs:
            row = torch.tanh(matrix @ row + bias)
        logits = last[0] @ row + last[1]
        return torch.logsumexp(logits, 0) - logits[label]

    flat = torch.from_numpy(weights).requires_grad_()
    losses = [loss(flat, x[i], y[i]) for i in range(len(x))]
    return np.array([torch.autograd.grad(one, flat)[0].numpy() for one in losses])


@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)])
@pytest.mark.parametrize("clip", [0.5, 100.0])
def test_each_client_sends_the_clipped_sum_of_its_records_gradients(hidden, clip):
    clients, model = federation(owners(5, 0, 8), hidden)
    asked = request(GRADIENT, model, replace(RECORD, clip=clip))
    for total, client in zip(sums(GRADIENT, clients, asked), clients, strict=True):
        dense = gradients_of(client, model, asked.arrays["weights"]).reshape(-1, asked.dim)
        wanted = clip_and_sum(DenseRows(dense), clip)
        np.testing.assert_allclose(total, wanted, rtol=1e-4, atol=1e-6)


def test_no_record_moves_a_sum_by_more_than_the_clip():
    clients, model = federation(owners(*[1] * 30), (5,))
    asked = request(GRADIENT, model, replace(RECORD, clip=0.05))
    norms = np.linalg.norm(sums(GRADIENT, clients, asked), axis=1)
    assert norms.max() <= 0.05
    # They fill it: none of these is shorter of itself.
    np.testing.assert_allclose(norms, 0.05, rtol=1e-5)


@pytest.mark.parametrize(("task", "terms"), [(GRADIENT, RECORD), (TRAINING, CLIENT)])
def test_a_contribution_does_not_depend_on_who_is_simulated_beside_it(task, terms, monkeypatch):
    monkeypatch.setattr(Model, "chunk", 4)
    together, model = federation(owners(5, 8, 3), (4,))
    asked = request(task, model, terms)
    joint = sums(task, together, asked)
    for index in range(3):
        others, _ = federation(owners(5, 8, 3), (4,))
        own = sums(task, others[index : index + 1], asked)[0]
        np.testing.assert_allclose(own, joint[index], rtol=1e-4, atol=1e-6)


def test_one_local_step_moves_against_the_mean_gradient_and_the_penalty():
    clients, model = federation(owners(7, 0), (3,))
    terms = replace(CLIENT, clip=100.0)
    asked = request(TRAINING, model, terms, batch_size=7, weight_decay=0.5)
    moved, still = sums(TRAINING, clients, asked)
    weights = asked.arrays["weights"]
    penalty = 0.5 * weights * model.network.decayed.numpy()
    mean = gradients_of(clients[0], model, weights).mean(0)
    np.testing.assert_allclose(moved, -0.1 * (mean + penalty), rtol=1e-3, atol=1e-6)
    # Who has no records has nothing to say.
    np.testing.assert_array_equal(still, 0)


def test_a_client_is_held_near_the_rounds_weights_by_the_squared_distance_to_them():
    """A step of all records, from where the first led: of FedProx it is back by rate times weight
    of how far that was."""
    moved = {}
    for epochs, proximal in ((1, 3.0), (2, 0.0), (2, 3.0)):
        clients, model = federation(owners(7), (3,))
        told = {"batch_size": 7, "local_epochs": epochs, "proximal": proximal, "weight_decay": 0.0}
        asked = request(TRAINING, model, replace(CLIENT, clip=100.0), **told)
        (moved[epochs, proximal],) = sums(TRAINING, clients, asked)
    wanted = moved[2, 0.0] - 0.1 * 3.0 * moved[1, 3.0]
    np.testing.assert_allclose(moved[2, 3.0], wanted, atol=1e-6)


def test_more_epochs_and_smaller_batches_move_further():
    norms = []
    for epochs, batch in ((1, 20), (1, 5), (3, 5)):
        clients, model = federation(owners(20))
        asked = request(TRAINING, model, replace(CLIENT, clip=100.0),
                        local_epochs=epochs, batch_size=batch)  # fmt: skip
        norms.append(np.linalg.norm(sums(TRAINING, clients, asked)))
    assert norms == sorted(norms)
    assert norms[2] > 2 * norms[0]


@pytest.mark.parametrize(("task", "terms"), [(GRADIENT, CLIENT), (TRAINING, RECORD)])
def test_a_task_refuses_the_other_unit(task, terms):
    clients, model = federation(owners(3))
    with pytest.raises(PrivacyError, match=task.name):
        list(answer(clients, request(task, model, terms)))
