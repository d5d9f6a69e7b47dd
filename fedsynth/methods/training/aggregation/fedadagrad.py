"""FedAdagrad (Reddi et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsynth.methods.training.aggregation.adaptive import Adaptive
from fedsynth.methods.training.aggregation.aggregation import Floats


@dataclass(frozen=True)
class FedAdagrad(Adaptive):
    """v <- v + mean^2, which never falls: steps become ever shorter."""

    momentum: float = 0.0

    name: ClassVar[str] = "fedadagrad"

    def _second(self, squares: Floats, square: Floats) -> Floats:
        return squares + square
