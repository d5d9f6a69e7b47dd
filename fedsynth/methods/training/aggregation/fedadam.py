"""FedAdam (Reddi et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.adaptive import Adaptive
from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedAdam(Adaptive):
    """v <- decay v + (1 - decay) mean^2."""

    decay: float = 0.99

    name: ClassVar[str] = "fedadam"

    def _second(self, squares: Floats, square: Floats) -> Floats:
        return np.float32(self.decay) * squares + np.float32(1 - self.decay) * square
