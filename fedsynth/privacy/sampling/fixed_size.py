"""Samples of a fixed size, drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.privacy.curves import DpEvent
from fedsynth.privacy.noise import NoiseSource, Positions


@dataclass(frozen=True)
class FixedSize:
    """Exactly ``size`` of ``population`` clients take part, drawn without replacement.

    Amplified under replace-one only, where exchanging a client moves a clipped sum by 2S, so it
    costs far more than Poisson samples at the same noise (the table of paper 001 was computed with
    S).
    """

    size: int
    population: int
    kind: ClassVar[str] = "fixed-size"
    rate: ClassVar[None] = None
    replaces_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.population:
            raise ConfigError(
                f"a fixed-size sample needs 1 <= size <= population, not {self.size} of "
                f"{self.population}"
            )

    @property
    def words(self) -> str:
        return f"{self.size:,} of {self.population:,}"

    def draw(self, count: int, source: NoiseSource) -> Positions:
        return np.sort(np.argsort(source.uniform(count))[: self.size])

    def event(self, noise: DpEvent) -> DpEvent:
        from dp_accounting import SampledWithoutReplacementDpEvent

        return SampledWithoutReplacementDpEvent(self.population, self.size, noise)

    def known(self) -> FixedSize:
        return FixedSize(self.population, self.population)
