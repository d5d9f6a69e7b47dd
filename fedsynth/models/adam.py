"""Adam by torch's kernels, without the compiler that torch's optimisers import for their first."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Adam's steps (Kingma & Ba 2015) for some weights, which are changed in place.

    Args:
        weights: leaves, contiguous: the kernel walks memory, whatever the strides.
        rate: step size; may be set anew between steps.
        betas: decay of the mean gradient and of the mean square.
        decay: of the weights, apart from the gradient (AdamW, Loshchilov & Hutter 2019).
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        decay: float = 0.0,
    ) -> None:
        self.rate, self.betas, self.decay = rate, betas, decay
        self.weights = list(weights)
        assert all(weight.is_contiguous() for weight in self.weights)
        self.first = [torch.zeros_like(weight) for weight in self.weights]
        self.second = [torch.zeros_like(weight) for weight in self.weights]
        self.steps = [torch.zeros(()) for _ in self.weights]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step against a gradient, of every weight in order."""
        along = [gradient.contiguous() for gradient in gradients]
        with torch.no_grad():
            adam(
                self.weights, along, self.first, self.second, [], self.steps,
                fused=True, decoupled_weight_decay=True, weight_decay=self.decay,
                lr=self.rate, beta1=self.betas[0], beta2=self.betas[1], eps=1e-8,
                amsgrad=False, maximize=False,
            )  # fmt: skip
