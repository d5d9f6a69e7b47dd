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

from fedsynth.data.persons import number
from fedsynth.errors import DataError
from fedsynth.evaluation.attacks.neighbours import SEARCHED, Keys, draw_rows, row_keys
from fedsynth.evaluation.attacks.scoring import Scoring
from fedsynth.evaluation.reading.confidence import (
    ALARM,
    LEVEL,
    auroc,
    auroc_interval,
    roc,
    scores_differ,
    shares_differ,
    tpr_at,
)
from fedsynth.evaluation.reading.rows import Rows
from fedsynth.views import Grid, Said, Shown, Tone, View

FPRS = (0.001, 0.01)
TOPS = (0.01, 0.05)
UNABLE = " So few rows could not raise an alarm: this says nothing."
EXCHANGED = " The other rows stand out instead: were training and held-out rows exchanged?"
_ALIKE = 0.1
"""The share of unseen rows equal to a training row above which a copy is attacked, too."""

_BELOW = 0.4
"""The upper end of an AUROC's interval below which that is asked."""

_QUESTIONS = 1 + len(TOPS)
"""That the alarm asks."""


@dataclass(frozen=True)
class Rate:
    """The share of members found, with its interval, at the false-positive rate `fpr`.

    None where there are too few others to set a threshold for it: fewer than 1 / `fpr` - 1.
    """

    fpr: float
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, repr=False)
class MembershipAttack(Shown):
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

    def _view(self) -> View:
        tone: Tone = "void" if self.caught else "strong"
        found = [
            (f"found at {one.fpr:.1%} false alarms", f"{one.value:.1%}")
            for one in self.tpr
            if one.value is not None
        ]
        rows = [("rows learned from", f"{self.members:,}"), ("other rows", f"{self.others:,}")]
        grid = Grid((), [*rows, *found], figures=(1,))
        return View(f"Membership attack: {self.name}", [Said(self.sentence, tone), grid])


def membership(
    synthetic: Rows, train: Rows, real: Rows, *, seed: int = 0, most: int = 4000
) -> tuple[MembershipAttack, ...]:
    """Attacks on released rows by an attacker who holds them and half of the `real` rows.

    Where rows tell whose they are, these are the rows of half of the persons, and scored is one
    random row of each other person: alarms take scores for independent. Scored are at most `most`
    of the `train` rows and of the other half of `real`, drawn at random whatever the order of the
    rows. Distances are Euclidean in the space of `Features` learned from the attacker's own rows.
    The attacks:

    "density ratio": log p_synthetic - log p_population (DOMIAS, van Breugel et al. 2023), densities
        from nearest-neighbour distances, whose power, the dimension, and whose counts of rows are
        the same for every scored row and do not change their ranking. The synthetic density at the
        row is that of its one nearest row, for that is what a copy raises; it is compared with the
        population's and with the synthetic rows' own around it, each a mean over more neighbours.
    "nearest row": the distance to the nearest synthetic row (Chen et al. 2020, GAN-Leaks, black
        box), nothing else.
    "matching cells": of the `NEIGHBOURS` nearest synthetic rows the one that agrees with the row in
        the most surprising way, less that of the attacker's own rows. The surprise of an agreement
        is -log of the share of the population that agrees as closely, summed over the columns, as
        in record linkage (Fellegi and Sunter 1969). It finds copies some cells of which changed.

    "equal rows": whether a synthetic row equals the row, in every modelled column. All rows of
        `train` and of `real` are asked, so that few copies among many rows are enough; of a person
        whether any of its rows does.

    Where many unseen rows equal a training row, sentences say what a copy would have scored.

    More than `SEARCHED` synthetic or own rows are sampled, but for one synthetic row equal to each
    scored row: an attacker looks for those first.

    Raises:
        DataError: fewer than two real rows: one is the attacker's, one is scored.
    """
    if not real.people.any():
        raise DataError(
            "membership attacks need at least two real rows that were not trained on, of two "
            "persons: one for the attacker and one to attack"
        )
    attacks, copies = _attack(synthetic, train, real, seed, most)
    made, known = row_keys(synthetic), row_keys(train)
    attacks.append(equal_people(made, train, real))
    if copies is None:
        return tuple(attacks)
    copies.append(equal_people(known, train, real))
    return tuple(map(_beside_a_copy, attacks, copies))


def _attack(
    synthetic: Rows, train: Rows, real: Rows, seed: int, most: int
) -> tuple[list[MembershipAttack], list[MembershipAttack] | None]:
    """The attacks by distances, and where many unseen rows equal a training row, the same on a copy
    of the training rows."""
    rng = np.random.default_rng(seed)
    places = draw_rows(row_keys(real), len(real), rng)
    ranks = number(real.people[places])
    ours = ranks < (ranks.max() + 1) // 2
    others = real.take(_first_of_each(real, places[~ours])[:most])
    own = real.take(places[ours][:SEARCHED])
    members = train.take(_first_of_each(train, draw_rows(row_keys(train), len(train), rng))[:most])
    scored = np.concatenate([row_keys(members), row_keys(others)])
    searched = synthetic.take(_choose_searched(row_keys(synthetic), scored, rng))
    part = describe_search(len(searched), len(synthetic))
    attack = Scoring.of(members, others, own)

    def judge(release: Rows) -> list[MembershipAttack]:
        return [
            judge_scores(name, scores[: len(members)], scores[len(members) :], seed)
            for name, scores in attack.scores(release).items()
        ]

    attacks = [replace(one, sentence=one.sentence + part) for one in judge(searched)]
    known = row_keys(train)
    if np.isin(row_keys(real), known).mean() <= _ALIKE:
        return attacks, None
    return attacks, judge(train.take(_choose_searched(known, scored, rng)))


