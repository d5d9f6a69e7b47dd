"""FedAvg (McMahan et al. 2017), clients weighted alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedAvg:
    """w + mean: clients weigh the same, since the largest weight would set the sensitivity."""

    name: ClassVar[str] = "fedavg"
    answers: ClassVar[int] = 1

    def start(self, dim: int) -> Floats:
        return np.zeros((0, dim), np.float32)

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        weights += moved
