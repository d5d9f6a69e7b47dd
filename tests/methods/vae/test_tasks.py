import numpy as np
import pytest
import torch
from fedsynth.queries.owners import sites_of
from torch.func import grad

from fedsynth.data.tables import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import PrivacyError
from fedsynth.federation.client.answering import _clipped_sums, answer
from fedsynth.federation.request import Request
from fedsynth.methods.vae.records import Model
from fedsynth.methods.vae.tasks.gradient import GRADIENT, _draw, _gradient_rows
from fedsynth.methods.vae.tasks.local_training import TRAINING
from fedsynth.models import vae
from fedsynth.models.spec import VAESpec
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import DenseRows, clip_and_sum
from fedsynth.privacy.terms import Terms
from tests.methods.small import SCHEMA, owners, table

RECORD = Terms(unit="record", trust="central", clip=0.5, noise_multiplier=0.0)
CLIENT = Terms(unit="client", trust="central", clip=0.5, noise_multiplier=0.0)


def federation(tables, parts=1, latent=3):
    """Sites with an announced encoding and model."""
    layout = HistogramLayout.of(SCHEMA)
    positions = layout.positions(conform(table(200, seed=9), SCHEMA))
    noisy = np.bincount(positions.ravel(), minlength=layout.dim).astype(float)
    encoding = TableEncoding.from_histogram(SCHEMA, noisy, 0.0, bins=4)
    classes = 2 if parts == 1 else 0
    spec = VAESpec(
        kind="mlp", latent=latent, sizes=encoding.sizes[:-1], hidden=(6,), classes=classes
    )
    model = Model(spec, parts)
    sites = sites_of(tables, SCHEMA)
    for seed, site in enumerate(sites):
        site.coins = NoiseSource(seed)
        site.board.post("schema", SCHEMA.to_dict())
        site.board.post("encoding", encoding.to_dict())
        site.board.post("model", model.to_dict())
    return sites, model


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


def written_out(sites, model, asked):
    """Gradients of every record by automatic differentiation of the whole loss."""
    samples = [np.arange(site.records) for site in sites]
    drawn = _draw(range(len(sites)), sites, samples)
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
def test_each_site_sends_the_clipped_sum_of_its_records_gradients(parts, encoder):
    sites, model = federation(owners(5, 8), parts)
    asked = request(GRADIENT, model, RECORD, encoder)
    sums = _clipped_sums(GRADIENT, sites, asked, NoiseSource(0))
    sites, _ = federation(owners(5, 8), parts)  # the same coins again
    dense = written_out(sites, model, asked)
    if encoder == "frozen":
        dense = dense[:, model.parts * model.spec.encoder_dim :]
    for total, rows in zip(sums, np.split(dense, [5]), strict=True):
        wanted = clip_and_sum(DenseRows(rows), RECORD.clip)
        np.testing.assert_allclose(total, wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("task", "terms"), [(GRADIENT, RECORD), (TRAINING, CLIENT)])
def test_what_a_site_contributes_does_not_depend_on_who_is_simulated_beside_it(task, terms, parts):
    together, model = federation(owners(5, 8, 3), parts)
    asked = request(task, model, terms, "shared" if task is GRADIENT else "private")
    joint = _clipped_sums(task, together, asked, NoiseSource(0))
    for index in range(3):
        others, _ = federation(owners(5, 8, 3), parts)
        own = _clipped_sums(task, others[index : index + 1], asked, NoiseSource(0))[0]
        np.testing.assert_allclose(own, joint[index], rtol=1e-4, atol=1e-6)


def test_latent_draws_are_no_function_of_the_request():
    # Places in a sample shift when a record leaves it: draws that the server could predict would
    # move every later row.
    sites, model = federation(owners(6))
    asked = request(GRADIENT, model, RECORD)
    sites[0].coins = NoiseSource()
    first = _clipped_sums(GRADIENT, sites, asked, NoiseSource(0))
    second = _clipped_sums(GRADIENT, sites, asked, NoiseSource(0))
    assert not np.array_equal(first, second)


