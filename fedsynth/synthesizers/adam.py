"""Adam on one flat vector (Kingma and Ba 2015, Algorithm 1): post-processing of noisy gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-10


@dataclass
class Adam:
    """Weights [n] with their moments and the number of steps taken."""

    weights: Floats
    first: Floats
    second: Floats
    steps: int = 0

    @staticmethod
    def start(weights: Floats) -> Adam:
        copy = weights.astype(np.float32, copy=True)
        return Adam(copy, np.zeros_like(copy), np.zeros_like(copy))

    def step(self, gradient: Floats, learning_rate: float) -> None:
        """Move the weights against ``gradient``."""
        self.steps += 1
        self.first += (1 - BETA1) * (gradient - self.first)
        self.second += (1 - BETA2) * (gradient * gradient - self.second)
        mean = self.first / (1 - BETA1**self.steps)
        scale = np.sqrt(self.second / (1 - BETA2**self.steps)) + EPSILON
        self.weights -= np.float32(learning_rate) * mean / scale

    def to_vector(self) -> Floats:
        """Everything in one vector, [1 + 3n]."""
        head = np.array([self.steps], np.float32)
        return np.concatenate([head, self.weights, self.first, self.second])

    @staticmethod
    def from_vector(vector: Floats) -> Adam:
        weights, first, second = (part.copy() for part in np.split(vector[1:], 3))
        return Adam(weights, first, second, int(vector[0]))
