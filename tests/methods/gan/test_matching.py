"""Quadratic discriminators: their gradients, the gap that a generator closes, where they turn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedsynth.methods.gan.matching import Matcher, mean_gradients

CENTRE = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(count=40, scale=(1.0, 1.0, 1.0), seed=1):
    return torch.randn(count, 3, generator=source(seed)) * torch.tensor(scale)


@pytest.mark.parametrize("clip", [0.5, 1e3])
def test_mean_gradients_are_those_of_the_written_out_discriminator_clipped_one_by_one(clip):
    weights, result = torch.randn(2, 4, 3, generator=source()), rows(5)
    wanted = torch.zeros(2, 4, 3)
    for number in range(2):
        for row in result:
            own = weights[number].clone().requires_grad_()
            squares = (own @ row).square()
            verdict = (squares[0] - squares[1] + squares[2] - squares[3]) / 2
            (gradient,) = torch.autograd.grad(-verdict, own)
            wanted[number] += gradient * min(1.0, clip / float(gradient.norm())) / 5
    assert torch.allclose(mean_gradients(weights, result, clip), wanted, atol=1e-5)


def test_gradients_reach_the_rows():
    result = rows(4).requires_grad_()
    mean_gradients(torch.randn(1, 2, 3, generator=source()), result, 0.5).square().sum().backward()
    assert result.grad.abs().min() > 0


def test_rows_are_seen_from_their_own_mean_in_each_class():
    matcher = Matcher(2, CENTRE, 1.0, source())
    cells = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]] * 1000)
    classes = torch.tensor([1, 0, 0] * 1000)
    result = matcher.centre_rows(cells, classes)
    # Class 1 is one and the same row; class 0 is even between two. The released shares count for
    # 20 rows of 1,000 and of 2,000.
    own = (1000 * torch.tensor([1.0, 0, 0]) + 20 * CENTRE[1]) / 1020
    assert torch.allclose(result[0], cells[0] - own)
    own = (1000 * torch.tensor([0, 1.0, 1.0]) + 20 * CENTRE[0]) / 2020
    assert torch.allclose(result[1], cells[1] - own)
    alone = Matcher(2, CENTRE[:1], 1.0, source()).centre_rows(cells, None)
    assert torch.allclose(alone.mean(0), 20 / 3020 * (cells.mean(0) - CENTRE[0]), atol=1e-5)


def test_the_gap_is_the_squared_distance_without_the_variance_of_the_rows():
    matcher = Matcher(2, torch.zeros(1, 3), 10.0, source())
    truth = rows(100_000, seed=2)
    matcher.remember(mean_gradients(matcher.weights[None], truth, 10.0).flatten())
    same = [float(matcher.gap(rows(50, seed=seed), None)) for seed in range(400)]
    # Of the same distribution it is 0 on average, below as often as above.
    assert abs(np.mean(same)) < 6 * np.std(same) / np.sqrt(400)
    assert min(same) < 0 < max(same)
    other = [float(matcher.gap(rows(50, (2.0, 1.0, 1.0), seed), None)) for seed in range(100)]
    mean = mean_gradients(matcher.weights[None], rows(100_000, (2.0, 1.0, 1.0), 3), 10.0)
    distance = float((matcher.released - mean).square().sum()) * 100 / 10.0**2
    assert abs(np.mean(other) - distance) < 6 * np.std(other) / np.sqrt(100) + 0.01 * distance


def test_vectors_turn_to_where_real_and_generated_rows_differ_most():
    real, fake = rows(20_000, (2.0, 1.0, 1.0)), rows(20_000, (1.0, 1.0, 2.0), seed=2)
    matcher = Matcher(2, torch.zeros(1, 3), 1e3, source(4))
    for _ in range(30):
        matcher.remember(mean_gradients(matcher.weights[None], real, 1e3).flatten())
        matcher.turn(fake, None)
        assert torch.allclose(matcher.weights.norm(dim=1), torch.ones(2), atol=1e-5)
    # The first vector takes rows that vary along it for real, the second for generated.
    assert float(matcher.weights[0, 0].abs()) > 0.98
    assert float(matcher.weights[1, 2].abs()) > 0.98


def test_a_restored_matcher_goes_on_bit_for_bit():
    one = Matcher(2, CENTRE, 1.0, source())
    one.remember(torch.arange(6.0))
    one.turn(rows(8), torch.zeros(8, dtype=torch.int64))
    again = Matcher(2, CENTRE, 1.0, source(9))
    again.restore(one.state())
    one.source, again.source = source(5), source(5)
    for matcher in (one, again):
        matcher.remember(torch.ones(6))
        matcher.turn(rows(8), torch.ones(8, dtype=torch.int64))
    assert torch.equal(one.weights, again.weights)
    classes = torch.zeros(8, dtype=torch.int64)
    assert torch.equal(one.gap(rows(8), classes), again.gap(rows(8), classes))
