"""Which units take part in a release, and what dp-accounting makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Everyone:
    """Every unit takes part: no amplification."""

    kind: ClassVar[str] = "everyone"
    rate: ClassVar[float] = 1.0
    replaces_one: ClassVar[bool] = False

    def draw(self, count: int, source: NoiseSource) -> Positions:
        """Positions of those of ``count`` units that take part, rising."""
        return np.arange(count)

    def event(self, noise: DpEvent) -> DpEvent:
        """A release with this noise of the units that take part."""
        return noise

    def known(self) -> Sampling:
        """The same for whoever knows who takes part: no amplification, the same relation."""
        return self


@dataclass(frozen=True)
class Poisson:
    """Each unit takes part by an independent coin flip, with probability ``rate`` in (0, 1]."""

    rate: float
    kind: ClassVar[str] = "poisson"
    replaces_one: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError(f"sampling rate must be in (0, 1], not {self.rate}")

    def draw(self, count: int, source: NoiseSource) -> Positions:
        return np.flatnonzero(source.uniform(count) < self.rate)

    def event(self, noise: DpEvent) -> DpEvent:
        from dp_accounting import PoissonSampledDpEvent

        return noise if self.rate == 1 else PoissonSampledDpEvent(self.rate, noise)

    def known(self) -> Sampling:
        return Everyone()


@dataclass(frozen=True)
class FixedSize:
    """Exactly ``size`` of ``population`` clients take part, drawn without replacement.

    Amplified under replace-one only, where exchanging a client moves a clipped sum by 2S, so it
    costs far more than :class:`Poisson` at the same noise (``papers``: the table of paper 001 was
    computed with S).
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

    def draw(self, count: int, source: NoiseSource) -> Positions:
        return np.sort(np.argsort(source.uniform(count))[: self.size])

    def event(self, noise: DpEvent) -> DpEvent:
        from dp_accounting import SampledWithoutReplacementDpEvent

        return SampledWithoutReplacementDpEvent(self.population, self.size, noise)

    def known(self) -> Sampling:
        return FixedSize(self.population, self.population)


Sampling = Everyone | Poisson | FixedSize
SAMPLINGS: dict[str, type[Sampling]] = {s.kind: s for s in (Everyone, Poisson, FixedSize)}
