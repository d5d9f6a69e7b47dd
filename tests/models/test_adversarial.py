"""Verdicts: whose logits count, losses as written, slopes, and each record's own gradient."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fedsynth.models import adversarial, gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Scorer

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

    pairs = adversarial.record_gradients(scorer, weights, cells, loss)
    for row in range(4):
        single = slice(row, row + 1)
        own = loss(scorer.logits(weights, cells[single]), single).sum()
        expected = gan.flatten(torch.autograd.grad(own, weights))
        gradients = torch.cat([torch.outer(a[row], b[row]).flatten() for a, b in pairs])
        assert torch.allclose(gradients, expected, atol=1e-5)


def test_a_logit_with_a_label_adds_the_labels_own_logit():
    logits = torch.tensor([[1.0, 10.0, 20.0], [2.0, 30.0, 40.0]])
    assert adversarial.conditional_logits(logits, None).tolist() == [1.0, 2.0]
    assert adversarial.conditional_logits(logits, torch.tensor([1, 0])).tolist() == [21.0, 32.0]


def test_a_logit_with_several_labels_adds_the_logit_of_each():
    logits = torch.tensor([[1.0, 10.0, 20.0, 40.0], [2.0, 30.0, 50.0, 70.0]])
    assert adversarial.conditional_logits(logits, torch.tensor([[0, 2], [1, 0]])).tolist() == [
        51.0,
        82.0,
    ]


def test_networks_side_by_side_are_judged_each_by_its_own_labels():
    logits = torch.tensor([[[1.0, 10.0, 20.0]], [[2.0, 30.0, 40.0]]])
    assert adversarial.conditional_logits(logits, None).tolist() == [[1.0], [2.0]]
    assert adversarial.conditional_logits(logits, torch.tensor([[1], [0]])).tolist() == [
        [21.0],
        [32.0],
    ]
    several = torch.tensor([[[0, 1]], [[0, 1]]])
    assert adversarial.conditional_logits(logits, several).tolist() == [[31.0], [72.0]]


def test_logits_lose_by_the_written_formulas():
    said = torch.tensor([0.0, 2.0, -3.0], dtype=torch.float64)
    real, fake = torch.sigmoid(said).log().neg(), (1 - torch.sigmoid(said)).log().neg()
    assert torch.allclose(adversarial.adversarial_losses(said, True, "logistic"), real)
    assert torch.allclose(adversarial.adversarial_losses(said, False, "logistic"), fake)
    assert adversarial.adversarial_losses(said, True, "wasserstein").tolist() == [0.0, -2.0, 3.0]
    assert adversarial.adversarial_losses(said, False, "wasserstein").tolist() == [0.0, 2.0, -3.0]


@pytest.mark.parametrize(("direction", "expected"), [((3.0, 4.0), 16.0), ((0.3, 0.4), 0.0)])
def test_the_penalty_is_the_squared_excess_of_a_linear_logits_slope(direction, expected):
    slope = torch.tensor(direction, requires_grad=True)
    penalty = adversarial.gradient_penalty(
        lambda cells: cells @ slope, torch.randn(7, 2, generator=source())
    )
    assert float(penalty.detach()) == pytest.approx(expected, rel=1e-5)
    # d/dw (|w| - 1)^2 = 2 (|w| - 1) w / |w| beyond 1.
    (gradients,) = torch.autograd.grad(penalty, slope)
    norm = slope.detach().norm()
    wanted = 2 * (norm - 1).clamp(min=0) * slope.detach() / norm
    assert torch.allclose(gradients, wanted, atol=1e-5)


def test_the_penalty_of_networks_side_by_side_is_each_ones_own():
    slopes = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    cells = torch.randn(2, 5, 2, generator=source())
    penalties = adversarial.gradient_penalty(lambda at: (at * slopes[:, None]).sum(-1), cells)
    assert torch.allclose(penalties, torch.tensor([16.0, 1.0]), rtol=1e-5)


def test_the_penalty_of_a_network_is_that_of_each_records_gradient():
    scorer = Scorer(TABLE, "mlp", 1, (5,))
    weights = weights_of(scorer)
    cells = torch.randn(3, TABLE.width, generator=source(4))
    excess = []
    for row in cells:
        own = row.clone().requires_grad_()
        (slope,) = torch.autograd.grad(scorer.logits(weights, own[None])[0, 0], own)
        excess.append((slope.norm() - 0.1).clamp(min=0) ** 2)
    penalties = adversarial.gradient_penalty(
        lambda at: scorer.logits(weights, at)[:, 0], cells, 0.1
    )
    assert float(penalties.detach()) == pytest.approx(
        float(torch.stack(excess).mean().detach()), rel=1e-4
    )
    assert not cells.requires_grad
