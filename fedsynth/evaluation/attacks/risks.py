"""What an attack on training rows gains over the same attack on rows that nobody learned from.

The measure is Anonymeter's (Giomi, Boenisch, Wehmeyer and Tasnadi 2023, "A Unified Framework for
Quantifying Privacy Risk in Synthetic Data"). What the release tells about everybody, member or not,
is no one's secret given away, and is subtracted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedsynth.evaluation.reading.confidence import ALARM, share_interval, shares_differ

MOST_ROWS = 200_000
"""Rows of a table that an attack uses; of more, so many are drawn at random."""


@dataclass(frozen=True)
class Risk:
    """One attack's outcome; every rate is in [0, 1].

    name: of the attack. column: the secret that was guessed, if it was one column.
    caught: the attack tells training rows from others, at `ALARM`. sentence: that in words.
    risk, low, high: (attack - control) / (1 - control), at least 0, and its 95 % interval.
    attack: success on training rows. control: the same on rows that the generator never saw.
    baseline: success of guessing at random. stronger: the attack beats that at the 5 % level;
        where it does not, a low risk says little.
    attempts: guesses made at training rows; 0 if there was nothing to try.
    """

    name: str
    column: str | None
    caught: bool
    sentence: str
    risk: float
    low: float
    high: float
    attack: float
    control: float
    baseline: float
    stronger: bool
    attempts: int


@dataclass(frozen=True)
class Hits:
    """Successes of the same guesses: `hits` of `members`, which were learned from, `missed` of
    `others`, which were not, and `lucky` of guesses at random at the members."""

    hits: int
    members: int
    missed: int
    others: int
    lucky: int

    @property
    def caught(self) -> bool:
        """Whether members are hit more often than others, by Fisher's exact test at `ALARM`."""
        return shares_differ(self.hits, self.members, self.missed, self.others) < ALARM

    @property
    def attack(self) -> float:
        """Success on members."""
        return self.hits / self.members

    @property
    def control(self) -> float:
        """Success on others."""
        return self.missed / self.others

    def risk(self, name: str, column: str | None, words: str) -> Risk:
        """As a risk; `words` say the rates, and how the alarm ended is added."""
        attack, control = self.attack, self.control
        stronger = beats_guessing(self.hits, self.lucky, self.members)
        low, high = residual_interval(attack, self.members, control, self.others)
        return Risk(
            name=name,
            column=column,
            caught=self.caught,
            sentence=f"{words}; that is {describe_alarm(self.caught, stronger)}",
            risk=residual(attack, control),
            low=low,
            high=high,
            attack=attack,
            control=control,
            baseline=self.lucky / self.members,
            stronger=stronger,
            attempts=self.members,
        )


def residual(attack: float, control: float) -> float:
    """(attack - control) / (1 - control), no less than 0; 0 where control leaves nothing to gain.

    >>> residual(0.7, 0.4), residual(0.3, 0.4), residual(1.0, 1.0)
    (0.5, 0.0, 0.0)
    """
    return max(0.0, (attack - control) / (1 - control)) if control < 1 else 0.0


def residual_interval(
    attack: float, attempts: int, control: float, controls: int
) -> tuple[float, float]:
    """95 % interval, within [0, 1], of the residual of two independent rates.

    The residual is 1 minus a ratio of failure rates, whose limits follow from those of each rate,
    here Clopper-Pearson's, by Donner and Zou's MOVER-R (2012), equation 9.
    """
    a, b = 1 - attack, 1 - control
    a_high, a_low = (1 - limit for limit in share_interval(attack * attempts, attempts))
    b_high, b_low = (1 - limit for limit in share_interval(control * controls, controls))
    least = _mover(a * b, a_low * (2 * a - a_low), b_high * (2 * b - b_high), -1)
    most = _mover(a * b, a_high * (2 * a - a_high), b_low * (2 * b - b_low), 1)
    return min(max(1 - most, 0.0), 1.0), min(max(1 - least, 0.0), 1.0)


def _mover(product: float, over: float, under: float, side: int) -> float:
    """A limit of a ratio; without a positive denominator it has none, so 0 or infinity."""
    if under <= 0:
        return math.inf if side > 0 else 0.0
    return max(product + side * math.sqrt(max(product**2 - over * under, 0.0)), 0.0) / under


def beats_guessing(attack: int, baseline: int, attempts: int) -> bool:
    """Whether so many successes are above those of random guesses, at the 5 % level."""
    return shares_differ(attack, attempts, baseline, attempts) < 0.05


def describe_alarm(caught: bool, stronger: bool) -> str:
    """How an attack's sentence ends."""
    if caught:
        return "more than chance allows: training rows are given away."
    if stronger:
        return "no more than chance allows."
    return "no more than chance allows; but guessing at random did as well, so this says little."
