"""What every mechanism answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from fedsynth.privacy.curves import Curve
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Sampling
from fedsynth.privacy.trust import Trust

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


class Mechanism(Protocol):
    """A way to protect a release: a frozen dataclass without fields, or of one, ``alpha``.

    ``noise`` is always the noise multiplier: the scale of the noise over the clip.

    Attributes:
        name: in terms, and so in ledgers and certificates.
        norm: that the clip bounds: of a row or, where it ``selects``, of every block of a row.
        selects: it releases nothing but which block of a sum scores highest.
        assumes, caution: words for the certificate: beside those of the trust model, and about the
            releases that used it; both may be empty.
    """

    name: ClassVar[str]
    norm: ClassVar[Norm]
    selects: ClassVar[bool]
    assumes: ClassVar[str]
    caution: ClassVar[str]

    def admit(self, trust: Trust, sampling: Sampling) -> None:
        """Raises PrivacyError, or ConfigError, where it protects nobody."""
        ...

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        """RDP of one release at :func:`~fedsynth.privacy.curves.orders`.

        Args:
            replace_one: a unit is exchanged, which moves a clipped sum by twice the clip.

        Raises:
            PrivacyError: no analysis covers it.
        """
        ...

    def loss(self, noise: float, sampling: Sampling, count: int) -> PrivacyLossDistribution:
        """That of ``count`` releases under add/remove. Raises as :meth:`renyi`."""
        ...


@runtime_checkable
class Additive(Mechanism, Protocol):
    """A mechanism that adds independent noise to every number of a sum."""

    def draw(self, count: int, source: NoiseSource) -> Draws:
        """Noise of a whole release at scale 1, shape [count]."""
        ...

    def share(self, count: int, shares: int, source: NoiseSource) -> Draws:
        """One client's part, times ``growth(shares)``: so many of them add up to :meth:`draw`."""
        ...

    def growth(self, shares: float) -> float:
        """How many times one share's scale the sum of so many shares has."""
        ...

    def deviation(self, scale: float) -> float:
        """Standard deviation of noise of this scale, or what stands in for one."""
        ...

    def reach(self, dim: int, shares: int) -> float:
        """What the norm of ``dim`` numbers of one share exceeds with probability 1e-14 at most.

        The share is one of ``shares`` (1: the whole) of noise of scale 1.
        """
        ...
