"""Gradient descent with momentum on one flat vector: post-processing of noisy gradients.

Under clipping and noise it beat Adam, whose second moments measure little but the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

DECAY = 0.9


@dataclass
class Momentum:
    """Weights [n] and their velocity [n] (Polyak 1964)."""

    weights: Floats
    velocity: Floats

    @staticmethod
    def start(weights: Floats) -> Momentum:
        return Momentum(weights.astype(np.float32, copy=True), np.zeros(len(weights), np.float32))

    def step(self, gradient: Floats, learning_rate: float) -> None:
        """Move the weights against ``gradient``."""
        self.velocity *= np.float32(DECAY)
        self.velocity += gradient
        self.weights -= np.float32(learning_rate) * self.velocity

    def to_vector(self) -> Floats:
        """Both in one vector, [2n]."""
        return np.concatenate([self.weights, self.velocity])

    @staticmethod
    def from_vector(vector: Floats) -> Momentum:
        weights, velocity = np.split(vector, 2)
        return Momentum(weights.copy(), velocity.copy())
