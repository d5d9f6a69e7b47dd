"""What one release promises: the unit, who is trusted, the clip, the noise, the sampling.

These are frozen values. Clients read them to decide whether they answer, clipping and noise obey
them, and accounting turns them into epsilon: nothing else in fedsynth describes protection.

Neighbouring data sets differ by the addition or removal of one *unit* (a record or a whole client),
except where :class:`FixedSize` sampling forces the replace-one relation.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from fedsynth.errors import ConfigError, PrivacyError

Unit = Literal["record", "client"]
Trust = Literal["central", "distributed", "local"]
Norm = Literal["l2", "l1"]
Mechanism = Literal["gaussian", "laplace", "exponential", "stable"]

RECORD_DELTA = 1e-5

# The stable indices that are told from 2, which is Gaussian, with ten digits to spare.
LEAST_ALPHA, LARGEST_ALPHA = 1.0, 2 - 1e-6

# Who is trusted with less is trusted with more: a release may always be protected better.
PROTECTION: dict[Trust, int] = {"central": 0, "distributed": 1, "local": 2}


@dataclass(frozen=True)
class Everyone:
    """Every unit takes part: no amplification."""


@dataclass(frozen=True)
class Poisson:
    """Each unit takes part by an independent coin flip.

    Attributes:
        rate: probability of taking part, in (0, 1].
    """

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ConfigError(f"sampling rate must be in (0, 1], not {self.rate}")


@dataclass(frozen=True)
class FixedSize:
    """Exactly ``size`` of ``population`` clients take part, drawn without replacement.

    Amplified under replace-one only, where exchanging a client moves a clipped sum by 2S, so it
    costs far more than :class:`Poisson` at the same noise (``papers``: the table of paper 001 was
    computed with S).
    """

    size: int
    population: int

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.population:
            raise ConfigError(
                f"a fixed-size sample needs 1 <= size <= population, not {self.size} of "
                f"{self.population}"
            )


Sampling = Everyone | Poisson | FixedSize
_SAMPLINGS: dict[str, type[Sampling]] = {
    "everyone": Everyone,
    "poisson": Poisson,
    "fixed-size": FixedSize,
}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How the sum of one round's contributions is protected.

    Attributes:
        unit: what one contribution belongs to.
        trust: who adds the noise: the server (central), all clients a share each (distributed), or
            every client the whole of it (local). Under distributed and local trust who takes part
            shows (in the messages, and in how much noise their sum carries), so at the client level
            what they hide is a client's data, not its presence: neighbours differ in one client
            whose contribution is zero in one of them.
        clip: bound on how far one unit moves the sum, positive: on the norm of its contribution;
            where rows belong to groups of records, on the difference of any two rows
            (:mod:`fedsynth.privacy.rows.exchanging`).
        norm: the norm that the clip bounds; Gaussian noise needs "l2", the others "l1".
        noise_multiplier: noise over the clip: in the released sum a standard deviation (Gaussian)
            or a scale (Laplace, stable); exponential, the scale of the Gumbel noise in every score.
            0 adds none and makes epsilon infinite.
        mechanism: gaussian, laplace or stable (symmetric alpha-stable,
            :mod:`fedsynth.privacy.mechanisms.stable`) noise in a released sum; or exponential,
            which releases nothing but which block of the sum lies furthest from a public estimate.
            That needs a server who may see the sum (central), and everybody asked; the clip then
            bounds each block of a unit's contribution.
        sampling: which units take part. At the record level a client draws its own records in
            secret; at the client level the server draws clients.
        survivors: under distributed trust the number of answers that together carry the whole
            noise; a round with fewer fails. It means nothing under central and local trust.
        alpha: index of stable noise, in [1, 2): 1 is Cauchy noise, towards 2 it becomes Gaussian
            (of standard deviation ``sqrt(2)`` times the scale); None for all others.
    """

    unit: Unit
    trust: Trust
    clip: float
    noise_multiplier: float
    norm: Norm = "l2"
    mechanism: Mechanism = "gaussian"
    sampling: Sampling = Everyone()
    survivors: int = 1
    alpha: float | None = None

    def __post_init__(self) -> None:
        _member("unit", self.unit, Unit)
        _member("trust", self.trust, Trust)
        _member("norm", self.norm, Norm)
        _member("mechanism", self.mechanism, Mechanism)
        if not (math.isfinite(self.clip) and self.clip > 0):
            raise ConfigError(f"clip must be a positive number, not {self.clip}")
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise ConfigError(f"noise_multiplier must be 0 or more, not {self.noise_multiplier}")
        if self.survivors < 1:
            raise ConfigError(f"survivors must be at least 1, not {self.survivors}")
        self._agree()

    def _agree(self) -> None:
        """Raises PrivacyError, or ConfigError, for parts that together protect nobody."""
        if (self.mechanism == "gaussian") != (self.norm == "l2"):
            raise PrivacyError(
                "Gaussian noise protects an L2 clip; Laplace and stable noise and the exponential "
                "mechanism an L1 clip"
            )
        if (self.mechanism == "stable") != (self.alpha is not None):
            raise PrivacyError("stable noise needs its index alpha, and no other mechanism has one")
        if self.alpha is not None and not LEAST_ALPHA <= self.alpha <= LARGEST_ALPHA:
            raise ConfigError(
                f"alpha must be in [1, 2), at most {LARGEST_ALPHA}, not {self.alpha}: use Gaussian "
                "noise instead of alpha 2"
            )
        if self.mechanism == "exponential" and not (
            self.trust == "central" and self.sampling == Everyone()
        ):
            raise PrivacyError(
                "the exponential mechanism needs a trusted server, who sees the exact scores, and "
                "everybody asked: select among noisy sums instead"
            )
        if self.mechanism == "laplace" and self.trust == "distributed":
            raise PrivacyError(
                "shares of Laplace noise do not add up to Laplace: use Gaussian or stable noise"
            )
        if isinstance(self.sampling, FixedSize) and self.unit == "record":
            raise PrivacyError("fixed-size samples are for clients; records are Poisson-sampled")

    @property
    def scale(self) -> float:
        """Noise of the whole release: standard deviation (Gaussian) or scale (Laplace, stable)."""
        return self.noise_multiplier * self.clip

    @property
    def client_scale(self) -> float:
        """Noise that each answering client adds to its own message.

        Distributed: ``scale / sqrt(survivors)``, so that ``survivors`` independent shares have the
        variance of the whole; stable noise has no variance, and ``scale / survivors^(1/alpha)``
        does it. More answers add more noise, never less. Local: all of it.
        """
        if self.trust == "central":
            return 0.0
        if self.trust == "local":
            return self.scale
        return self.scale / self._growth(self.survivors)

    def summed_scale(self, answered: int) -> float:
        """Noise, as :attr:`scale`, in a sum of ``answered`` answers that carry it.

        Where nobody answered, and under central trust, the server adds the whole.
        """
        if self.trust == "central" or not answered:
            return self.scale
        return self.client_scale * self._growth(answered)

    def _growth(self, shares: int) -> float:
        """How many times one share's scale the sum of ``shares`` of them has."""
        return math.sqrt(shares) if self.alpha is None else shares ** (1 / self.alpha)

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        if self.alpha is None:
            # As terms were written before there was stable noise: the same line, the same hash.
            del plain["alpha"]
        name = next(k for k, v in _SAMPLINGS.items() if isinstance(self.sampling, v))
        plain["sampling"] = {"kind": name, **plain["sampling"]}
        return plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Terms:
        """Raises PrivacyError where ``plain`` is not exactly what :meth:`to_dict` gives."""
        try:
            fields = dict(plain)
            sampling = dict(fields.pop("sampling"))
            terms = Terms(sampling=_SAMPLINGS[sampling.pop("kind")](**sampling), **fields)
            if terms.to_dict() != plain:
                raise PrivacyError("unreadable privacy terms: a field is missing")
        except (KeyError, TypeError, ValueError, ConfigError):
            raise PrivacyError("unreadable privacy terms: not what fedsynth writes") from None
        return terms


# A clip is part of all terms; numbers below 1e100 never come near this one, so it bounds nothing.
_NO_BOUND = 1e150


def unprotected() -> Terms:
    """Of a client's message as it is, with no noise: its epsilon is infinite."""
    return Terms(unit="client", trust="local", clip=_NO_BOUND, noise_multiplier=0.0)


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
    unit: Unit = "record"
    trust: Trust = "distributed"
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
        _member("unit", self.unit, Unit)
        _member("trust", self.trust, Trust)

    @property
    def resolved_delta(self) -> float:
        """The delta in force."""
        if self.delta is not None:
            return self.delta
        if self.units is None:
            return RECORD_DELTA
        return min(RECORD_DELTA, math.pow(self.units, -1.1))

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
        if self.unit == "client" and self.units is not None and self.units < 100:
            found.append(
                f"A client-level guarantee over {self.units} clients hides each among few: useful "
                "noise levels come at epsilons too large to protect anybody. Protect records, or "
                "find more clients."
            )
        return tuple(found)


def _member(name: str, value: str, literal: Any) -> None:
    if value not in get_args(literal):
        raise ConfigError(f"{name} must be one of {', '.join(get_args(literal))}, not {value!r}")
