"""FedNova (Wang et al. 2020): clients that took more steps do not pull further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedNova:
    """w <- w + learning_rate mean of (difference / steps that the client took).

    The learning rate stands for the paper's effective number of steps, the mean of those that
    clients took: it tells of their records, so here it is a public figure. The clip bounds a
    client's mean step. (Paper 002 leaves the division out, which is all there is to it.)
    """

    learning_rate: float = 1.0

    name: ClassVar[str] = "fednova"
    answers: ClassVar[int] = 1

    def start(self, dim: int) -> Floats:
        return np.zeros((0, dim), np.float32)

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        weights += np.float32(self.learning_rate) * moved
