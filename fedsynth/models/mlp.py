"""Dense networks over weight matrices, for one model or for many stacked side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

# No activation of a network that learns comes near this; it keeps one that diverges finite.
ACTIVATION_BOUND = 1e4


Activation = Literal["relu", "tanh"]

# From the gradient of a layer's pre-activation and its input to the factors of its weights' own.
Factors = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def dense_factors(gradient: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Left [b, out] and right [b, in + 1], the constant one that multiplies the bias last."""
    return gradient, functional.pad(inputs, (0, 1), value=1.0)


def plain_factors(gradient: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Left [b, out] and right [b, in] of a map without bias."""
    return gradient, inputs


@dataclass
class Tape:
    """What a forward pass saw: each layer's input and its pre-activation.

    A weight matrix's gradient is `grad(pre-activation)^T @ input`, for one record the outer product
    of two vectors: it need never be formed to know its norm, or to take a step along it.
    """

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    rules: list[Factors] = field(default_factory=list)

    def record(self, inputs: Tensor, outputs: Tensor, rule: Factors) -> None:
        """Notes one layer; gradients will be asked of its outputs."""
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self.inputs.append(inputs.detach())
        self.outputs.append(outputs)
        self.rules.append(rule)


def bound(values: Tensor) -> Tensor:
    """Values within +-ACTIVATION_BOUND; the gradient is 0 beyond."""
    return functional.hardtanh(values, -ACTIVATION_BOUND, ACTIVATION_BOUND)


def rectify(values: Tensor) -> Tensor:
    """ReLU, at most ACTIVATION_BOUND; the gradient is 0 beyond."""
    return functional.hardtanh(values, 0.0, ACTIVATION_BOUND)


_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": rectify,
    "tanh": torch.tanh,
}


def affine(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Inputs [..., b, in] times [..., out, in] plus [..., out], with at most one leading axis."""
    if weight.dim() == 2:
        return functional.linear(x, weight, bias)
    return torch.baddbmm(bias.unsqueeze(-2), x, weight.mT)


def forward(
    weights: Sequence[Tensor],
    x: Tensor,
    tape: Tape | None = None,
    activation: Activation = "relu",
) -> Tensor:
    """Runs dense layers with an activation between them.

    Args:
        weights: matrices and biases in turn, [..., out, in] and [..., out].
        x: inputs [..., b, in], with the weights' leading axis if they have one.
        tape: if given, records what gradients by factors need.
        activation: of the hidden layers.

    Returns:
        Outputs [..., b, out] of the last layer, within +-ACTIVATION_BOUND.
    """
    active = _ACTIVATIONS[activation]
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    for index, (weight, bias) in enumerate(pairs):
        outputs = affine(weight, bias, x)
        if tape is not None:
            tape.record(x, outputs, dense_factors)
        x = active(outputs) if index + 1 < len(pairs) else bound(outputs)
    return x
