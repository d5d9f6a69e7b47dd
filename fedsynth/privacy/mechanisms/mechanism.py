"""What every mechanism answers. ``noise`` is always the multiplier: its scale over the clip."""

from __future__ import annotations

import math
from typing import ClassVar, Protocol, runtime_checkable

from fedsynth.privacy.curves import Curve, Loss
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Sampling
from fedsynth.privacy.trust import Trust


class Mechanism(Protocol):
    """A way to protect a release: a frozen dataclass without fields, or of one, ``alpha``.

    Attributes:
        name: in terms, and so in ledgers and certificates.
        norm: that the clip bounds: of a row, or of every block of one where it selects.
        selects: it releases nothing but which block of a sum scores highest.
        composes: its loss distribution is known.
        assumes, caution: words for the certificate, about trust and about the releases.
    """

    name: ClassVar[str]
    norm: ClassVar[Norm]
    selects: ClassVar[bool] = False
    composes: ClassVar[bool] = True
    assumes: ClassVar[str] = ""
    caution: ClassVar[str] = ""

    def admit(self, trust: Trust, sampling: Sampling) -> None:
        """Raises PrivacyError where it would protect nobody."""

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        """RDP of one release at all orders, where one unit comes, goes or replaces another, which
        moves the sum by twice the clip. Raises PrivacyError where no analysis covers it."""
        ...

    def loss(self, noise: float, sampling: Sampling, count: int) -> Loss:
        """The loss distribution of ``count`` releases, add/remove. Raises as the above."""
        ...


@runtime_checkable
class Additive(Mechanism, Protocol):
    """A mechanism that adds independent noise to every number of a sum."""

    wider: ClassVar[float] = 1.0
    """How much wider the noise is than its multiplier says, for what rounding costs."""

    def add(
        self, values: Draws, scale: float, shares: int, clip: float, source: NoiseSource
    ) -> Draws:
        """``values`` [n], which a unit moves by the clip at most, on a public grid with one of so
        many shares of noise, each of this scale: together of ``growth(shares)`` times as much."""
        ...

    def step(self, count: int, scale: float, clip: float) -> float:
        """Of the grid that :meth:`add` puts so many numbers on."""
        ...

    def growth(self, shares: float) -> float:
        """How many times one share's scale the sum of so many has: where variances add up."""
        return math.sqrt(shares)

    def left(self, others: int, shares: int) -> float:
        """How many times the noise of ``shares`` that of so many other shares is worth, 0 for
        nothing that is known: where variances add up, the ratio of their scales."""
        return self.growth(others) / self.growth(shares)

    def deviation(self, scale: float) -> float:
        """Standard deviation of noise of this scale, or what stands in for one."""
        ...

    def reach(self, dim: int, shares: int) -> float:
        """What the norm of ``dim`` numbers of one of so many shares of noise of scale 1 exceeds
        with probability 1e-14 at most."""
        ...
