import numpy as np
import torch
from torch.optim.sgd import sgd

from fedsynth.methods.training.momentum import DECAY, Momentum


def test_steps_are_those_of_torch():
    rng = np.random.default_rng(0)
    start = rng.normal(size=7).astype(np.float32)
    ours = Momentum.start(start)
    theirs, moved = torch.tensor(start), [None]
    for step in range(20):
        gradient = rng.normal(size=7).astype(np.float32)
        rate = 0.1 / (step + 1)
        sgd(
            [theirs], [torch.tensor(gradient)], moved, lr=rate, momentum=DECAY, dampening=0,
            weight_decay=0, nesterov=False, maximize=False,
        )  # fmt: skip
        ours.step(gradient, rate)
    np.testing.assert_allclose(ours.weights, theirs.numpy(), rtol=1e-5)


def test_the_start_is_not_changed_by_steps():
    start = np.ones(3, np.float32)
    Momentum.start(start).step(np.ones(3, np.float32), 1.0)
    assert (start == 1).all()


def test_a_vector_holds_everything():
    one = Momentum.start(np.arange(3, dtype=np.float32))
    one.step(np.ones(3, np.float32), 0.5)
    other = Momentum.from_vector(one.to_vector())
    for state in (one, other):
        state.step(np.full(3, 2, np.float32), 0.1)
    np.testing.assert_array_equal(one.weights, other.weights)
