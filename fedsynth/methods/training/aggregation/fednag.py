"""FedNAG (Yang et al. 2022): Nesterov's momentum at the clients, averaged like the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedNAG:
    """Weights and momentum each move by the mean of how far the clients' did.

    A client's row is both behind one another, clipped as one.

    Args:
        momentum: of the clients' steps.
    """

    momentum: float = 0.9

    name: ClassVar[str] = "fednag"
    answers: ClassVar[int] = 2

    def start(self, dim: int) -> Floats:
        return np.zeros((1, dim), np.float32)

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        weights += moved[: len(weights)]
        memory[0] += moved[len(weights) :]
