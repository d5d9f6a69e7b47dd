"""A network of PyTorch's own layers, one behind another, as data: it travels, is stored and is
agreed on without a line of anybody's code being loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from fedsynth.models.classifier import losses
from fedsynth.models.kinds import Kind, describe
from fedsynth.models.mlp import bound
from fedsynth.models.vae import WEIGHT_BOUND, make_finite

_SEVERAL = 3
"""Records that layers are tried with."""


@dataclass(frozen=True)
class Stack:
    """Layers from a record to a logit a class, without random parts and with no memory.

    Attributes:
        shape: of a record: (inputs,), or (channels, height, width) of an image, whose numbers
            come channel by channel for each pixel.
        classes: at least 2.
        layers: see :func:`describe`; lazy ones learn their inputs from the shape.

    Raises:
        ValueError: layers that do not fit together, or end in other numbers than the classes.
    """

    shape: tuple[int, ...]
    classes: int
    layers: tuple[Kind, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", describe(self._module))

    @cached_property
    def _module(self) -> nn.Sequential:
        """The layers, without room for weights: they are given from outside."""
        made, x = nn.Sequential(), torch.zeros(_SEVERAL, *self.shape, device="meta")
        with torch.device("meta"):
            for place, (name, said) in enumerate(self.layers, 1):
                shown, before = f"layers: layer {place}, {name}", tuple(x.shape[1:])
                # Of a stranger's arguments PyTorch may complain in any way.
                try:
                    made.append(_make(name, said))
                except Exception:
                    raise ValueError(f"{shown}: {said or 'no'} arguments do not make one") from None
                try:
                    x = made[-1](x)
                except Exception:
                    raise ValueError(f"{shown} does not take a record of shape {before}") from None
                if x.shape[:1] != (_SEVERAL,):
                    raise ValueError(f"{shown} takes records together")
        if tuple(x.shape) != (_SEVERAL, self.classes):
            raise ValueError(
                f"layers: they end in shape {tuple(x.shape[1:])}, and {self.classes} classes need "
                f"({self.classes},)"
            )
        if not any(True for _ in made.parameters()):
            raise ValueError("layers: none of them has weights, so there is nothing to learn")
        return made

    @cached_property
    def _sizes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights by name, in the order of the flat vector."""
        return {name: tuple(weight.shape) for name, weight in self._module.named_parameters()}

    @property
    def inputs(self) -> int:
        """Numbers of a record."""
        return math.prod(self.shape)

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return sum(map(math.prod, self._sizes.values()))

    @property
    def floats(self) -> int:
        """Numbers that a record's gradient takes."""
        return self.dim + self.inputs

    def answers(self, flat: Tensor, x: Tensor) -> Tensor:
        """Logits [b, classes] of records [b, inputs]."""
        from torch.func import functional_call

        parts = torch.split(flat.clamp(-WEIGHT_BOUND, WEIGHT_BOUND), self._lengths, -1)
        named = {
            name: part.view(size)
            for (name, size), part in zip(self._sizes.items(), parts, strict=True)
        }
        logits: Tensor = functional_call(self._module, named, (self._records(x),))
        return bound(logits)

    def _records(self, x: Tensor) -> Tensor:
        if len(self.shape) == 1:
            return x
        channels, height, width = self.shape
        return x.view(len(x), height, width, channels).permute(0, 3, 1, 2)

    @property
    def _lengths(self) -> list[int]:
        return [math.prod(size) for size in self._sizes.values()]

    def factors(self, flat: Tensor, x: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each record's gradient of its cross-entropy, [b, dim], as one factor beside ones [b, 1].

        Args:
            x, y: records [b, inputs] and labels [b].
        """
        from torch.func import grad, vmap

        def loss(weights: Tensor, record: Tensor, label: Tensor) -> Tensor:
            return losses(self.answers(weights, record[None]), label[None])[0]

        rows: Tensor = vmap(grad(loss), in_dims=(None, 0, 0))(flat.detach(), x, y)
        return [(torch.ones(len(x), 1), make_finite(rows))]

    def client_gradients(self, weights: Tensor, x: Tensor, y: Tensor, shares: Tensor) -> Tensor:
        """Of each client's loss at its own weights, [clients, dim].

        Args:
            weights: [clients, dim]. x, y, shares: records [clients, b, inputs], labels and weights
                of their losses [clients, b].
        """
        from torch.func import grad, vmap

        def loss(own: Tensor, x: Tensor, y: Tensor, shares: Tensor) -> Tensor:
            return (losses(self.answers(own, x), y) * shares).sum()

        found: Tensor = vmap(grad(loss))(weights.detach(), x, y, shares)
        return found

    def initial(self, shares: Tensor, source: torch.Generator) -> Tensor:
        """A flat vector: PyTorch's own first weights; a last linear layer's are 0 and its biases
        answer every record with the classes' shares, [classes], positive."""
        # PyTorch draws them from its global generator alone, which is put back afterwards.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=source)))
            made = nn.Sequential(*(_make(name, said) for name, said in self.layers))
        last = made[-1]
        if isinstance(last, nn.Linear) and last.bias is not None:
            with torch.no_grad():
                last.weight.zero_()
                last.bias.copy_(shares.float().log())
        return torch.cat([weight.detach().flatten() for weight in made.parameters()])

    @property
    def decayed(self) -> Tensor:
        """1 where the flat vector has a weight of a map, 0 where it has a bias or scale, [dim]."""
        parts = [torch.full((math.prod(s),), float(len(s) > 1)) for s in self._sizes.values()]
        return torch.cat(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` gives the same network back."""
        layers = [[name, dict(said)] for name, said in self.layers]
        return {"shape": list(self.shape), "classes": self.classes, "layers": layers}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Stack:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        shape = tuple(int(one) for one in plain["shape"])
        return Stack(shape, int(plain["classes"]), describe(plain["layers"]))


def _make(name: str, said: Mapping[str, Any]) -> nn.Module:
    """A layer; what came as a list, as JSON has it, is a tuple to PyTorch."""
    words = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    made: nn.Module = getattr(nn, name)(**words)
    return made
