"""What the adaptive server optimisers share (Reddi et al. 2021, Algorithm 2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class Adaptive(ABC):
    """m <- momentum m + (1 - momentum) mean; v by its rule; w <- w + learning_rate m / (sqrt v +
    floor). Unlike Adam's own, moments are not corrected for their start."""

    learning_rate: float = 0.01
    momentum: float = 0.9
    floor: float = 1e-3

    answers: ClassVar[int] = 1

    def start(self, dim: int) -> Floats:
        """First moments of 0, and second ones of the floor's square, the least that is allowed."""
        memory = np.zeros((2, dim), np.float32)
        memory[1] = self.floor**2
        return memory

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        first, squares = memory
        first *= np.float32(self.momentum)
        first += np.float32(1 - self.momentum) * moved
        squares[:] = self._second(squares, moved**2)
        root = np.sqrt(squares) + np.float32(self.floor)
        weights += np.float32(self.learning_rate) * first / root

    @abstractmethod
    def _second(self, squares: Floats, square: Floats) -> Floats:
        """From the second moments and the squared mean to the new second moments."""
