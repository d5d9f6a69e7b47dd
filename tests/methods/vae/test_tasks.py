from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import grad

from fedsynth.data.tables import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.joining import pieces
from fedsynth.federation.request import Request
from fedsynth.methods.vae.records import Model
from fedsynth.methods.vae.tasks.gradient import GRADIENT, _draw, _gradient_rows
from fedsynth.methods.vae.tasks.local_training import TRAINING
from fedsynth.models import vae
from fedsynth.models.spec import VAESpec
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.terms import Terms
from tests.methods.small import SCHEMA, owners, sums, table, views
from tests.methods.small import federation as clients_of

RECORD = Terms(unit="record", trust="central", clip=0.5, noise_multiplier=0.0)
CLIENT = Terms(unit="client", trust="central", clip=0.5, noise_multiplier=0.0)


def federation(tables, parts=1, latent=3):
    """Clients with an announced encoding and model."""
    layout = HistogramLayout.of(SCHEMA)
    positions = layout.positions(conform(table(200, seed=9), SCHEMA))
    noisy = np.bincount(positions.ravel(), minlength=layout.dim).astype(float)
    encoding = TableEncoding.from_histogram(SCHEMA, noisy, 0.0, bins=4)
    classes = 2 if parts == 1 else 0
    spec = VAESpec(
        kind="mlp", latent=latent, sizes=encoding.sizes[:-1], hidden=(6,), classes=classes
    )
    model = Model(spec, parts)
    return clients_of(tables, encoding=encoding.to_dict(), model=model.to_dict()), model


def vector(client):
    """What a client keeps of the job of :func:`request` from round to round."""
    return client.memory("").vector.load()


def request(task, model, terms, encoder="shared", **settings):
    generator = torch.Generator().manual_seed(0)
    phi, theta = vae.initial(model.spec, generator)
    phi, theta = phi.repeat(model.parts).numpy(), theta.repeat(model.parts).numpy()
    width = len(theta) + (len(phi) if encoder == "shared" else 0)
    return Request(
        task.name,
        terms,
        dim=width,
        kept=len(phi) if encoder == "private" and terms.unit == "record" else 0,
        arrays={"phi": phi, "theta": theta},
        settings={
            "encoder": encoder,
            "learning_rate": 0.05,
            "batch_size": 4,
            "expected": 10.0,
            **settings,
        },
    )


def written_out(clients, model, asked):
    """Gradients of every record by automatic differentiation of the whole loss."""
    samples = [np.arange(client.records) for client in clients]
    drawn = _draw(range(len(clients)), views(clients), samples, model)
    phi, theta = (torch.from_numpy(asked.arrays[name]) for name in ("phi", "theta"))
    E, D = model.spec.encoder_dim, model.spec.decoder_dim
    rows = []
    for i in range(len(drawn.owner)):
        part = int(drawn.y[i]) if model.parts > 1 else 0

        def loss(phi, theta, i=i, part=part):
            y = drawn.y[i : i + 1] if model.spec.classes else None
            return vae.loss(
                model.spec,
                phi[part * E : (part + 1) * E],
                theta[part * D : (part + 1) * D],
                drawn.x[i : i + 1],
                y,
                drawn.noise[i : i + 1],
            ).sum()

        rows.append(torch.cat(grad(loss, argnums=(0, 1))(phi, theta)).numpy())
    return np.array(rows)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("encoder", ["shared", "frozen", "private"])
def test_each_client_sends_the_clipped_sum_of_its_records_gradients(parts, encoder):
    clients, model = federation(owners(5, 8), parts)
    asked = request(GRADIENT, model, RECORD, encoder)
    totals = sums(GRADIENT, clients, asked)
    clients, _ = federation(owners(5, 8), parts)  # the same coins again
    dense = written_out(clients, model, asked)
    if encoder == "frozen":
        dense = dense[:, model.parts * model.spec.encoder_dim :]
    for total, rows in zip(totals, np.split(dense, [5]), strict=True):
        wanted = clip_and_sum(DenseRows(rows), RECORD.clip)
        np.testing.assert_allclose(total, wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("task", "terms"), [(GRADIENT, RECORD), (TRAINING, CLIENT)])
