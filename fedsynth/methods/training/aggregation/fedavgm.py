"""FedAvgM (Hsu, Qi, Brown 2019): momentum at the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedAvgM:
    """v <- momentum v + mean; w <- w + learning_rate v.

    Paper 003 has the difference the other way round, and would climb.
    """

    learning_rate: float = 1.0
    momentum: float = 0.9

    name: ClassVar[str] = "fedavgm"
    answers: ClassVar[int] = 1

    def start(self, dim: int) -> Floats:
        return np.zeros((1, dim), np.float32)

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        memory *= np.float32(self.momentum)
        memory += moved
        weights += np.float32(self.learning_rate) * memory[0]
