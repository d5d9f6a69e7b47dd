"""Learners: torch's Adam, steps no longer than asked, and going on as if nothing had happened."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedsynth.methods.training.learner import BETAS, Learner
from fedsynth.models import gan
from fedsynth.models.adam import Adam
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Scorer

LAYERS = Scorer(Cells(columns=(0, 3)), "mlp", 2, (3,)).layers
DIM = sum(layer.size for layer in LAYERS)


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def learner(seed=0, rate=0.01, **rest):
    return Learner(LAYERS, rate, source(seed), **rest)


def gradients(count, seed=1):
    return list(torch.randn(count, DIM, generator=source(seed)))


def flat_of(weights):
    return gan.flatten(weights)


def along(own, direction):
    """A loss whose gradient is a given flat vector."""
    parts = gan.leaves(direction, LAYERS)
    pairs = zip(own.weights, parts, strict=True)
    return sum((weight * part.detach()).sum() for weight, part in pairs)


@pytest.mark.parametrize("betas", [BETAS, (0.9, 0.999)])
def test_steps_are_those_of_adam(betas):
    own = learner(betas=betas)
    reference = own.flat.clone().requires_grad_()
    adam = Adam([reference], 0.01, betas)
    for number, gradient in enumerate(gradients(5)):
        if number % 2:
            own.descend_along(gradient)
        else:
            own.descend(along(own, gradient))
        adam.step([gradient])
    assert torch.allclose(own.flat, reference.detach(), atol=1e-6)


def test_a_step_size_can_be_changed_between_steps():
    own = learner()
    own.pace(0.5)
    before = own.flat
    own.descend_along(torch.ones(DIM))
    # Adam's first step is its step size, whatever the gradient.
    assert torch.allclose(before - own.flat, torch.full((DIM,), 0.5), atol=1e-5)


@pytest.mark.parametrize(("norm", "expected"), [(5.0, 2.0), (2.0, 2.0), (0.5, 0.5)])
def test_a_gradient_is_cut_to_the_steepest_and_no_shorter_one_is_touched(
    monkeypatch, norm, expected
):
    own, stepped = learner(), []
    monkeypatch.setattr(own, "_step", lambda parts: stepped.append(flat_of(parts)))
    direction = gradients(1)[0]
    direction = direction / direction.norm() * norm
    own.descend(along(own, direction), max_gradient_norm=2.0)
    assert torch.allclose(stepped[0], direction * (expected / norm), atol=1e-5)


@pytest.mark.parametrize("done", [0, 3])
def test_a_restored_learner_goes_on_bit_for_bit(done):
    uninterrupted, interrupted = learner(), learner()
    steps = gradients(6)
    for gradient in steps[:done]:
        for own in (uninterrupted, interrupted):
            own.descend_along(gradient)
            own.follow(0.9)
    kept = interrupted.state()
    # Nothing that happens afterwards may reach into what was kept.
    copies = {name: values.copy() for name, values in kept.items()}
    interrupted.descend_along(steps[-1] * 100)
    interrupted.follow(0.5)
    for name, values in kept.items():
        np.testing.assert_array_equal(values, copies[name])
    resumed = learner(seed=7)
    resumed.descend_along(steps[0])
    resumed.restore(kept)
    for gradient in steps[done:]:
        for own in (uninterrupted, resumed):
            own.descend_along(gradient)
            own.follow(0.9)
    assert torch.equal(uninterrupted.flat, resumed.flat)
    assert torch.equal(uninterrupted.average, resumed.average)
    # Nor may the resumed one have moved what it was restored from.
    for name, values in kept.items():
        np.testing.assert_array_equal(values, copies[name])


def test_the_average_follows_by_its_decay_and_starts_at_the_weights():
    own = learner()
    first = own.flat
    assert torch.equal(own.average, first)
    own.move(torch.ones(DIM))
    assert torch.allclose(own.flat, first + 1)
    own.follow(0.75)
    assert torch.allclose(own.average, first + 0.25, atol=1e-6)


def test_a_learner_may_start_from_given_weights():
    start = torch.arange(DIM, dtype=torch.float32)
    assert torch.equal(learner(start=start).flat, start)
    own = learner(start=start)
    own.move(torch.ones(DIM))
    assert start[0] == 0