def test_a_contribution_does_not_depend_on_who_is_simulated_beside_it(task, terms, parts):
    together, model = federation(owners(5, 8, 3), parts)
    asked = request(task, model, terms, "shared" if task is GRADIENT else "private")
    joint = sums(task, together, asked)
    for index in range(3):
        others, _ = federation(owners(5, 8, 3), parts)
        own = sums(task, others[index : index + 1], asked)[0]
        np.testing.assert_allclose(own, joint[index], rtol=1e-4, atol=1e-6)


def test_latent_draws_are_no_function_of_the_request():
    # Places in a sample shift when a record leaves it: draws that the server could predict would
    # move every later row.
    clients, model = federation(owners(6))
    asked = request(GRADIENT, model, RECORD)
    clients[0].coins = NoiseSource()
    first = sums(GRADIENT, clients, asked)
    second = sums(GRADIENT, clients, asked)
    assert not np.array_equal(first, second)


def test_a_private_encoder_moves_by_its_noisy_gradient_alone():
    clients, model = federation(owners(5))
    noisy = Terms(unit="record", trust="distributed", clip=0.5, noise_multiplier=100.0)
    asked = request(GRADIENT, model, noisy, "private")
    clients[0].coins = NoiseSource(1)
    list(answer(clients, asked))
    first = vector(clients[0])
    clients, model = federation(owners(5))
    clients[0].coins = NoiseSource(2)
    list(answer(clients, asked))
    second = vector(clients[0])
    size = model.spec.encoder_dim
    assert np.abs(first[:size] - second[:size]).max() > 0.01
    # 0.05 * 50 / 10 is the noise's share of a step; six deviations of a chi-square.
    step = (first[:size] - asked.arrays["phi"]) / (0.05 * 50 / 10)
    assert abs(np.mean(step**2) - 1) < 6 * np.sqrt(2 / size) + 0.05


def test_private_encoders_of_different_clients_part_ways():
    clients, model = federation(owners(5, 5))
    list(answer(clients, request(GRADIENT, model, RECORD, "private")))
    assert not np.array_equal(vector(clients[0]), vector(clients[1]))


@pytest.mark.parametrize("parts", [1, 2])
def test_local_training_is_one_epoch_of_gradient_descent(parts):
    clients, model = federation(owners(11), parts)
    asked = request(TRAINING, model, CLIENT, "private", batch_size=1000)
    moved = next(TRAINING.contribute(views(clients), [np.arange(11)], asked))[1].values[0]
    # One batch a part: a single step along the mean gradient, each part over its own records.
    # Latent draws differ from the gradient task's, so they are averaged out of the comparison.
    assert moved.shape == (parts * model.spec.decoder_dim,)
    assert np.isfinite(moved).all() and np.abs(moved).max() > 0
    phi = vector(clients[0])
    assert phi.shape == (parts * model.spec.encoder_dim,)
    assert not np.array_equal(phi, asked.arrays["phi"])


def test_under_sep_no_class_gets_more_than_its_share_of_the_clip():
    frame = table(60)
    clients, model = federation({"a": frame}, parts=2)
    asked = request(TRAINING, model, CLIENT, "private", learning_rate=50.0, batch_size=2)
    moved = next(TRAINING.contribute(views(clients), [np.arange(60)], asked))[1].values[0]
    norms = np.linalg.norm(moved.reshape(2, -1), axis=1)
    assert (norms <= 0.5 / np.sqrt(2) * (1 + 1e-6)).all()
    assert norms.max() > 0.9 * 0.5 / np.sqrt(2)


def test_a_client_of_one_class_leaves_the_other_part_alone():
    frame = table(40)
    frame = frame[frame["outcome"] == "ill"]
    clients, model = federation({"a": frame}, parts=2)
    asked = request(TRAINING, model, CLIENT, "private")
    moved = next(TRAINING.contribute(views(clients), [np.arange(len(frame))], asked))[1].values[0]
    well, ill = moved.reshape(2, -1)
    assert np.count_nonzero(well) == 0
    assert np.count_nonzero(ill) > 0


