"""What a whole job may cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, fields, replace

from fedsynth.agreed import demand_whole, plain
from fedsynth.demands import demand_kind, demand_known, demand_number
from fedsynth.errors import ConfigError
from fedsynth.privacy.trust import Trust, trust_of
from fedsynth.privacy.units import unit_of
from fedsynth.privacy.units.unit import Unit
from fedsynth.views import Grid, Said, Shown, View

_MOST_DELTA, _MOST_EPSILON = 1e-4, 10.0
# Epsilon times units below which one count with all of epsilon is off by some 4 % and more: the
# noise of a Gaussian count at a delta of 1e-5 deviates by about 4 / epsilon.
LEAST_SIGNAL = 100.0

# Rows of one person seldom agree in everything, so their mean is shorter than one row.
_PERSON_CLIP = 0.85
_NO_CLIP = (
    "weigh: row without the histogram of rows a person (person_share: 0) needs person_clip, how "
    "many rows' worth one person may count: a public number, chosen without looking at the rows. "
    "Noise grows with it, and rows of persons who have more count less; 2 to 4 did well for "
    "persons of up to some ten rows"
)
# Of the squared signal-to-noise ratio: all other noise is wider by 1 / sqrt(.99).
_PERSON_SHARE = 0.01
_OF_PERSONS = ("weigh", "person_clip", "person_share")

_TWO = (
    "two owners who each add a share of the noise (distributed trust) know half of it: choose. "
    "curious: 1 has each add all of it, and the other owner is held off as well as anybody; on "
    "Adult at epsilon 1 that cost .005 of AUROC and .004 of the distance of pairs. curious: 0 "
    "promises epsilon against others than these two alone: to the other owner a release of epsilon "
    "1 is one of 1.47"
)


@dataclass(frozen=True, repr=False)
class Budget(Shown):
    """What a whole job may cost, everything included.

    Attributes:
        epsilon: positive; ``math.inf`` runs without privacy, and the certificate says so.
        delta: in (0, 1). Default: ``min(1e-5, 1/units**1.1)``, or 1e-5 where ``units`` is unknown.
        unit: whose presence is hidden: "record" (a row), "person" (all its rows at one owner, whom
            the schema's `person` column tells) or "client" (an owner with all its rows).
        trust: see :class:`Terms`.
        units: public number of units. At the client level it is known (the clients); at the record
            level the count is itself private, so give it only if it may be published.
        curious: how many owners may put what they know of their own noise together and are still
            promised no more than epsilon, where clients add shares of it (distributed trust).
            Default: 1 from three clients on; of two it must be chosen.
        weigh: of persons, what a release is to describe: "person" (default), where each of a
            person's k rows weighs 1/k: rows of a random person; or "row", where each weighs 1:
            random rows.
        person_clip: of persons, to what the weighted sum of a person's rows is clipped, in norms of
            one row: a public number above 0. Default: 0.85 where persons weigh alike; where rows
            do it is chosen from the released histogram of rows a person. Noise grows with it, and
            below it persons of many rows count less.
        person_share: of persons, what the histogram of rows a person may use of the budget, as a
            share of the squared signal-to-noise ratio that a single Gaussian release could have.
            Default: 0.01. At 0 it is not asked.
    """

    epsilon: float
    _: KW_ONLY
    delta: float | None = None
    unit: str = "record"
    trust: str = "distributed"
    units: int | None = None
    curious: int | None = None
    weigh: str | None = None
    person_clip: float | None = None
    person_share: float | None = None

    def __post_init__(self) -> None:
        for own in fields(self):
            object.__setattr__(self, own.name, plain(getattr(self, own.name)))
        demand_number("epsilon", self.epsilon, "a number", lambda _: True)
        if not self.epsilon > 0:
            raise ConfigError(
                f"epsilon must be positive, not {self.epsilon}: at 0 no release may depend on the "
                "data at all (common values: 0.3 to 10)"
            )
        if self.delta is not None:
            demand_number("delta", self.delta, "between 0 and 1", lambda delta: 0 < delta < 1)
        for name, least in (("units", 1), ("curious", 0)):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, demand_whole(name, given, least))
        for name in ("unit", "trust"):
            demand_kind(name, getattr(self, name), str, "a text")
        # Both are known, or they raise.
        _ = self.protects, self.trusts
        self._demand_weighing()

    def _demand_weighing(self) -> None:
        """Fill in what a person's rows together count; ConfigError where that makes no sense."""
        if not self.protects.joined:
            for name in _OF_PERSONS:
                if getattr(self, name) is not None:
                    raise ConfigError(f"{name} is for unit: person, not {self.unit}: leave it out")
            return
        weigh, clip = "person" if self.weigh is None else self.weigh, self.person_clip
        demand_known("weigh", weigh, ("person", "row"))
        if self.person_share is not None:
            given = self.person_share
            demand_number("person_share", given, "0 or a share below 1", lambda one: 0 <= one < 1)
        if clip is None and weigh == "row" and not self.sizes_share:
            raise ConfigError(_NO_CLIP)
        if clip is None and weigh == "person":
            clip = _PERSON_CLIP
        if clip is not None:
            demand_number("person_clip", clip, "above 0", lambda clip: 0 < clip < math.inf)
            clip = float(clip)
            if weigh == "person" and clip > 1:
                raise ConfigError(
                    f"person_clip {clip:g} is more than a person's rows add up to where each "
                    "weighs 1/k: at most 1, or weigh: row"
                )
        object.__setattr__(self, "weigh", weigh)
        object.__setattr__(self, "person_clip", clip)

    @property
    def sizes_share(self) -> float:
        """What the histogram of rows a person may use; 0 where it is not asked."""
        if not self.protects.joined:
            return 0.0
        return _PERSON_SHARE if self.person_share is None else self.person_share

    @property
    def chooses_clip(self) -> bool:
        """Whether a person's rows are clipped as the histogram of rows a person will tell."""
        return self.protects.joined and self.person_clip is None

    def reach(self, norm: str) -> float:
        """How far a unit may move a sum of records' rows, in norms of one row; where that is not
        chosen yet, one.

        In L1 nothing cancels, so rows that weigh 1/k add up to exactly one.
        """
        if self.person_clip is None or (norm == "l1" and self.weigh == "person"):
            return 1.0
        return self.person_clip

    def __repr__(self) -> str:
        given: dict[str, object] = {"epsilon": self.epsilon, "delta": self.resolved_delta}
        given |= {"unit": self.unit, "trust": self.trust}
        more: dict[str, object] = {"units": self.units, "curious": self.curious}
        more |= {name: getattr(self, name) for name in _OF_PERSONS}
        given |= {name: value for name, value in more.items() if value is not None}
        return f"Budget({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def _view(self) -> View:
        facts = [
            ("epsilon", f"{self.epsilon:g}" if self.private else "infinite"),
            ("delta", f"{self.resolved_delta:.3g}"),
            ("protects", f"one {self.protects.words}"),
            ("trust", f"{self.trust}: {self.trusts.words}"),
        ]
        if self.weigh is not None:
            facts.append(("weigh", self.weigh))
            chosen = "chosen from the histogram of rows a person"
            facts.append(
                ("person_clip", chosen if self.chooses_clip else f"{self.person_clip:g} rows")
            )
        if self.units is not None:
            facts.append((f"{self.unit}s", f"{self.units:,}"))
        if self.curious is not None and self.trusts.shares:
            facts.append(("curious owners", str(self.curious)))
        cautions = [Said(one, "caution") for one in self.cautions()]
        return View("Budget", [Grid((), facts), *cautions])

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

    def for_clients(self, clients: int) -> Budget:
        """The same for so many clients: where they are the units their number is known, and so is
        how many of them may be curious.

        Raises:
            ConfigError: as many are to be curious as there are, or of two nobody said how many.
        """
        clients = demand_whole("clients", clients, 1)
        units, curious = self.units, self.curious
        if units is None and not self.protects.per_record:
            units = clients
        if curious is None and self.trusts.shares:
            if clients == 2 and self.private:
                raise ConfigError(_TWO)
            curious = min(1, clients - 1) if self.private else 0
        if curious and self.trusts.shares and curious >= clients:
            raise ConfigError(
                f"curious: {curious} of {clients} owners cannot all be protected from each other; "
                f"at most {clients - 1} can be curious"
            )
        return replace(self, units=units, curious=curious)

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    def cautions_by_estimate(self, count: float) -> tuple[str, ...]:
        """Further ones, by a noisy number of units that a job released where none was public."""
        if self.units is not None or not self.private:
            return ()
        known = replace(self, units=max(1, round(count)), delta=self.resolved_delta)
        further = [one for one in known.cautions() if one not in self.cautions()]
        return tuple(f"by the noisy count of {self.unit}s, {one.rstrip('.')}" for one in further)

    def _epsilon_cautions(self) -> Iterator[str]:
        if self.epsilon > _MOST_EPSILON:
            yield (
                f"epsilon {self.epsilon:g} is above {_MOST_EPSILON:g}: so loose a bound on what "
                f"anybody learns of one {self.unit} promises hardly anything. Common values are "
                "0.3 to 10."
            )
        if self.units is not None and self.epsilon * self.units < LEAST_SIGNAL:
            yield (
                f"epsilon {self.epsilon:g} is little for {self.units} {self.unit}s: the noise in a "
                f"single count, had it all of epsilon, would be of some {4 / self.epsilon:.2g}, "
                "and a table takes many counts. Expect little but noise."
            )

    def cautions(self, format: int = 2) -> tuple[str, ...]:
        """What to know before believing this budget, in sentences.

        Args:
            format: of the certificate that says them; format 1 knew fewer.
        """
        found = []
        delta = self.resolved_delta
        if not self.private:
            found.append("No privacy: epsilon is infinite.")
        if self.units is not None and delta >= 1 / self.units:
            found.append(
                f"delta {delta:.3g} is at least 1/{self.units}: the definition would allow "
                f"publishing one whole {self.unit} outright. Choose a smaller delta."
            )
        elif delta > _MOST_DELTA and format > 1:
            found.append(
                f"delta {delta:.3g} is above {_MOST_DELTA:g}: with that probability the guarantee "
                f"may fail altogether. It should lie well below one in the number of {self.unit}s; "
                "1e-5 is usual."
            )
        if format > 1 and self.private:
            found += self._epsilon_cautions()
        if self.protects.few and self.units is not None and self.units < 100:
            found.append(self.protects.few.format(units=self.units))
        return tuple(found)
