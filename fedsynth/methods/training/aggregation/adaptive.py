"""What the adaptive server optimisers share (Reddi et al. 2021, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedsynth.methods.training.aggregation.aggregation import Floats

Second = Callable[[Floats, Floats], Floats]
"""From the second moments and the squared mean to the new second moments."""


def start_adaptive(dim: int, floor: float) -> Floats:
    """First moments of 0, and second ones of the floor's square, the least that is allowed."""
    memory = np.zeros((2, dim), np.float32)
    memory[1] = floor**2
    return memory


def step_adaptively(
    weights: Floats,
    moved: Floats,
    memory: Floats,
    *,
    learning_rate: float,
    momentum: float,
    floor: float,
    second: Second,
) -> None:
    """m <- momentum m + (1 - momentum) mean; v by its rule; w <- w + learning_rate m / (sqrt v +
    floor). Unlike Adam's own, moments are not corrected for their start."""
    first, squares = memory
    first *= np.float32(momentum)
    first += np.float32(1 - momentum) * moved
    squares[:] = second(squares, moved**2)
    weights += np.float32(learning_rate) * first / (np.sqrt(squares) + np.float32(floor))
