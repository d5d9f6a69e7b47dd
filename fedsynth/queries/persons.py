"""How many rows a person has: one histogram of persons, asked before all else.

A person is in one bin, so it moves the histogram by one, however many rows it has. From what is
released follow, at no further cost, how many persons there are, how many rows they have on average,
in groups of which sizes rows may be drawn, and to what a person's rows are to be clipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ReleaseError
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.counts import Blocks
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.estimates import to_simplex
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.queries.tasks.persons import BINS, ENDS, KEY, ROWS_A_PERSON
from fedsynth.queries.terms import terms_for_everyone

Floats = NDArray[np.float64]

LABEL = ROWS_A_PERSON.name
_WIDTHS = np.diff(ENDS, prepend=0)
# Of the bins, and of one more.
_MIDDLES = np.append(ENDS - (_WIDTHS - 1) / 2, 1.5 * ENDS[-1] + 0.5)
# Deviations of its noise from which on the last bin counts: of eighteen bins of noise alone one in
# 1,700 histograms shows one, and a bin of many rows that is none would weigh much.
_SHOWN = 4.0
PRICE = 1.2
"""Noise of rows clipped to C, beside that of one row a person, at which C is chosen: up to it the
error of tables hardly rose (`evaluation/studies/person_units.py`)."""


@dataclass(frozen=True)
class RowsAPerson:
    """The released histogram, and what follows from it.

    Attributes:
        counts: of persons by bin, as they were released: 1, 2, 3, 4, 5 to 8, .. rows, [bins].
        sigma: standard deviation of the noise in each.
    """

    counts: tuple[float, ...]
    sigma: float

    def __post_init__(self) -> None:
        """Raises ReleaseError for what is no such histogram."""
        numbers = (*self.counts, self.sigma)
        fits = len(self.counts) == BINS and all(map(_finite, numbers)) and self.sigma >= 0
        if not fits:
            raise ReleaseError("the histogram of rows a person is damaged")

    @property
    def told(self) -> bool:
        """Whether any bin stands out of the noise: else nothing is known, and each person is taken
        to have one row."""
        return max(self.counts) > _SHOWN * self.sigma

    @property
    def last(self) -> int:
        """The last bin that stands out of the noise: those above it are taken for empty."""
        shown = np.flatnonzero(np.array(self.counts) > _SHOWN * self.sigma)
        return int(shown[-1]) if len(shown) else 0

    @property
    def most(self) -> int:
        """Rows of a person that :attr:`sizes` go to; there may be more of too few persons."""
        return int(ENDS[self.last])

    @property
    def persons(self) -> float:
        """How many there are, at least 1."""
        return max(1.0, float(sum(self.counts[: self.last + 1])))

    @property
    def deviation(self) -> float:
        """Of the noise in the number of persons."""
        return self.sigma * math.sqrt(self.last + 1)

    @cached_property
    def sizes(self) -> Floats:
        """The share of persons that have 1, 2, .. :attr:`most` rows, [most]: it sums to 1.

        Within a bin they follow a line through the middles of the bins.
        """
        kept = self.last + 1
        shares = to_simplex(np.array(self.counts[:kept]), self.persons) / self.persons
        ends, widths = ENDS[:kept], _WIDTHS[:kept]
        rows = np.arange(1, self.most + 1)
        # Beyond the last one there is nobody.
        height = np.interp(rows, _MIDDLES[: kept + 1], [*(shares / widths), 0.0])
        bins = np.searchsorted(ends, rows)
        masses = np.bincount(bins, height, kept)
        # A bin beside empty ones may hold persons where the line is at nothing.
        height = np.where(masses[bins] > 0, height, 1.0)
        masses = np.bincount(bins, height, kept)
        return np.asarray(height * (shares / masses)[bins])

    @property
    def mean(self) -> float:
        """Rows a person on average, at least 1."""
        return float(self.sizes @ np.arange(1, self.most + 1))

    @property
    def rows(self) -> float:
        """How many rows all persons have, estimated: beyond 4 a bin's are known to a half."""
        return self.persons * self.mean

    @property
    def rows_deviation(self) -> float:
        """Of the noise in the number of rows, nearly."""
        return self.sigma * float(np.linalg.norm(_MIDDLES[: self.last + 1]))

    def price(self, clip: float) -> float:
        """At most so many times the noise of one row a person, beside how many rows count, where a
        person's rows are clipped to ``clip`` of them: clip x persons / sum of min(rows, clip)."""
        counted = self.sizes @ np.minimum(np.arange(1, self.most + 1), clip)
        return float(clip / counted)

    def choose_clip(self) -> float:
        """To how many rows' worth a person's are clipped where rows weigh alike: as many as make
        :meth:`price` 1.2, in tenths of a row."""
        from scipy.optimize import brentq

        if self.price(self.most) <= PRICE:
            return float(self.most)
        clip = float(brentq(lambda clip: self.price(clip) - PRICE, 1.0, self.most))
        return max(1.0, math.floor(clip * 10) / 10)

    def to_dict(self) -> dict[str, Any]:
        """Plain content."""
        return {**asdict(self), "counts": list(self.counts)}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> RowsAPerson:
        """The inverse. Raises ReleaseError for anything else."""
        try:
            return RowsAPerson(tuple(plain["counts"]), plain["sigma"])
        except (KeyError, TypeError):
            raise ReleaseError("the histogram of rows a person is damaged") from None


