"""What a whole job may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedsynth.errors import ConfigError
from fedsynth.privacy.trust import Trust, trust_of
from fedsynth.privacy.units import unit_of
from fedsynth.privacy.units.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a whole job may cost, everything included.

    Attributes:
        epsilon: positive; ``math.inf`` runs without privacy, and the certificate says so.
        delta: in (0, 1). Default: ``min(1e-5, 1/units**1.1)``, or 1e-5 where ``units`` is unknown.
        unit: whose presence is hidden: "record" (a row) or "client" (an owner with all its rows).
        trust: see :class:`Terms`.
        units: public number of units. At the client level it is known (the clients); at the record
            level the count is itself private, so give it only if it may be published.
    """

    epsilon: float
    delta: float | None = None
    unit: str = "record"
    trust: str = "distributed"
    units: int | None = None

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ConfigError(
                f"epsilon must be positive, not {self.epsilon}: at 0 no release may depend on the "
                "data at all (common values: 0.3 to 10)"
            )
        if self.delta is not None and not 0 < self.delta < 1:
            raise ConfigError(f"delta must be between 0 and 1, not {self.delta}")
        if self.units is not None and self.units < 1:
            raise ConfigError(f"units must be at least 1, not {self.units}")
        # Both are known, or they raise.
        _ = self.protects, self.trusts

    @property
    def protects(self) -> Unit:
        return unit_of(self.unit)

    @property
    def trusts(self) -> Trust:
        return trust_of(self.trust)

    @property
    def resolved_delta(self) -> float:
        """The delta in force."""
        if self.delta is not None:
            return self.delta
        return (
            self.protects.delta
            if self.units is None
            else min(self.protects.delta, math.pow(self.units, -1.1))
        )

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    def cautions(self) -> tuple[str, ...]:
        """What to know before believing this budget, in sentences."""
        found = []
        delta = self.resolved_delta
        if not self.private:
            found.append("No privacy: epsilon is infinite.")
        if self.units is not None and delta >= 1 / self.units:
            found.append(
                f"delta {delta:.3g} is at least 1/{self.units}: the definition would allow "
                f"publishing one whole {self.unit} outright. Choose a smaller delta."
            )
        if self.protects.few and self.units is not None and self.units < 100:
            found.append(self.protects.few.format(units=self.units))
        return tuple(found)