def test_encoders_are_kept_from_round_to_round_at_the_client_level():
    clients, model = federation(owners(9))
    asked = request(TRAINING, model, CLIENT, "private")
    list(answer(clients, asked))
    first = vector(clients[0]).copy()
    list(answer(clients, replace(asked, round=1)))
    assert not np.array_equal(first, vector(clients[0]))


@pytest.mark.parametrize("parts", [1, 2])
def test_a_shared_encoder_moves_with_its_decoder_and_nothing_of_it_stays(parts):
    def moved(encoder, **settings):
        clients, model = federation(owners(12), parts)
        asked = request(TRAINING, model, CLIENT, encoder, batch_size=4, **settings)
        (_, rows), *_ = TRAINING.contribute(views(clients), [np.arange(12)], asked)
        kept = vector(clients[0])
        return rows.values[0], kept, model.parts * model.spec.encoder_dim, asked.arrays["phi"]

    # A rate so small that no clip is reached: a client's first round is the same either way.
    both, nothing, size, begun = moved("shared", learning_rate=1e-4)
    alone, kept, *_ = moved("private", learning_rate=1e-4)
    assert nothing is None and len(both) == size + len(alone)
    np.testing.assert_array_equal(both[size:], alone)
    np.testing.assert_allclose(both[:size], kept - begun, atol=1e-7)
    assert np.abs(both[:size]).max() > 0

    far, *_ = moved("shared", learning_rate=50.0)
    if parts > 1:
        encoders, decoders = far[:size].reshape(parts, -1), far[size:].reshape(parts, -1)
        norms = np.linalg.norm(np.concatenate([encoders, decoders], 1), axis=1)
        assert (norms <= 0.5 / np.sqrt(parts) * (1 + 1e-6)).all()
        assert norms.min() > 0.9 * 0.5 / np.sqrt(parts)


def test_tasks_refuse_the_other_unit():
    clients, model = federation(owners(3))
    with pytest.raises(PrivacyError, match="a row a record"):
        list(answer(clients, request(GRADIENT, model, CLIENT, "shared")))
    with pytest.raises(PrivacyError, match="a row a client"):
        list(answer(federation(owners(3))[0], request(TRAINING, model, RECORD, "frozen")))


def test_clients_with_an_empty_sample_and_clients_without_rows_contribute_nothing():
    tables = {**owners(6), "empty": table(1).iloc[:0]}
    clients, model = federation(tables)
    asked = request(GRADIENT, model, RECORD)
    samples = [np.zeros(0, np.int64)] * 2
    assert list(GRADIENT.contribute(views(clients), samples, asked)) == []
    asked = request(TRAINING, model, CLIENT, "private")
    rows = dict(TRAINING.contribute(views(clients), [np.arange(6), np.arange(0)], asked))
    assert np.count_nonzero(rows[1].values) == 0


def test_factored_rows_reach_every_weight_exactly_once():
    for parts in (1, 2, 5):
        model = Model(VAESpec(kind="mlp", latent=2, sizes=(3, 4), hidden=(5,)), parts)
        for frozen in (False, True):
            taken = np.zeros(model.blocks(0, frozen)[1], int)
            for part in range(parts):
                starts, width = model.blocks(part, frozen)
                layers = model.spec.decoder_layers
                if not frozen:
                    layers = (*model.spec.encoder_layers, *layers)
                assert width == len(taken)
                for start, layer in zip(starts, layers, strict=True):
                    taken[start : start + layer.size] += 1
            assert (taken == 1).all()


def test_rows_of_a_long_sample_come_in_pieces_of_bounded_size():
    clients, model = federation({"a": table(5000)})
    asked = request(GRADIENT, model, RECORD)
    drawn = _draw([0], views(clients), [np.arange(5000)], model)
    cuts = pieces(views(clients), [np.arange(5000)], asked, model.chunk)
    given = _gradient_rows(drawn, cuts, asked.arrays["phi"], asked, model)
    sizes = [len(rows) for _, rows in given]
    assert sum(sizes) == 5000
    assert max(sizes) <= 2048
