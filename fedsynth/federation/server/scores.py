"""How the channel scores blocks of a sum, to select one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError


@dataclass(frozen=True)
class Scores:
    """How blocks of a sum are scored: all of it public.

    Attributes:
        estimate: what the sum is thought to be, [dim].
        starts: where each block begins, rising from 0, [blocks].
        weights: of each block's score, in (0, 1].
        penalties: taken off each block's distance.

    Raises:
        ConfigError: shapes that do not fit, or a weight outside (0, 1].
    """

    estimate: NDArray[np.float64]
    starts: NDArray[np.int64]
    weights: NDArray[np.float64]
    penalties: NDArray[np.float64]

    def __post_init__(self) -> None:
        starts = self.starts
        rising = len(starts) > 0 and starts[0] == 0 and (np.diff(starts) > 0).all()
        if not rising or starts[-1] >= len(self.estimate):
            raise ConfigError("blocks to select from must begin at rising places from 0")
        if not self.weights.shape == self.penalties.shape == starts.shape:
            raise ConfigError("every block to select from needs one weight and one penalty")
        inside = (self.weights > 0) & (self.weights <= 1) & np.isfinite(self.penalties)
        if not inside.all() or not np.isfinite(self.estimate).all():
            raise ConfigError("weights of blocks must lie in (0, 1], all else must be finite")

    def of(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """``weight * (||total - estimate||_1 - penalty)`` of every block."""
        distances = np.add.reduceat(np.abs(total - self.estimate), self.starts)
        scores: NDArray[np.float64] = self.weights * (distances - self.penalties)
        return scores
