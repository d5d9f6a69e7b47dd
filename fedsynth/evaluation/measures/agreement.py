"""Do models and their settings order the same on synthetic rows as on real ones?

Who tunes on synthetic rows alone picks the candidate that scores best there. That is a good choice
if scores on real rows order the candidates likewise: Spearman's rank correlation.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsynth.evaluation.models.classifiers import train_boosting
from fedsynth.evaluation.models.learners import Answers, Learner
from fedsynth.evaluation.reading.labelled import Examples

_LEVEL = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""

_FEWEST = 3

_ROUNDS = 150
"""Trees of a setting, of all classes together; ten rounds at the least."""

_DIGITS = 9
"""Scores that differ by less are one: sums in another order would tell them apart."""


@dataclass(frozen=True)
class Agreement:
    """Spearman's rank correlation of candidates' scores.

    Attributes:
        spearman: in [-1, 1]; ties get mid-ranks. None where `note` says why.
        low, high: its 95 % interval, as for candidates drawn from more of their kind: Fisher's z
            with Bonett and Wright's variance (2000); -1 and 1 for three candidates.
        n: candidates that have both scores.
        names: of all candidates.
        synthetic: of each, the score trained and validated on synthetic rows alone.
        real: of each, the score trained on real rows and tested on others.
        note: why there is no correlation, as a sentence.
    """

    spearman: float | None
    low: float | None
    high: float | None
    n: int
    names: tuple[str, ...]
    synthetic: tuple[float | None, ...]
    real: tuple[float | None, ...]
    note: str | None = None


def agreement(
    names: Sequence[str], synthetic: Sequence[float | None], real: Sequence[float | None]
) -> Agreement:
    """How far the candidates' two orders agree; a candidate without both scores is left out."""
    known = [
        (round(a, _DIGITS), round(b, _DIGITS))
        for a, b in zip(synthetic, real, strict=True)
        if a is not None and b is not None
    ]
    value, low, high, note = None, None, None, None
    if len(known) < _FEWEST:
        note = f"A rank correlation needs {_FEWEST} candidates with scores: there are {len(known)}."
    elif len({a for a, _ in known}) == 1 or len({b for _, b in known}) == 1:
        note = "All candidates score the same, so they have no order to compare."
    else:
        value = _spearman(known)
        low, high = _interval(value, len(known))
    return Agreement(
        value, low, high, len(known), tuple(names), tuple(synthetic), tuple(real), note
    )


def _spearman(pairs: Sequence[tuple[float, float]]) -> float:
    from scipy.stats import rankdata

    left, right = (rankdata(side) - (len(pairs) + 1) / 2 for side in zip(*pairs, strict=True))
    correlation = (left @ right) / math.sqrt((left @ left) * (right @ right))
    return float(np.clip(correlation, -1, 1))


def _interval(r: float, n: int) -> tuple[float, float]:
    """An interval with r inside. At n = 3 nothing is known.

    Orders that agree wholly would have no width; they are taken to be off by half of the smallest
    difference that there is, one swap of neighbours.
    """
    if n == _FEWEST:
        return -1.0, 1.0
    most = 1 - 6 / (n * (n * n - 1))
    inner = max(-most, min(most, r))
    width = _LEVEL * math.sqrt((1 + inner**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(inner) - width), math.tanh(math.atanh(inner) + width)
    return min(low, r), max(high, r)


def _train(examples: Examples, seed: int, **settings: Any) -> Answers:
    rounds = max(10, _ROUNDS // max(examples.classes, 3))
    fixed = {"rounds": rounds, "min_samples_leaf": 5, "l2_regularization": 1.0}
    return train_boosting(examples, seed, **fixed, **settings)


def _settings() -> tuple[Learner, ...]:
    """Twelve settings of gradient boosting, from far too weak to far too strong.

    Without any regularisation, fast rates diverge at random where there are several classes.
    """
    learners = []
    for rate, leaves in itertools.product((0.02, 0.1, 0.4), (2, 4, 16, 64)):
        train = functools.partial(_train, learning_rate=rate, max_leaf_nodes=leaves)
        name = f"rate {rate}, {leaves} leaves"
        learners.append(Learner(name, train, most=10_000, boosts=True))
    return tuple(learners)


SETTINGS = _settings()
"""Candidates that a tuner of one model would try: its learning rate and size of its trees."""
