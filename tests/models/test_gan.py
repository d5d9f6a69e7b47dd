"""Generators and scorers: gradients by factors, records within their cells, weights and vectors."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.models.vae import unflatten

TABLE = Cells(columns=(0, 3, 2, 1, 0))
IMAGE = Cells(shape=(16, 16))
SCORERS = [
    Scorer(TABLE, "mlp", 3, (5, 4)),
    Scorer(TABLE, "mlp", 1),
    Scorer(IMAGE, "conv", 4, (2, 3, 2)),
]


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def weights_of(network, seed=0):
    return gan.leaves(gan.initial(network.layers, source(seed)), network.layers)


@pytest.mark.parametrize("network", [*SCORERS, Generator(IMAGE, "conv", 4, 2, (3,))])
def test_a_vector_and_its_weights_are_the_same(network):
    flat = gan.initial(network.layers, source())
    assert len(flat) == network.dim
    assert torch.equal(gan.flatten(gan.leaves(flat, network.layers)), flat)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_drawn_rows_are_numbers_within_bounds_and_categories_one_hot(size):
    generator = Generator(TABLE, "mlp", 3, 2, (6,))
    flat = gan.initial(generator.layers, source()) * size
    labels = torch.tensor([0, 1] * 20)
    drawn = generator.sample(unflatten(flat, generator.layers), labels, 40, source(2))
    numbers, first, second, only = drawn[:, [0, 7]], drawn[:, 1:4], drawn[:, 4:6], drawn[:, 6]
    assert (numbers.abs() <= 1).all()
    for block in (first, second, only[:, None]):
        assert torch.isin(block, torch.tensor([0.0, 1.0])).all()
        assert torch.equal(block.sum(1), torch.ones(40))


def test_gradients_pass_through_drawn_categories():
    generator = Generator(Cells(columns=(3,)), "mlp", 2, hidden=(4,))
    weights = weights_of(generator)
    drawn = generator.draw(weights, torch.randn(50, 2, generator=source(3)), None, source(3))
    gradients = torch.autograd.grad((drawn * torch.tensor([1.0, 2.0, 3.0])).sum(), weights)
    assert all(part.abs().sum() > 0 for part in gradients)


@pytest.mark.parametrize(("kind", "hidden"), [("conv", (3,)), ("mlp", (6,))])
def test_images_are_intensities_and_a_seed_repeats_them(kind, hidden):
    generator = Generator(IMAGE, kind, 4, hidden=hidden)
    weights = weights_of(generator)
    one, same = (generator.sample(weights, None, 3, source(4)) for _ in range(2))
    assert one.shape == (3, 256)
    assert torch.equal(one, same)
    assert ((one > 0) & (one < 1)).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Cells(),
        lambda: Cells(columns=(1,), shape=(2, 2)),
        lambda: Cells(columns=(-1,)),
        lambda: Cells(shape=(2, 0)),
        lambda: Scorer(IMAGE, "conv", 1, (2, 2)),
        lambda: Generator(IMAGE, "conv", 1, 0, (2, 2)),
    ],
)
def test_contradictions_are_refused(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        wrong()


@pytest.mark.parametrize(
    ("shape", "suits"), [((28, 28), True), ((16, 20, 3), True), ((8, 8), False), ((18, 20), False)]
)
def test_convolutions_suit_sides_of_16_and_more_divisible_by_4(shape, suits):
    assert Cells(shape=shape).convolves is suits


def test_a_residual_generators_layers_see_all_before_them_and_the_last_the_label():
    generator = Generator(Cells(columns=(0, 2)), "residual", 2, 3, (4, 5))
    assert [(layer.outputs, layer.inputs) for layer in generator.layers] == [
        (4, 5),
        (5, 9),
        (3, 14),
    ]
    weights = weights_of(generator, 1)
    latent, labels = torch.randn(6, 2, generator=source(5)), torch.tensor([0, 1, 2, 0, 1, 2])
    seen = torch.cat([latent, functional.one_hot(labels, 3).float()], 1)
    for matrix, bias in ((weights[0], weights[1]), (weights[2], weights[3])):
        seen = torch.cat([seen, (seen @ matrix.T + bias).relu()], 1)
    expected = seen @ weights[4].T + weights[5]
    assert torch.allclose(generator.scores(weights, latent, labels), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["residual", "mlp"])
def test_only_a_residual_generators_last_layer_is_enough_to_follow_the_label(kind):
    generator = Generator(Cells(columns=(2,)), kind, 2, 2, (4,))
    weights = [torch.zeros_like(weight) for weight in weights_of(generator)]
    label = slice(2, 4)
    weights[-2][:, label] = torch.tensor([[9.0, -9.0], [-9.0, 9.0]])
    scores = generator.scores(weights, torch.zeros(2, 2), torch.tensor([0, 1]))
    # Of an mlp these columns stand behind a hidden layer, which is silent.
    expected = [[9.0, -9.0], [-9.0, 9.0]] if kind == "residual" else [[0.0, 0.0], [0.0, 0.0]]
    assert scores.tolist() == expected


def test_a_generator_of_several_labels_a_row_sees_the_sum_of_their_marks():
    both = torch.tensor([[0, 3], [1, 2]])
    assert gan.multi_hot(both, 4).tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    assert gan.multi_hot(torch.tensor([2]), 4).tolist() == [[0, 0, 1, 0]]


@pytest.mark.parametrize("cells", [TABLE, IMAGE, Cells(shape=(2, 3, 1))])
def test_cells_and_networks_survive_being_written_down(cells):
    assert Cells.from_dict(cells.to_dict()) == cells
    scorer, generator = Scorer(cells, "mlp", 3, (5, 4)), Generator(cells, "mlp", 2, 4, (7,))
    assert Scorer.from_dict(cells, scorer.to_dict()) == scorer
    assert Generator.from_dict(cells, generator.to_dict()) == generator


@pytest.mark.parametrize("missing", ["columns", "shape"])
def test_cells_with_a_part_missing_are_refused(missing):
    plain = TABLE.to_dict()
    del plain[missing]
    with pytest.raises(KeyError):
        Cells.from_dict(plain)


def test_vectors_of_networks_side_by_side_are_each_networks_own():
    scorer = Scorer(TABLE, "mlp", 2, (3,))
    flats = torch.stack([gan.initial(scorer.layers, source(seed)) for seed in range(3)])
    together = gan.leaves(flats, scorer.layers)
    assert torch.equal(gan.flatten(together), flats)
    cells = torch.randn(3, 4, TABLE.width, generator=source(1))
    joint = scorer.logits(together, cells)
    for number in range(3):
        own = gan.leaves(flats[number], scorer.layers)
        assert torch.allclose(joint[number], scorer.logits(own, cells[number]), atol=1e-5)