def _finite(number: object) -> bool:
    return isinstance(number, int | float) and math.isfinite(number)


def person_terms(budget: Budget, noise_multiplier: float, survivors: int, like: Terms) -> Terms:
    """Terms of the histogram, asked of everybody.

    Args:
        like: of another question of the same job, whose kind of noise it takes.
    """
    kind = ("gaussian", None) if like.kind.selects else (like.mechanism, like.alpha)
    # A person is in one bin: the bound is on that, whatever its rows weigh elsewhere.
    bound = terms_for_everyone(budget, 1.0, noise_multiplier, survivors, *kind, groups=True)
    return replace(bound, weigh="person")


def person_stage(budget: Budget, survivors: int, stages: Sequence[Stage]) -> list[Stage]:
    """The histogram, before stages that get what it leaves of the budget; none where the budget
    gives it nothing."""
    if not budget.sizes_share or not stages:
        return []
    whole = sum(stage.share for stage in stages if stage.count)
    share = whole * budget.sizes_share / (1 - budget.sizes_share)
    like = stages[-1].terms(1.0)
    return [Stage(LABEL, share, lambda noise: person_terms(budget, noise, survivors, like))]


def ask_rows_a_person(channel: Channel, terms: Terms) -> RowsAPerson:
    """Release the histogram."""
    if terms.mechanism == "gaussian":
        released = channel.count(LABEL, terms, BINS, Blocks.of_ones(np.zeros(1, np.int64)))
    else:
        released = channel.sum(LABEL, terms, BINS)
    deviation = terms.noise.deviation(terms.summed_scale(released.answered))
    return RowsAPerson(tuple(released.value.tolist()), deviation)


def settle_persons(session: Session) -> None:
    """Ask the histogram, where the plan has it, or take that of the interrupted job.

    Where the budget leaves it open to what persons are clipped, the session's plan then has the
    clips that are asked. Its noise is what it was, for noise goes with the clip.
    """
    plan = session.plan
    if LABEL not in plan.labels:
        return
    told = None if session.restored is None else session.restored[1].get(KEY)
    if told is None:
        session.progress(LABEL, 0, 1)
        known = ask_rows_a_person(session.channel, plan.terms(LABEL))
        session.progress(LABEL, 1, 1)
    else:
        known = RowsAPerson.from_dict(told)
    session.rows_a_person = known
    if plan.budget.chooses_clip:
        session.plan = plan.clipped(known.choose_clip())
