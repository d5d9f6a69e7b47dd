"""Generators and scorers: gradients by factors, records within their cells, weights and vectors."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fedsynth.models import gan
from fedsynth.models.gan import Cells, Generator, Scorer
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


@pytest.mark.parametrize("scorer", SCORERS)
def test_factors_are_each_records_own_gradient(scorer):
    weights = weights_of(scorer)
    cells = torch.randn(4, scorer.cells.width, generator=source(1))
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0])

    def loss(logits, at=slice(None)):
        return functional.softplus(signs[at] * logits.sum(1))

    pairs = gan.record_gradients(scorer, weights, cells, loss)
    for row in range(4):
        single = slice(row, row + 1)
        own = loss(scorer.logits(weights, cells[single]), single).sum()
        expected = gan.flattened(torch.autograd.grad(own, weights))
        found = torch.cat([torch.outer(a[row], b[row]).flatten() for a, b in pairs])
        assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("network", [*SCORERS, Generator(IMAGE, "conv", 4, 2, (3,))])
def test_a_vector_and_its_weights_are_the_same(network):
    flat = gan.initial(network.layers, source())
    assert len(flat) == network.dim
    assert torch.equal(gan.flattened(gan.leaves(flat, network.layers)), flat)


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
    found = torch.autograd.grad((drawn * torch.tensor([1.0, 2.0, 3.0])).sum(), weights)
    assert all(part.abs().sum() > 0 for part in found)


@pytest.mark.parametrize(("kind", "hidden"), [("conv", (3,)), ("mlp", (6,))])
def test_images_are_intensities_and_a_seed_repeats_them(kind, hidden):
    generator = Generator(IMAGE, kind, 4, hidden=hidden)
    weights = weights_of(generator)
    one, same = (generator.sample(weights, None, 3, source(4)) for _ in range(2))
    assert one.shape == (3, 256)
    assert torch.equal(one, same)
    assert ((one > 0) & (one < 1)).all()


def test_a_verdict_with_a_label_adds_the_labels_own_logit():
    logits = torch.tensor([[1.0, 10.0, 20.0], [2.0, 30.0, 40.0]])
    assert gan.judged(logits, None).tolist() == [1.0, 2.0]
    assert gan.judged(logits, torch.tensor([1, 0])).tolist() == [21.0, 32.0]


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
