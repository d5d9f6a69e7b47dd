"""FedYogi (Reddi et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.methods.training.aggregation.adaptive import Adaptive
from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedYogi(Adaptive):
    """v <- v - (1 - decay) mean^2 sign(v - mean^2), which falls slower than FedAdam's."""

    decay: float = 0.99

    name: ClassVar[str] = "fedyogi"

    def _second(self, squares: Floats, square: Floats) -> Floats:
        found: Floats = squares - np.float32(1 - self.decay) * square * np.sign(squares - square)
        return found
