"""FedAdam (Reddi et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.adaptive import start_adaptive, step_adaptively
from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedAdam:
    """v <- decay v + (1 - decay) mean^2."""

    learning_rate: float = 0.01
    momentum: float = 0.9
    decay: float = 0.99
    floor: float = 1e-3

    name: ClassVar[str] = "fedadam"
    answers: ClassVar[int] = 1

    def start(self, dim: int) -> Floats:
        return start_adaptive(dim, self.floor)

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        step_adaptively(
            weights,
            moved,
            memory,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            floor=self.floor,
            second=self._second,
        )

    def _second(self, squares: Floats, square: Floats) -> Floats:
        return np.float32(self.decay) * squares + np.float32(1 - self.decay) * square
