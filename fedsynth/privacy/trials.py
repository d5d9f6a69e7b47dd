"""How many trials there are of which the best alone is released: public laws of a secret number.

Papernot and Steinke 2022, "Hyperparameter tuning with Renyi differential privacy", definition 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.privacy.noise import NoiseSource

_RARE = 1e-3
_MOST_MEAN = 10_000
_NEVER = 1e-15
"""Numbers that are exceeded less often are not drawn: as far from the law as rounding is."""

Kind = Literal["logarithmic", "geometric", "poisson"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Trials:
    """A public distribution of how many trials there are.

    Attributes:
        mean: at least 1.
        kind: "logarithmic" and "geometric", negative binomial distributions without 0 of shape 0
            and 1; or "poisson", by which there may be no trial, and then nothing is released.
    """

    mean: float
    kind: Kind

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"numbers of trials are {', '.join(KINDS)}, not {self.kind!r}")
        if not 1 <= self.mean <= _MOST_MEAN:
            raise ConfigError(
                f"trials must be 1 to {_MOST_MEAN:,} on average, not {self.mean}: their number "
                "is drawn by chance"
            )

    @property
    def shape(self) -> int:
        """Of a negative binomial distribution."""
        return int(self.kind == "geometric")

    @cached_property
    def gamma(self) -> float:
        """Parameter of a negative binomial distribution, in (0, 1], that gives the mean."""
        from scipy.optimize import brentq

        if self.kind == "geometric" or self.mean == 1:
            return 1 / self.mean

        # The mean is (1/gamma - 1) / log(1/gamma) (definition 1).
        def excess(log: float) -> float:
            return math.expm1(log) / log - self.mean

        return math.exp(-brentq(excess, 1e-12, 2 * math.log(self.mean) + 2, xtol=1e-12))

    def generate(self, x: float) -> float:
        """The generating function: the expectation of x to the power of the number, 0 <= x <= 1."""
        if self.kind == "poisson":
            return math.exp(self.mean * (x - 1))
        if self.mean == 1:
            return x
        rest = 1 - (1 - self.gamma) * x
        if self.kind == "geometric":
            return self.gamma * x / rest
        return math.log(rest) / math.log(self.gamma)

    def finds(self, share: float) -> float:
        """How likely one trial at least takes settings of the best ``share`` of the list."""
        return 1 - self.generate(1 - share)

    @property
    def often_none(self) -> bool:
        """Whether there is no trial more often than once in a thousand times."""
        return self.generate(0.0) > _RARE

    @cached_property
    def most(self) -> int:
        """A number that is exceeded once in a thousand times."""
        return self._at(_RARE)

    def draw(self, source: NoiseSource) -> int:
        """A number of trials; secret, as what ``source`` draws is. Whoever knows it is promised
        nothing."""
        return self._at(max(float(source.uniform(1)[0]), _NEVER))

    def _at(self, beyond: float) -> int:
        """The least number that is exceeded with probability ``beyond`` at most.

        Args:
            beyond: in [1e-15, 1).
        """
        from scipy import stats

        if self.mean == 1 and self.kind != "poisson":
            return 1
        if self.kind == "geometric":
            return max(1, math.ceil(math.log(beyond) / math.log1p(-self.gamma)))
        if self.kind == "poisson":
            return int(stats.poisson(self.mean).isf(beyond))
        # Summed from the far end, where masses are small: P(K >= k) for k = 1, 2, ..
        numbers = np.arange(1, int(40 / self.gamma) + 2)
        logs = numbers * math.log1p(-self.gamma) - np.log(-numbers * math.log(self.gamma))
        return int((np.exp(logs)[::-1].cumsum() > beyond).sum())
