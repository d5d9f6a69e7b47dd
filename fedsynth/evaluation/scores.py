"""How well predicted class probabilities fit real labels."""

from __future__ import annotations

import math
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
    rows: real test rows scored.
    """

    accuracy: float
    balanced_accuracy: float
    f1: float
    f1_positive: float
    auroc: float
    rows: int


def always(answer: int, rows: int, classes: int) -> NDArray[np.float64]:
    """The probabilities [rows, classes] of a classifier that gives one answer to everything."""
    probabilities = np.zeros((rows, classes))
    probabilities[:, answer] = 1
    return probabilities


def score(probabilities: NDArray[np.floating], truth: NDArray[np.int64]) -> Scores:
    """Scores of probabilities [n, classes] against class codes [n] in [0, classes), n > 0.

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
        auroc=_auroc(probabilities, truth),
        rows=len(truth),
    )


def _auroc(probabilities: NDArray[np.floating], truth: NDArray[np.int64]) -> float:
    """Mann-Whitney statistics; a tie counts one half."""
    from scipy.stats import rankdata

    present = np.unique(truth)
    if len(present) < 2:
        return math.nan
    areas = []
    for label in [1] if probabilities.shape[1] == 2 else present:
        positive = truth == label
        count = int(positive.sum())
        ranks = rankdata(probabilities[:, label])[positive].sum()
        areas.append((ranks - count * (count + 1) / 2) / (count * (len(truth) - count)))
    return float(np.mean(areas))
