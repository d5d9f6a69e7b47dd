"""Steps are those of the papers, without the compiler that torch's own optimisers import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import fedsynth
from fedsynth.models.adam import Adam


def test_nothing_else_trains_by_what_imports_a_compiler(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # whoever imports it fails
    Adam([torch.zeros(2)], 0.1).step([torch.ones(2)])
    files = Path(fedsynth.__file__).parent.rglob("*.py")
    users = [path.name for path in files if "torch.optim" in path.read_text(encoding="utf-8")]
    assert users == ["adam.py"]


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_are_those_of_the_papers_whatever_a_gradients_strides(decay):
    """Adam of Kingma and Ba, its weights decayed as by Loshchilov and Hutter, written out."""
    coins = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=coins) for shape in ((3, 4), (2, 3, 4), (4,))]
    own = [weight.clone().requires_grad_() for weight in start]
    theirs = [weight.double() for weight in start]
    means, squares = ([torch.zeros_like(weight) for weight in theirs] for _ in range(2))
    ours = Adam(own, 0.01, (0.5, 0.9), decay)
    for step in range(1, 7):
        if step == 4:
            ours.rate = 0.1
        # Of transposed memory, as products of matrices have them.
        gradients = [
            torch.randn(weight.shape[::-1], generator=coins).permute(*range(weight.dim())[::-1])
            for weight in start
        ]
        for k, gradient in enumerate(gradients):
            means[k] = 0.5 * means[k] + 0.5 * gradient
            squares[k] = 0.9 * squares[k] + 0.1 * gradient**2
            move = means[k] / (1 - 0.5**step) / ((squares[k] / (1 - 0.9**step)).sqrt() + 1e-8)
            theirs[k] = theirs[k] * (1 - ours.rate * decay) - ours.rate * move
        ours.step(gradients)
    for weight, wanted in zip(own, theirs, strict=True):
        torch.testing.assert_close(weight.double(), wanted, rtol=1e-5, atol=1e-6)
