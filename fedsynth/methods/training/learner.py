"""A network that learns by Adam, and the moving average of its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.models import gan
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
        self._optimiser = torch.optim.Adam(self.weights, lr=rate or 1e-3, betas=betas)

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
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        self._optimiser.step()

    def move(self, difference: Tensor) -> None:
        """Add a flat vector to the weights."""
        with torch.no_grad():
            parts = unflatten(difference, self.layers)
            for weight, part in zip(self.weights, parts, strict=True):
                weight.add_(part)

    def pace(self, rate: float) -> None:
        """Set Adam's step size."""
        for group in self._optimiser.param_groups:
            group["lr"] = rate

    def follow(self, decay: float) -> None:
        """Move the average towards the weights."""
        self.average.lerp_(gan.flatten(self.weights), 1 - decay)

    def state(self) -> Arrays:
        """What :meth:`restore` needs to go on as if nothing had happened."""
        moments = [self._optimiser.state.get(weight, {}) for weight in self.weights]
        arrays: Arrays = {"weights": self.flat.numpy(), "average": self.average.numpy().copy()}
        if moments[0]:
            arrays["steps"] = np.array(float(moments[0]["step"]))
            arrays["first"] = gan.flatten([m["exp_avg"] for m in moments]).numpy()
            arrays["second"] = gan.flatten([m["exp_avg_sq"] for m in moments]).numpy()
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of :meth:`state`."""
        tensors = {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}
        with torch.no_grad():
            parts = unflatten(tensors["weights"], self.layers)
            for weight, part in zip(self.weights, parts, strict=True):
                weight.copy_(part)
        self.average = tensors["average"].clone()
        self._optimiser.state.clear()
        if "steps" not in tensors:
            return
        moments = zip(
            self.weights,
            unflatten(tensors["first"], self.layers),
            unflatten(tensors["second"], self.layers),
            strict=True,
        )
        for weight, first, second in moments:
            self._optimiser.state[weight] = {
                "step": tensors["steps"].float(),
                "exp_avg": first.clone(),
                "exp_avg_sq": second.clone(),
            }