def _first_of_each(rows: Rows, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of these places the first of each person."""
    return places[np.sort(np.unique(rows.people[places], return_index=True)[1])]


def _beside_a_copy(attack: MembershipAttack, copy: MembershipAttack) -> MembershipAttack:
    """With what the attack makes of a copy of the training rows, if it found nothing."""
    if attack.caught:
        return attack
    words = (
        f" The rows are much alike: a copy of the training rows would score above in "
        f"{copy.auroc:.1%} of pairs"
    )
    words += "." if copy.caught else ", and not even that would be noticed."
    return replace(attack, sentence=attack.sentence + words)


def equal_people(made: Keys, train: Rows, real: Rows) -> MembershipAttack:
    """As `equal_rows`, but a person with a row that equals a synthetic one is found, once."""
    if train.persons is None and real.persons is None:
        return equal_rows(made, row_keys(train), row_keys(real))
    members, others = (
        np.bincount(rows.people, np.isin(row_keys(rows), made)) > 0 for rows in (train, real)
    )
    return _judge_equal(members, others, ("training persons have a row that equals", "persons"))


def equal_rows(made: Keys, train: Keys, real: Keys) -> MembershipAttack:
    """The attack that looks whether a synthetic row equals the row, from keys equal for equal rows.

    The alarm is Fisher's exact test, at `ALARM`, of training rows against held-out ones that equal
    a synthetic row: rows of a few coarse columns do by chance, but both alike.
    """
    return _judge_equal(np.isin(train, made), np.isin(real, made), ("training rows equal", "rows"))


def _judge_equal(
    members: NDArray[np.bool_], others: NDArray[np.bool_], words_for: tuple[str, str]
) -> MembershipAttack:
    found, unit = words_for
    hits = int(members.sum()), int(others.sum())
    caught = shares_differ(hits[0], len(members), hits[1], len(others)) <= ALARM
    scores = members.astype(np.float64), others.astype(np.float64)
    words = (
        f"{hits[0]:,} of {len(members):,} {found} a synthetic row ({members.mean():.2%}"
        f"), and {hits[1]:,} of {len(others):,} {unit} never seen ({others.mean():.2%}): "
    )
    words += (
        "more than chance allows, so training rows can be told from others: some are copied."
        if caught
        else "no more than chance allows. No training row stood out."
    )
    span = auroc_interval(*scores)
    if span[1] < _BELOW:
        words += EXCHANGED
    if not can_alarm(len(members), len(others)):
        words += UNABLE
    attack = describe_attack("equal rows", *scores, caught, span, tpr_rates(*scores))
    return replace(attack, sentence=words)


def describe_search(used: int, whole: int) -> str:
    """What to add to a sentence about an attack that searched a part of the release."""
    if used == whole:
        return ""
    return (
        f" Only {used:,} of the {whole:,} synthetic rows were searched, those equal to an attacked "
        f"row among them: near copies in the others were missed."
    )


def judge_scores(
    name: str, members: NDArray[np.float64], others: NDArray[np.float64], seed: int = 0
) -> MembershipAttack:
    """An attack's scores of n members and m others, higher for a likelier member, as its result.

    The alarm asks three questions, each at a third of `ALARM`: whether members score higher on the
    whole (Mann-Whitney), and whether they fill the highest hundredth and twentieth of all scores,
    where copies of a few rows end (Fisher's exact test; scores tied with the last of these are in).
    All hold where members and others are interchangeable.

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    ps = [scores_differ(members, others, seed)]
    ps += [_top_differs(members, others, share) for share in TOPS]
    attack = describe_attack(
        name,
        members,
        others,
        min(ps) <= ALARM / len(ps),
        auroc_interval(members, others),
        tpr_rates(members, others),
    )
    if can_alarm(len(members), len(others)):
        return attack
    return replace(attack, sentence=attack.sentence + UNABLE)


def tpr_rates(members: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[Rate, ...]:
    """The share of members found at each of `FPRS`."""
    return tuple(Rate(fpr, *tpr_at(members, others, fpr)) for fpr in FPRS)


def can_alarm(members: int, others: int) -> bool:
    """Whether so few rows could raise an alarm at all: whether a perfect attack's p-value would."""
    return math.comb(members + others, members) >= _QUESTIONS / ALARM


def describe_attack(
    name: str,
    members: NDArray[np.float64],
    others: NDArray[np.float64],
    caught: bool,
    interval: tuple[float, float],
    rates: tuple[Rate, ...],
) -> MembershipAttack:
    """An attack's result in figures and words; `interval` is that of its AUROC."""
    area = auroc(members, others)
    result = "Training rows can be told from others" if caught else "No training row stood out"
    words = (
        f"{result}: a training row scores above another real row in {area:.1%} of pairs "
        f"({LEVEL:.0%} interval {interval[0]:.1%} to {interval[1]:.1%}; 50% is guessing)"
    )
    known = [rate for rate in rates[-1:] if rate.value is not None]
    words += "".join(
        f", and {rate.value:.1%} of training rows are found at {rate.fpr:.0%} false alarms"
        for rate in known
    )
    words += "."
    if interval[1] < _BELOW:
        words += EXCHANGED
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


def _choose_searched(
    made: NDArray[np.uint64], scored: NDArray[np.uint64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Places of the synthetic rows to search."""
    places = draw_rows(made, SEARCHED, rng)
    if len(made) <= SEARCHED:
        return places
    values, first = np.unique(made, return_index=True)
    return np.union1d(places, first[np.isin(values, scored)])
