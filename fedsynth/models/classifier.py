"""A dense classifier: logistic regression where nothing is hidden, else a multilayer perceptron."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fedsynth.models import mlp
from fedsynth.models.spec import Layer


@dataclass(frozen=True)
class Network:
    """Dense layers from numbers to a logit a class.

    Attributes:
        inputs: numbers of a record.
        hidden: widths of the hidden layers; none for logistic regression.
        classes: at least 2.
        activation: of the hidden layers.
    """

    inputs: int
    hidden: tuple[int, ...]
    classes: int
    activation: mlp.Activation = "tanh"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(int(width) for width in self.hidden))
        if min(self.inputs, *self.hidden, self.classes - 1, 1) < 1:
            raise ValueError("inputs and hidden widths must be positive, classes at least 2")
        if self.activation not in ("relu", "tanh"):
            raise ValueError(f"activation is {self.activation!r}; it must be 'relu' or 'tanh'")

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The affine maps in the order of the flat vector."""
        widths = pairwise((self.inputs, *self.hidden, self.classes))
        return tuple(Layer(outputs, inputs) for inputs, outputs in widths)

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return sum(layer.size for layer in self.layers)

    def logits(
        self, weights: Sequence[Tensor], cells: Tensor, tape: mlp.Tape | None = None
    ) -> Tensor:
        """Logits [b, classes] of records [b, inputs]; the tape notes what factors need."""
        return mlp.forward(weights, cells, tape, self.activation)

    def initial(self, shares: Tensor, source: torch.Generator) -> Tensor:
        """A flat vector that answers every record with the classes' shares, [classes], positive.

        Hidden weights are uniform within +-sqrt(3 / inputs) (LeCun et al. 1998); those of the last
        layer 0, but for the biases.
        """
        *hidden, last = self.layers
        parts = []
        for layer in hidden:
            drawn = 2 * torch.rand(layer.outputs, layer.inputs, generator=source) - 1
            parts.append(functional.pad(drawn * math.sqrt(3 / layer.inputs), (0, 1)).flatten())
        biases = functional.pad(shares.float().log()[:, None], (last.inputs, 0))
        return torch.cat([*parts, biases.flatten()])

    @property
    def decayed(self) -> Tensor:
        """1 where the flat vector has a weight, 0 where it has a bias, [dim]."""
        parts = [
            functional.pad(torch.ones(layer.outputs, layer.inputs), (0, 1)).flatten()
            for layer in self.layers
        ]
        return torch.cat(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` gives the same network back."""
        return {**asdict(self), "hidden": list(self.hidden)}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Network:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        return Network(**plain)


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy [b] of each record, in nats, from logits [b, classes] and labels [b]."""
    return functional.cross_entropy(logits, labels, reduction="none")
