"""Kinds of model that are trained on examples and answer for others, and the rows each may have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.evaluation.reading.features import width
from fedsynth.evaluation.reading.labelled import Examples
from fedsynth.evaluation.reading.scores import answer_always

Answers = Callable[[Examples], NDArray[np.float64]]
"""Of n rows: scores [n, classes], a row's largest being the answer, or predicted numbers [n]."""

_WIDTH = 180
"""Coordinates of a row's vector up to which a learner gets all the rows that it may."""

_NUMBER = 8
"""Coordinates that a number counts for: trees take longer over it than over a category's."""

_MANY = 50_000
_CLASSES = 10
_LEAST = 1000

_SEEDS = 2**32
"""scikit-learn takes none above."""


@dataclass(frozen=True)
class Learner:
    """One kind of model.

    Attributes:
        name: for readers.
        train: from examples and a seed to answers. It may raise ValueError or ArithmeticError where
            it cannot fit them.
        most: rows that it is trained on at most, so that it takes a second or two.
        boosts: it grows a tree for each class.
    """

    name: str
    train: Callable[[Examples, int], Answers]
    most: int = _MANY
    boosts: bool = False

    @property
    def slow(self) -> bool:
        """Whether it may have fewer rows than others."""
        return self.most < _MANY

    def rows(self, examples: Examples) -> int:
        """How many of these examples it is trained on: fewer of wide rows and of many classes."""
        classes = max(examples.classes, 2)
        share = min(1.0, _WIDTH / width(examples.rows, _NUMBER)) * min(1.0, _CLASSES / classes)
        if self.boosts:
            share *= 2 / min(classes, _CLASSES)
        return min(len(examples), max(int(self.most * share), _LEAST))


def fit(learner: Learner, examples: Examples, seed: int) -> Answers | None:
    """The learner's answers after training on all of these examples; None where it cannot fit them.

    Examples of one answer alone make it the answer to everything. No warning gets through.
    """
    if (examples.y == examples.y[0]).all():
        return answer_prior(examples)
    with silence_warnings():
        try:
            return learner.train(examples, seed % _SEEDS)
        except (ValueError, ArithmeticError):
            return None


def answer(answers: Answers | None, examples: Examples) -> NDArray[np.float64] | None:
    """What is answered for these examples; None where there is nothing, or something not finite."""
    if answers is None:
        return None
    with silence_warnings():
        try:
            predicted = answers(examples)
        except (ValueError, ArithmeticError):
            return None
    return predicted if np.isfinite(predicted).all() else None


@contextmanager
def silence_warnings() -> Iterator[None]:
    """Without warnings, of Python's or of NumPy's kind."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def answer_prior(examples: Examples) -> Answers:
    """What is answered without looking: the classes' shares, or the mean."""
    if not examples.classes:
        mean = float(examples.y.mean())
        return lambda others: np.full(len(others), mean)
    codes = examples.y.astype(np.int64)
    shares = np.bincount(codes, minlength=examples.classes) / len(codes)
    return lambda others: np.tile(shares, (len(others), 1))


def answer_commonest(examples: Examples) -> Answers:
    """One answer to everything: the commonest class with certainty, or the mean."""
    if not examples.classes:
        return answer_prior(examples)
    answer = int(np.bincount(examples.y.astype(np.int64)).argmax())
    return lambda others: answer_always(answer, len(others), examples.classes)


def on_vectors(
    make: Callable[[int, int], Any], dtype: type[np.floating[Any]] = np.float32
) -> Callable[[Examples, int], Answers]:
    """Training of a scikit-learn estimator, made from a number of rows and a seed, on `vectors`.

    Where they are the same in all rows, the answer is `answer_prior`.
    """

    def train(examples: Examples, seed: int) -> Answers:
        x = examples.vectors(examples)
        if x.shape[1] == 0:
            return answer_prior(examples)
        model = make(len(examples), seed).fit(x.astype(dtype, copy=False), examples.y)
        return lambda others: scores_of(
            model, examples.vectors(others).astype(dtype, copy=False), examples.classes
        )

    return train


def scores_of(
    model: Any, x: NDArray[np.floating[Any]] | pd.DataFrame, classes: int
) -> NDArray[np.float64]:
    """A fitted scikit-learn model's probabilities [n, classes], else decisions; or numbers [n].

    A class that it has not seen has the lowest score in every row.
    """
    if not classes:
        return np.asarray(model.predict(x), np.float64)
    if hasattr(model, "predict_proba"):
        scores = np.zeros((len(x), classes))
        scores[:, model.classes_] = model.predict_proba(x)
        return scores
    decisions = np.asarray(model.decision_function(x), np.float64)
    if decisions.ndim == 1:
        decisions = np.stack([-decisions, decisions], axis=1)
    scores = np.full((len(x), classes), decisions.min() - 1)
    scores[:, model.classes_] = decisions
    return scores
