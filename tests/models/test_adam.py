"""Steps are those of torch's own optimisers, which import a compiler for their first."""

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
def test_steps_are_those_of_torch_whatever_a_gradients_strides(decay):
    coins = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=coins) for shape in ((3, 4), (2, 3, 4), (4,))]
    own = [weight.clone().requires_grad_() for weight in start]
    theirs = [weight.clone().requires_grad_() for weight in start]
    ours = Adam(own, 0.01, (0.5, 0.9), decay)
    reference = torch.optim.AdamW(theirs, lr=0.01, betas=(0.5, 0.9), weight_decay=decay)
    for step in range(6):
        if step == 3:
            ours.rate = reference.param_groups[0]["lr"] = 0.1
        # Of transposed memory, as products of matrices have them.
        gradients = [
            torch.randn(weight.shape[::-1], generator=coins).permute(*range(weight.dim())[::-1])
            for weight in start
        ]
        for weight, gradient in zip(theirs, gradients, strict=True):
            weight.grad = gradient.contiguous()
        reference.step()
        ours.step(gradients)
    for weight, wanted in zip(own, theirs, strict=True):
        torch.testing.assert_close(weight, wanted, rtol=1e-5, atol=1e-7)
