"""What one release promises. Clients read terms to decide whether they answer, clipping and noise
obey them, accounting turns them into epsilon: nothing else in fedsynth describes protection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.mechanisms import mechanism_of
from fedsynth.privacy.mechanisms.mechanism import Additive, Mechanism
from fedsynth.privacy.noise import Draws, NoiseSource
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Everyone, Sampling
from fedsynth.privacy.trust import Trust, trust_of
from fedsynth.privacy.units import unit_of
from fedsynth.privacy.units.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How the sum of one round's contributions is protected.

    Attributes:
        unit, trust, mechanism: names of what is hidden (neighbours differ by one, added or removed;
            where samples of a fixed size force it, replaced), who is trusted, and the noise.
        clip: bound on how far one unit moves the sum, positive: on the norm of its contribution;
            where rows belong to groups of records, on the difference of any two rows.
        norm: that the clip bounds: the mechanism's.
        noise_multiplier: scale of the noise over the clip; 0 adds none, and epsilon is infinite.
        sampling: which units take part: records drawn in secret at their client, or clients by the
            server.
        survivors: where clients add shares of the noise, the fewest answers of a round; one with
            fewer fails. Else it means nothing.
        curious: how many of these may come from owners that take their own shares of the noise off
            again: the others together carry the whole.
        alpha: index of a mechanism that is one of a family, else None.
        weigh: where a unit's records are joined, what has weight 1: "person" or "row"; else None.
    """

    unit: str
    trust: str
    clip: float
    noise_multiplier: float
    norm: Norm = "l2"
    mechanism: str = "gaussian"
    sampling: Sampling = field(default_factory=Everyone)
    survivors: int = 1
    curious: int = 0
    alpha: float | None = None
    weigh: str | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for parts that are none, PrivacyError for parts that do not fit."""
        if not (math.isfinite(self.clip) and self.clip > 0):
            raise ConfigError(f"clip must be a positive number, not {self.clip}")
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise ConfigError(f"noise_multiplier must be 0 or more, not {self.noise_multiplier}")
        if self.survivors < 1:
            raise ConfigError(f"survivors must be at least 1, not {self.survivors}")
        if not 0 <= self.curious < self.survivors or (self.curious and not self.trusts.shares):
            raise ConfigError(f"curious: {self.curious} of {self.survivors} leave no shares whole")
        if self.norm not in ("l1", "l2"):
            raise ConfigError(f"norm must be l1 or l2, not {self.norm!r}")
        if self.norm != self.kind.norm:
            raise PrivacyError(f"{self.mechanism} protects a clip in {self.kind.norm} alone")
        self.kind.admit(self.trusts, self.sampling)
        if self.protects.per_record and self.sampling.replaces_one:
            raise PrivacyError("fixed-size samples are for clients; records are Poisson-sampled")
        if self.weigh not in (("person", "row") if self.protects.joined else (None,)):
            raise PrivacyError(f"{self.unit}s' rows cannot be weighed by {self.weigh}")

    @property
    def protects(self) -> Unit:
        return unit_of(self.unit)

    @property
    def trusts(self) -> Trust:
        return trust_of(self.trust)

    @property
    def kind(self) -> Mechanism:
        return mechanism_of(self.mechanism, self.alpha)

    @property
    def noise(self) -> Additive:
        """The mechanism, where it adds noise to sums; else PrivacyError."""
        if self.kind.selects:
            raise PrivacyError(f"the {self.mechanism} mechanism releases a choice, never values")
        return cast(Additive, self.kind)

    @property
    def scale(self) -> float:
        """Of the noise of the whole release: its multiplier times the clip, and a hair."""
        wider = 1.0 if self.kind.selects else self.noise.wider
        return self.noise_multiplier * self.clip * wider

    @property
    def shares(self) -> int:
        """In how many parts clients add the whole noise: 1 where each adds all of it."""
        return self.survivors - self.curious if self.trusts.shares else 1

    @property
    def fewest(self) -> int:
        """Answers that a round needs, or an honest one may lack the whole noise beside it."""
        return self.survivors if self.shares > 1 and self.scale > 0 else 1

    @property
    def client_scale(self) -> float:
        """Of the noise that each answering client adds: more answers add more, never less."""
        return 0.0 if self.trusts.server_adds else self.scale / self.noise.growth(self.shares)

    def summed_scale(self, answered: int) -> float:
        """Of the noise in a sum of so many answers; where there is none the server adds it all."""
        if self.trusts.server_adds or not answered:
            return self.scale
        return self.client_scale * self.noise.growth(answered)

    def noised(self, values: Draws, source: NoiseSource) -> Draws:
        """``values`` [n] with the noise of the whole release, on a public grid."""
        if self.scale == 0:
            return values
        return self.noise.add(values, self.scale, 1, self.clip, source)

    def client_noised(self, values: Draws, source: NoiseSource) -> Draws:
        """``values`` [n] with what an answering client adds: nothing, its share, or the whole."""
        if self.client_scale == 0:
            return values
        return self.noise.add(values, self.client_scale, self.shares, self.clip, source)
