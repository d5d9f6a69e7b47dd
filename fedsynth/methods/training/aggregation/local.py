"""What an aggregation makes of a client's own steps: the client half.

Clients are trained side by side: weights are flat, [clients, dim]. A client that has come to the
end of its records, or has none, takes no step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.view import View

Gradient = Callable[[Tensor], Tensor]
"""From weights to the mean gradient over all of each client's records."""


class LocalRule(Protocol):
    """How clients step, and what each sends."""

    def step(self, weights: Tensor, gradients: Tensor, active: Tensor) -> Tensor:
        """The weights after a step.

        Args:
            active: 1 for a client that takes one, 0 for another [clients, 1].
        """
        ...

    def rows(self, moved: Tensor, steps: Tensor, full: Gradient) -> Tensor:
        """A row of each client.

        Args:
            moved: how far its weights did.
            steps: that it took [clients, 1].
        """
        ...


class Plain:
    """Gradient descent; a client sends how far it came."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def step(self, weights: Tensor, gradients: Tensor, active: Tensor) -> Tensor:
        return weights - self.rate * active * gradients

    def rows(self, moved: Tensor, steps: Tensor, full: Gradient) -> Tensor:
        return moved


class Normalised(Plain):
    """FedNova: a client sends how far a step of its took it on average."""

    def rows(self, moved: Tensor, steps: Tensor, full: Gradient) -> Tensor:
        return moved / steps.clamp(min=1)


class Accelerated(Plain):
    """FedNAG: Nesterov's momentum, that begins as the server's."""

    def __init__(self, rate: float, momentum: float, velocity: Tensor, clients: int) -> None:
        super().__init__(rate)
        self.momentum, self.begun = momentum, velocity
        self.velocity = velocity.repeat(clients, 1)

    def step(self, weights: Tensor, gradients: Tensor, active: Tensor) -> Tensor:
        faster = self.momentum * self.velocity - self.rate * gradients
        self.velocity = torch.where(active > 0, faster, self.velocity)
        return weights + active * (self.momentum * self.velocity - self.rate * gradients)

    def rows(self, moved: Tensor, steps: Tensor, full: Gradient) -> Tensor:
        return torch.cat([moved, self.velocity - self.begun], 1)


class Controlled(Plain):
    """SCAFFOLD: steps corrected by the server's control variate and the client's own.

    Args:
        control: the server's, times the rate [dim].
        by_gradient: a client's own is its gradient at the start (option i), and not the mean of
            its steps (option ii).
    """

    def __init__(
        self, rate: float, control: Tensor, views: Sequence[View], start: Tensor, by_gradient: bool
    ) -> None:
        super().__init__(rate)
        self.control, self.views, self.start = control, views, start
        self.by_gradient = by_gradient
        kept = [view.vector.load() for view in views]
        zero = torch.zeros_like(control)
        self.own = torch.stack([zero if one is None else torch.from_numpy(one) for one in kept])

    def step(self, weights: Tensor, gradients: Tensor, active: Tensor) -> Tensor:
        return super().step(weights, gradients, active) + active * (self.own - self.control)

    def rows(self, moved: Tensor, steps: Tensor, full: Gradient) -> Tensor:
        if self.by_gradient:
            fresh = self.rate * full(self.start.repeat(len(moved), 1))
        else:
            fresh = self.own - self.control - moved / steps.clamp(min=1)
        fresh = torch.where(steps > 0, fresh, self.own)
        for view, own in zip(self.views, fresh, strict=True):
            view.vector.save(own.numpy().copy())
        return torch.cat([moved, fresh - self.own], 1)


def local_rule(
    name: str, views: Sequence[View], start: Tensor, memory: Tensor, rate: float, momentum: float
) -> LocalRule:
    """The rule of an aggregation.

    Args:
        memory: what the server remembers [dim], of those that send two vectors.

    Raises:
        PrivacyError: none of that name is known here.
    """
    if name == "fednova":
        return Normalised(rate)
    if name == "fednag":
        return Accelerated(rate, momentum, memory, len(views))
    if name in ("scaffold-1", "scaffold-2"):
        return Controlled(rate, memory, views, start, name == "scaffold-1")
    if name != "plain":
        raise PrivacyError(f"a client's steps are not known by the name {name!r}")
    return Plain(rate)
