"""SCAFFOLD (Karimireddy et al. 2020): steps corrected by how clients drift apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class Scaffold2:
    """w <- w + mean difference; c <- c + share mean change of the clients' control variates.

    Control variates are kept times the clients' learning rate, as what a step adds. A client's row
    is its difference and the change of its own variate behind one another, clipped as one: its own
    stays with it, unclipped, so the server's is no longer quite their mean. Option ii of the paper,
    by the mean of the steps that were taken.

    Args:
        share: of the clients that a round draws.
    """

    share: float = 1.0

    name: ClassVar[str] = "scaffold-2"
    answers: ClassVar[int] = 2

    def start(self, dim: int) -> Floats:
        return np.zeros((1, dim), np.float32)

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        weights += moved[: len(weights)]
        memory[0] += np.float32(self.share) * moved[len(weights) :]


@dataclass(frozen=True)
class Scaffold1(Scaffold2):
    """The same with option i: a client's variate is its gradient at the round's weights."""

    name: ClassVar[str] = "scaffold-1"
