import numpy as np
import torch

from fedsynth.methods.training.momentum import DECAY, Momentum


def test_steps_are_those_of_torch():
    rng = np.random.default_rng(0)
    start = rng.normal(size=7).astype(np.float32)
    ours = Momentum.start(start)
    theirs = torch.nn.Parameter(torch.tensor(start))
    optimiser = torch.optim.SGD([theirs], lr=1.0, momentum=DECAY)
    for step in range(20):
        gradient = rng.normal(size=7).astype(np.float32)
        rate = 0.1 / (step + 1)
        for group in optimiser.param_groups:
            group["lr"] = rate
        theirs.grad = torch.tensor(gradient)
        optimiser.step()
        ours.step(gradient, rate)
    np.testing.assert_allclose(ours.weights, theirs.detach().numpy(), rtol=1e-5)


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
