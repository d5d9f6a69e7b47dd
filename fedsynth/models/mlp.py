"""Dense ReLU networks over weight matrices, for one model or for many stacked side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn import functional

# No activation of a network that learns comes near this; it keeps one that diverges finite.
ACTIVATION_BOUND = 1e4


@dataclass
class Tape:
    """What a forward pass saw: each layer's input with a constant one, and its pre-activation.

    The gradient of a weight matrix is `grad(pre-activation)^T @ input`, for each record the outer
    product of two vectors: it need never be formed to know its norm.
    """

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def record(self, inputs: Tensor, outputs: Tensor) -> None:
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self.inputs.append(inputs)
        self.outputs.append(outputs)


def bounded(values: Tensor, lower: float = -ACTIVATION_BOUND) -> Tensor:
    """Values within [lower, ACTIVATION_BOUND], NaN as 0; the gradient is 0 where it changed one."""
    return values.clamp(lower, ACTIVATION_BOUND).nan_to_num(nan=0.0)


def with_one(values: Tensor) -> Tensor:
    """Appends the constant one that multiplies a weight matrix's bias column."""
    return functional.pad(values, (0, 1), value=1.0)


def forward(weights: Sequence[Tensor], x: Tensor, tape: Tape | None = None) -> Tensor:
    """Runs dense layers with ReLU between them.

    Args:
        weights: matrices [..., out, in + 1], the bias in the last column.
        x: inputs [..., b, in], the leading dimensions those of the weights.
        tape: if given, records what gradients by factors need.

    Returns:
        Outputs [..., b, out] of the last layer, within +-ACTIVATION_BOUND.
    """
    last = len(weights) - 1
    for index, weight in enumerate(weights):
        inputs = with_one(x)
        outputs = inputs @ weight.mT
        if tape is not None:
            tape.record(inputs, outputs)
        x = bounded(outputs) if index == last else bounded(outputs, lower=0.0)
    return x
