"""A network that learns by Adam, and the moving average of its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.models import gan
from fedsynth.models.adam import Adam
from fedsynth.models.spec import Layer
from fedsynth.models.vae import unflatten

# Of a game's networks (Radford et al. 2016).
BETAS = (0.5, 0.999)

Arrays = dict[str, NDArray[np.generic]]


class Learner:
    """A network's weights, Adam's state for them, and their moving average.

    Args:
        rate: Adam's step size.
        source: of the initial weights.
        betas: Adam's.
        start: a flat vector of initial weights, instead of drawn ones.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        rate: float | None,
        source: torch.Generator,
        betas: tuple[float, float] = BETAS,
        start: Tensor | None = None,
    ) -> None:
        self.layers = layers
        flat = gan.initial(layers, source) if start is None else start
        self.weights = gan.leaves(flat, layers)
        self.average = gan.flatten(self.weights)
        self._optimiser = Adam(self.weights, rate or 1e-3, betas)

    @property
    def flat(self) -> Tensor:
        """The weights as one vector."""
        return gan.flatten(self.weights)

    def descend(self, loss: Tensor, max_gradient_norm: float | None = None) -> None:
        """One step against the gradient of a loss.

        Args:
            max_gradient_norm: L2 norm to which the whole gradient is cut; None for as it is.
        """
        gradients = torch.autograd.grad(loss, self.weights)
        if max_gradient_norm is not None:
            norm = torch.stack([g.norm() for g in gradients]).norm()
            gradients = tuple(
                g * (max_gradient_norm / norm.clamp(min=max_gradient_norm)) for g in gradients
            )
        self._step(gradients)

    def descend_along(self, gradient: Tensor) -> None:
        """One step against a flat gradient."""
        self._step(unflatten(gradient, self.layers))

    def _step(self, gradients: Sequence[Tensor]) -> None:
        self._optimiser.step(gradients)

    def move(self, difference: Tensor) -> None:
        """Add a flat vector to the weights."""
        with torch.no_grad():
            parts = unflatten(difference, self.layers)
            for weight, part in zip(self.weights, parts, strict=True):
                weight.add_(part)

    def pace(self, rate: float) -> None:
        """Set Adam's step size."""
        self._optimiser.rate = rate

    def follow(self, decay: float) -> None:
        """Move the average towards the weights."""
        self.average.lerp_(gan.flatten(self.weights), 1 - decay)

    def state(self) -> Arrays:
        """What :meth:`restore` needs to go on as if nothing had happened."""
        adam = self._optimiser
        arrays: Arrays = {"weights": self.flat.numpy(), "average": self.average.numpy().copy()}
        if adam.steps[0]:
            arrays["steps"] = np.array(float(adam.steps[0]))
            arrays["first"] = gan.flatten(adam.first).numpy()
            arrays["second"] = gan.flatten(adam.second).numpy()
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of :meth:`state`."""
        tensors = {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}
        with torch.no_grad():
            parts = unflatten(tensors["weights"], self.layers)
            for weight, part in zip(self.weights, parts, strict=True):
                weight.copy_(part)
        self.average = tensors["average"].clone()
        adam = Adam(self.weights, self._optimiser.rate, self._optimiser.betas)
        if "steps" in tensors:
            adam.steps = [tensors["steps"].float() for _ in self.weights]
            for name, moments in (("first", adam.first), ("second", adam.second)):
                parts = unflatten(tensors[name], self.layers)
                for moment, part in zip(moments, parts, strict=True):
                    moment.copy_(part)
        self._optimiser = adam
