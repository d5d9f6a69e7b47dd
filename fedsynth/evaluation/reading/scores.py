"""How well predicted class probabilities fit real labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Scores:
    """A classifier's scores on real test rows, each in [0, 1].

    accuracy: share of rows predicted right.
    balanced_accuracy: mean recall over the classes in the test rows.
    f1: unweighted mean F1 over the classes in the test rows or the predictions (macro F1).
    f1_positive: F1 of the last of two categories, which papers call the positive class; NaN with
        more classes.
    auroc: area under the ROC curve of the last of two categories; with more, the unweighted mean
        over the classes in the test rows of each against the rest. NaN if they are all of one.
    average_precision: area under the steps of the precision-recall curve, averaged likewise; the
        class's share where nothing tells it apart. NaN if the test rows are all of one class.
    rows: real test rows scored.
    """

    accuracy: float
    balanced_accuracy: float
    f1: float
    f1_positive: float
    auroc: float
    average_precision: float
    rows: int


@dataclass(frozen=True)
class RegressionScores:
    """Predicted numbers against real ones.

    r2: the part of the test rows' variance that is predicted: at most 1, below 0 if their mean
        would do better. NaN if they are all one number.
    mae: mean absolute error in the target's unit, at least 0.
    rows: real test rows scored.
    """

    r2: float
    mae: float
    rows: int


def answer_always(answer: int, rows: int, classes: int) -> NDArray[np.float64]:
    """The probabilities [rows, classes] of a classifier that gives one answer to everything."""
    probabilities = np.zeros((rows, classes))
    probabilities[:, answer] = 1
    return probabilities


def score(probabilities: NDArray[np.floating], truth: NDArray[np.int64]) -> Scores:
    """Scores of probabilities [n, classes] against class codes [n] in [0, classes), n > 0.

    Any numbers will do of which a row's largest is the answer and, in a class's column, a larger
    one makes the class likelier.

    A class that no training row had is scored like any other: its probability is 0 everywhere, so
    its recall is 0 and its AUROC .5.
    """
    predicted = probabilities.argmax(axis=1)
    classes = probabilities.shape[1]
    hits = np.bincount(truth[predicted == truth], minlength=classes)
    actual = np.bincount(truth, minlength=classes)
    guessed = np.bincount(predicted, minlength=classes)
    seen, named = actual > 0, actual + guessed > 0
    f1 = 2 * hits / np.maximum(actual + guessed, 1)
    return Scores(
        accuracy=float(hits.sum() / len(truth)),
        balanced_accuracy=float((hits[seen] / actual[seen]).mean()),
        f1=float(f1[named].mean()),
        f1_positive=float(f1[1]) if classes == 2 else math.nan,
        auroc=_mean_area(_auroc, probabilities, truth),
        average_precision=_mean_area(_average_precision, probabilities, truth),
        rows=len(truth),
    )


def score_numbers(predicted: NDArray[np.floating], truth: NDArray[np.floating]) -> RegressionScores:
    """Scores of predicted numbers [n] against true ones [n], n > 0."""
    residuals, deviations = truth - predicted, truth - truth.mean()
    constant = bool((truth == truth[0]).all())
    return RegressionScores(
        r2=math.nan if constant else float(1 - (residuals**2).sum() / (deviations**2).sum()),
        mae=float(np.abs(residuals).mean()),
        rows=len(truth),
    )


def _mean_area(
    area: Callable[[NDArray[np.floating], NDArray[np.bool_]], float],
    probabilities: NDArray[np.floating],
    truth: NDArray[np.int64],
) -> float:
    """The area for the last of two classes, or the mean over the classes that occur."""
    present = np.unique(truth)
    if len(present) < 2:
        return math.nan
    labels = [1] if probabilities.shape[1] == 2 else present
    return float(np.mean([area(probabilities[:, label], truth == label) for label in labels]))


def _auroc(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """The Mann-Whitney statistic; a tie counts one half."""
    from scipy.stats import rankdata

    count = int(positive.sum())
    ranks = rankdata(scores)[positive].sum()
    return float((ranks - count * (count + 1) / 2) / (count * (len(positive) - count)))


def _average_precision(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """Precision at each threshold, weighted by the recall that it adds; tied rows enter at once."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(positive[order])[ends]
    return float((np.diff(hits, prepend=0) * hits / (ends + 1)).sum() / hits[-1])
