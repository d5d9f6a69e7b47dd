"""FedAdagrad (Reddi et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsynth.methods.training.aggregation.adaptive import start_adaptive, step_adaptively
from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedAdagrad:
    """v <- v + mean^2, which never falls: steps become ever shorter."""

    learning_rate: float = 0.01
    momentum: float = 0.0
    floor: float = 1e-3

    name: ClassVar[str] = "fedadagrad"
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
            second=lambda squares, square: squares + square,
        )
