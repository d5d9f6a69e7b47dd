"""Who takes part: everybody, or whom an independent coin flip each lets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.privacy.curves import DpEvent
from fedsynth.privacy.noise import NoiseSource, Positions


@dataclass(frozen=True)
class Everyone:
    """Every unit takes part: no amplification."""

    kind: ClassVar[str] = "everyone"
    rate: ClassVar[float] = 1.0
    replaces_one: ClassVar[bool] = False
    words: ClassVar[str] = "everybody"

    def draw(self, count: int, source: NoiseSource) -> Positions:
        """Positions of those of ``count`` units that take part, rising."""
        return np.arange(count)

    def event(self, noise: DpEvent) -> DpEvent:
        """A release with this noise of the units that take part."""
        return noise

    def known(self) -> Everyone:
        """The same for whoever knows who takes part: no amplification, the same relation."""
        return self


@dataclass(frozen=True)
class Poisson:
    """Each unit takes part by its own coin flip, with probability ``rate`` in (0, 1]."""

    rate: float
    kind: ClassVar[str] = "poisson"
    replaces_one: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError(f"sampling rate must be in (0, 1], not {self.rate}")

    @property
    def words(self) -> str:
        return f"each with probability {self.rate:.3g}"

    def draw(self, count: int, source: NoiseSource) -> Positions:
        return np.flatnonzero(source.uniform(count) < self.rate)

    def event(self, noise: DpEvent) -> DpEvent:
        from dp_accounting import PoissonSampledDpEvent

        return noise if self.rate == 1 else PoissonSampledDpEvent(self.rate, noise)

    def known(self) -> Everyone:
        return Everyone()
