"""Was this row among the training rows? Attacks by one who holds the synthetic rows alone.

The attacker also has a sample of the population, which tells where synthetic rows would lie anyway.
Members and others are interchangeable to an attack if both are random samples of one population: a
split by date or by place can raise an alarm on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import DataError
from fedsynth.evaluation.attacks.intervals import (
    ALARM,
    LEVEL,
    auroc,
    auroc_interval,
    roc,
    scores_differ,
    shares_differ,
    tpr_at,
)
from fedsynth.evaluation.attacks.neighbours import SEARCHED, drawn, row_keys
from fedsynth.evaluation.features import Features, nearest
from fedsynth.evaluation.rows import Rows

FPRS = (0.001, 0.01)
TOPS = (0.01, 0.05)
_QUESTIONS = 1 + len(TOPS)
"""That the alarm asks."""
_K = 16
"""Neighbours of a row that the attacks look at."""

_FLOOR, _EQUAL = 0.06, 1e-3
"""What is added to distances before their logarithm, and the distance of equal rows. The 5 to 95 %
range of a number is 1 and two different categories are 1 apart: far below the floor, nearness is
chance, but equality is not."""


@dataclass(frozen=True)
class Rate:
    """The share of members found, with its interval, at the false-positive rate `fpr`."""

    fpr: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MembershipAttack:
    """What an attack found.

    name: the attack. caught: members stand out beyond chance, at `ALARM` one-sided.
    sentence: the result in words.
    auroc: the chance that a member scores above another row, .5 by guessing, with its interval at
        `LEVEL` from auroc_low to auroc_high.
    tpr: shares of members found at the false-positive rates `FPRS`.
    members, others: rows attacked that were and were not trained on.
    curve: "fpr" and "tpr" of the ROC curve.
    """

    name: str
    caught: bool
    sentence: str
    auroc: float
    auroc_low: float
    auroc_high: float
    tpr: tuple[Rate, ...]
    members: int
    others: int
    curve: dict[str, list[float]]


def membership(
    synthetic: Rows, train: Rows, real: Rows, *, seed: int = 0, most: int = 4000
) -> tuple[MembershipAttack, ...]:
    """Attacks on released rows by an attacker who holds them and half of the `real` rows.

    Scored are at most `most` of the `train` rows and of the other half of `real`, drawn at random
    whatever the order of the rows. Distances are Euclidean in the space of `Features` learned from
    the attacker's own rows. The attacks:

    "density ratio": log p_synthetic - log p_population (DOMIAS, van Breugel et al. 2023), densities
        from nearest-neighbour distances, whose power, the dimension, and whose counts of rows are
        the same for every scored row and do not change their ranking. The synthetic density at the
        row is that of its one nearest row, for that is what a copy raises; it is compared with the
        population's and with the synthetic rows' own around it, each a mean over more neighbours.
    "nearest row": the distance to the nearest synthetic row (Chen et al. 2020, GAN-Leaks, black
        box), nothing else.
    "matching cells": of the `_K` nearest synthetic rows the one that agrees with the row in the
        most surprising way, less the same of the attacker's own rows. The surprise of an agreement
        is -log of the share of the population that agrees as closely, summed over the columns, as
        in record linkage (Fellegi and Sunter 1969). It finds copies some cells of which changed.

    More than `SEARCHED` synthetic or own rows are sampled, but for one synthetic row equal to each
    scored row: an attacker looks for those first.

    Raises:
        DataError: fewer than two real rows: one is the attacker's, one is scored.
    """
    if len(real) < 2:
        raise DataError(
            "membership attacks need at least two real rows that were not trained on: one for the "
            "attacker and one to attack"
        )
    rng = np.random.default_rng(seed)
    places = drawn(row_keys(real), len(real), rng)
    half = len(real) // 2
    others, own = real.take(places[half:][:most]), real.take(places[:half][:SEARCHED])
    members = train.take(drawn(row_keys(train), most, rng))
    scored = np.concatenate([row_keys(members), row_keys(others)])
    searched = synthetic.take(_searched(row_keys(synthetic), scored, rng))
    attack = _Scoring.of(members, others, own)
    scores = attack.scores(searched)
    return tuple(
        judged(name, found[: len(members)], found[len(members) :], seed)
        for name, found in scores.items()
    )


def judged(
    name: str, members: NDArray[np.float64], others: NDArray[np.float64], seed: int = 0
) -> MembershipAttack:
    """An attack's scores of n members and m others, higher for a likelier member, as its result.

    The alarm asks three questions, each at a third of `ALARM`: whether members score higher on the
    whole (Mann-Whitney), and whether they fill the highest hundredth and twentieth of all scores,
    where copies of a few rows end (Fisher's exact test; scores tied with the last of these are in).
    All are exact where members and others are interchangeable, but for the normal approximation
    in the first.

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    ps = [scores_differ(members, others, seed)]
    ps += [_top_differs(members, others, share) for share in TOPS]
    found = described(
        name,
        members,
        others,
        min(ps) <= ALARM / len(ps),
        auroc_interval(members, others),
        tuple(Rate(fpr, *tpr_at(members, others, fpr)) for fpr in FPRS),
    )
    if able(len(members), len(others)):
        return found
    unable = " So few rows could not raise an alarm: this says nothing."
    return replace(found, sentence=found.sentence + unable)


def able(members: int, others: int) -> bool:
    """Whether so few rows could raise an alarm at all: whether a perfect attack's p-value would."""
    return math.comb(members + others, members) >= _QUESTIONS / ALARM


def described(
    name: str,
    members: NDArray[np.float64],
    others: NDArray[np.float64],
    caught: bool,
    interval: tuple[float, float],
    rates: tuple[Rate, ...],
) -> MembershipAttack:
    """An attack's result in figures and words; `interval` is that of its AUROC."""
    area = auroc(members, others)
    verdict = "Training rows can be told from others" if caught else "No training row stood out"
    words = (
        f"{verdict}: a training row scores above another real row in {area:.1%} of pairs "
        f"({LEVEL:.0%} interval {interval[0]:.1%} to {interval[1]:.1%}; 50% is guessing), and "
        f"{rates[-1].value:.1%} of training rows are found at {rates[-1].fpr:.0%} false alarms."
    )
    if interval[1] < 0.4:
        words += " The other rows stand out instead: were training and held-out rows exchanged?"
    return MembershipAttack(
        name=name,
        caught=caught,
        sentence=words,
        auroc=area,
        auroc_low=interval[0],
        auroc_high=interval[1],
        tpr=rates,
        members=len(members),
        others=len(others),
        curve=roc(members, others),
    )


def _top_differs(members: NDArray[np.float64], others: NDArray[np.float64], share: float) -> float:
    """P-value that more members than others are among this share of highest scores."""
    both = np.sort(np.concatenate([members, others]))[::-1]
    cut = both[max(1, round(share * len(both))) - 1]
    hits = int((members >= cut).sum()), int((others >= cut).sum())
    return shares_differ(hits[0], len(members), hits[1], len(others))


def _searched(
    made: NDArray[np.uint64], scored: NDArray[np.uint64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Places of the synthetic rows to search."""
    places = drawn(made, SEARCHED, rng)
    if len(made) <= SEARCHED:
        return places
    values, first = np.unique(made, return_index=True)
    return np.union1d(places, first[np.isin(values, scored)])


@dataclass(frozen=True, eq=False)
class _Scoring:
    """The attacker's sample and the rows [q] to score, members first, as vectors and as values.

    distances: [q, k] to the nearest of the attacker's own rows. agreement: [q, k], falling.
    """

    own: Rows
    values: NDArray[np.float64]
    features: Features
    vectors: NDArray[np.float32]
    distances: NDArray[np.float64]
    agreement: NDArray[np.float64]

    @classmethod
    def of(cls, members: Rows, others: Rows, own: Rows) -> _Scoring:
        features = Features.of(own)
        vectors = np.concatenate([features.matrix(members), features.matrix(others)])
        values = np.concatenate([members.values, others.values])
        distances, places = nearest(vectors, features.matrix(own), _K)
        alike = agreement(values, own.values[places], own)
        return cls(own, values, features, vectors, distances, alike)

    def scores(self, synthetic: Rows) -> dict[str, NDArray[np.float64]]:
        """Of each attack, the scores [q]."""
        found, places = nearest(self.vectors, self.features.matrix(synthetic), _K)
        alike = agreement(self.values, synthetic.values[places], self.own)
        around = found[:, 1:9] if found.shape[1] > 1 else found
        density = mean_log(self.distances[:, :8]) + mean_log(around)
        return {
            "density ratio": density - 2 * mean_log(found[:, :1]),
            "nearest row": -found[:, 0],
            "matching cells": alike[:, 0] - self.agreement[:, :3].mean(axis=1),
        }


def mean_log(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean logarithm [q] of distances [q, k], finite also for equal rows."""
    softened = np.where(distances == 0, _EQUAL, distances + _FLOOR)
    logs: NDArray[np.float64] = np.log(softened).mean(axis=1)
    return logs


def agreement(
    rows: NDArray[np.float64], candidates: NDArray[np.float64], own: Rows
) -> NDArray[np.float64]:
    """How surprisingly candidates [q, k, d] agree with rows [q, d]: [q, k], the highest first."""
    total = np.zeros(candidates.shape[:2])
    for j, size in enumerate(own.sizes):
        column = own.values[:, j]
        known = np.sort(column[~np.isnan(column)])
        x, y = rows[:, None, j], candidates[:, :, j]
        gap, either = np.isnan(x) & np.isnan(y), np.isnan(x) | np.isnan(y)
        reach = np.where(x == y, 0, np.inf) if size else np.abs(x - y)
        alike = np.searchsorted(known, x + reach, "right") - np.searchsorted(known, x - reach)
        alike = np.where(gap, len(column) - len(known), np.where(either, len(column), alike))
        total -= np.log((alike + 1) / (len(column) + 1))
    return -np.sort(-total, axis=1)