def test_a_private_encoder_moves_by_its_noisy_gradient_alone():
    sites, model = federation(owners(5))
    noisy = Terms(unit="record", trust="distributed", clip=0.5, noise_multiplier=100.0)
    asked = request(GRADIENT, model, noisy, "private")
    answer(sites, asked, NoiseSource(1))
    first = sites[0].state.load()
    sites, model = federation(owners(5))
    answer(sites, asked, NoiseSource(2))
    second = sites[0].state.load()
    size = model.spec.encoder_dim
    assert np.abs(first[:size] - second[:size]).max() > 0.01
    # 0.05 * 50 / 10 is the noise's share of a step; six deviations of a chi-square.
    step = (first[:size] - asked.arrays["phi"]) / (0.05 * 50 / 10)
    assert abs(np.mean(step**2) - 1) < 6 * np.sqrt(2 / size) + 0.05


def test_private_encoders_of_different_sites_part_ways():
    sites, model = federation(owners(5, 5))
    answer(sites, request(GRADIENT, model, RECORD, "private"), NoiseSource(0))
    assert not np.array_equal(sites[0].state.load(), sites[1].state.load())


@pytest.mark.parametrize("parts", [1, 2])
def test_local_training_is_one_epoch_of_gradient_descent(parts):
    sites, model = federation(owners(11), parts)
    asked = request(TRAINING, model, CLIENT, "private", batch_size=1000)
    moved = next(TRAINING.contribute(sites, [np.arange(11)], asked))[1].values[0]
    # One batch a part: a single step along the mean gradient, each part over its own records.
    # Latent draws differ from the gradient task's, so they are averaged out of the comparison.
    assert moved.shape == (parts * model.spec.decoder_dim,)
    assert np.isfinite(moved).all() and np.abs(moved).max() > 0
    phi = sites[0].state.load()
    assert phi.shape == (parts * model.spec.encoder_dim,)
    assert not np.array_equal(phi, asked.arrays["phi"])


def test_under_sep_no_class_gets_more_than_its_share_of_the_clip():
    frame = table(60)
    sites, model = federation({"a": frame}, parts=2)
    asked = request(TRAINING, model, CLIENT, "private", learning_rate=50.0, batch_size=2)
    moved = next(TRAINING.contribute(sites, [np.arange(60)], asked))[1].values[0]
    norms = np.linalg.norm(moved.reshape(2, -1), axis=1)
    assert (norms <= 0.5 / np.sqrt(2) * (1 + 1e-6)).all()
    assert norms.max() > 0.9 * 0.5 / np.sqrt(2)


def test_a_client_of_one_class_leaves_the_other_part_alone():
    frame = table(40)
    frame = frame[frame["outcome"] == "ill"]
    sites, model = federation({"a": frame}, parts=2)
    asked = request(TRAINING, model, CLIENT, "private")
    moved = next(TRAINING.contribute(sites, [np.arange(len(frame))], asked))[1].values[0]
    well, ill = moved.reshape(2, -1)
    assert np.count_nonzero(well) == 0
    assert np.count_nonzero(ill) > 0


def test_encoders_are_kept_from_round_to_round_at_the_client_level():
    sites, model = federation(owners(9))
    asked = request(TRAINING, model, CLIENT, "private")
    answer(sites, asked, NoiseSource(0))
    first = sites[0].state.load().copy()
    answer(sites, asked, NoiseSource(0))
    assert not np.array_equal(first, sites[0].state.load())


def test_tasks_refuse_the_other_unit():
    sites, model = federation(owners(3))
    with pytest.raises(PrivacyError, match="a row a record"):
        answer(sites, request(GRADIENT, model, CLIENT, "shared"), NoiseSource(0))
    with pytest.raises(PrivacyError, match="a row a client"):
        answer(sites, request(TRAINING, model, RECORD, "frozen"), NoiseSource(0))


def test_sites_with_an_empty_sample_and_sites_without_rows_contribute_nothing():
    tables = {**owners(6), "empty": table(1).iloc[:0]}
    sites, model = federation(tables)
    asked = request(GRADIENT, model, RECORD)
    samples = [np.zeros(0, np.int64)] * 2
    assert list(GRADIENT.contribute(sites, samples, asked)) == []
    asked = request(TRAINING, model, CLIENT, "private")
    rows = dict(TRAINING.contribute(sites, [np.arange(6), np.arange(0)], asked))
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
    sites, model = federation({"a": table(5000)})
    asked = request(GRADIENT, model, RECORD)
    drawn = _draw([0], sites, [np.arange(5000)])
    sizes = [len(rows) for _, rows in _gradient_rows(drawn, asked.arrays["phi"], asked, sites[0])]
    assert sum(sizes) == 5000
    assert max(sizes) <= 2048
