"""A dense classifier: logistic regression where nothing is hidden, else a multilayer perceptron."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fedsynth.models import mlp
from fedsynth.models.adversarial import record_gradients
from fedsynth.models.gan import flatten, leaves
from fedsynth.models.spec import Layer
from fedsynth.models.vae import unflatten


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

    @property
    def floats(self) -> int:
        """Numbers that a record's gradient takes."""
        return self.inputs + sum(self.hidden)

    def answers(self, flat: Tensor, x: Tensor) -> Tensor:
        """Logits [b, classes] of records [b, inputs], by a flat vector [dim]."""
        return self.logits(unflatten(flat, self.layers), x)

    def factors(self, flat: Tensor, x: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each record's gradient of its cross-entropy, as factors, one pair a layer.

        Args:
            x, y: records [b, inputs] and labels [b].
        """
        return record_gradients(self, unflatten(flat, self.layers), x, partial(losses, labels=y))

    def client_gradients(self, weights: Tensor, x: Tensor, y: Tensor, shares: Tensor) -> Tensor:
        """Of each client's loss at its own weights, [clients, dim].

        Args:
            weights: [clients, dim]. x, y, shares: records [clients, b, inputs], labels and weights
                of their losses [clients, b].
        """
        parts = leaves(weights, self.layers)
        with torch.enable_grad():
            found = losses(self.logits(parts, x).flatten(0, 1), y.flatten())
            gradients = torch.autograd.grad((found * shares.flatten()).sum(), parts)
        return flatten(gradients)

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
