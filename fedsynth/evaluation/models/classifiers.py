"""The classifiers that synthetic rows are tried on: the twelve of Margaritis (paper 001), its
student network for tables, and logistic regression.

XGBoost is here scikit-learn's histogram gradient boosting, which takes gaps and categories as they
are; the other ones take `Features`. Settings are scikit-learn's own but where a comment says why
not. QDA is regularised, since one-hot coordinates have no covariance of full rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.models.learners import (
    Answers,
    Learner,
    answer_prior,
    on_vectors,
    scores_of,
)
from fedsynth.evaluation.reading.labelled import Examples, Labelled

_MOST_CODES = 255
"""scikit-learn's limit; codes of a column with more are taken as numbers."""

TREES = 100
"""Trees of a forest, and rounds of boosting where nobody says how many."""

_CLASSES = 10
"""Classes for each of which boosting grows as many trees as it is told to; for more, fewer."""


def boosting(
    sizes: Sequence[int], classes: int, seed: int, rounds: int | None = None, **settings: Any
) -> Any:
    """scikit-learn's histogram gradient boosting, not yet fitted.

    Args:
        sizes: codes of each column, as `Rows.sizes` has them; 0 for numbers.
        classes: of the target; 0 makes a regressor. Above ten it grows fewer than `rounds` trees.
        rounds: None for `TREES`.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    codes = np.array(sizes)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    # Early stopping would hold out a stratified part, which a class of one row makes impossible.
    return kind(
        categorical_features=(codes > 0) & (codes <= _MOST_CODES),
        early_stopping=False,
        max_iter=_rounds(classes, TREES if rounds is None else rounds),
        random_state=seed,
        **settings,
    )


def has_values(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns [d] of rows [n, d] with a value; one without teaches nothing and cannot be binned."""
    return np.asarray((~np.isnan(x)).any(axis=0))


def train_boosting(examples: Examples, seed: int, **settings: Any) -> Answers:
    """Histogram gradient boosting, with scikit-learn's `settings`, on rows as they are."""
    known = has_values(examples.x)
    if not known.any():
        return answer_prior(examples)
    columns = zip(examples.rows.names, examples.rows.sizes, strict=True)
    sizes = np.array([size for name, size in columns if name != examples.rows.schema.target])
    model = boosting(sizes[known].tolist(), examples.classes, seed, **settings)
    model.fit(examples.x[:, known], examples.y)
    return lambda others: scores_of(model, others.x[:, known], examples.classes)


def _rounds(classes: int, wanted: int) -> int:
    return max(5, wanted * _CLASSES // max(classes, _CLASSES))


def _tree(rows: int, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=seed)


def _neighbours(rows: int, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(n_neighbors=min(5, rows))


def _linear_vectors(rows: int, seed: int) -> Any:
    from sklearn.svm import LinearSVC

    # With more rows than coordinates the primal problem is the smaller one.
    return LinearSVC(dual=False, random_state=seed)


def _support_vectors(rows: int, seed: int) -> Any:
    from sklearn.svm import SVC

    return SVC(random_state=seed)


def _forest(rows: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(TREES, random_state=seed)


def _perceptron(rows: int, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    # scikit-learn's 200 passes take too long over many rows, where fewer do as well.
    return MLPClassifier(max_iter=min(200, max(30, 150_000 // rows)), random_state=seed)


def _adaboost(rows: int, seed: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(random_state=seed)


def _train_plain_boosting(examples: Examples, seed: int) -> Answers:
    from sklearn.ensemble import GradientBoostingClassifier

    rounds = _rounds(examples.classes, TREES)
    train = on_vectors(
        lambda _, seed: GradientBoostingClassifier(n_estimators=rounds, random_state=seed)
    )
    return train(examples, seed)


def _naive_bayes(rows: int, seed: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _linear_discriminant(rows: int, seed: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis()


def _train_quadratic_discriminant(examples: Examples, seed: int) -> Answers:
    """Without the classes of too few rows to have a covariance of full rank."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    codes = examples.y.astype(np.int64)
    enough = np.bincount(codes)[codes] > examples.vectors(examples).shape[1]
    if len(np.unique(codes[enough])) < 2:
        raise ValueError("a quadratic discriminant needs two classes of many rows")
    if not enough.all():
        examples = examples.take(enough)
    train = on_vectors(lambda *_: QuadraticDiscriminantAnalysis(reg_param=0.01), np.float64)
    return train(examples, seed)


def _logistic(rows: int, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=200)


def _train_student(examples: Examples, seed: int) -> Answers:
    from fedsynth.evaluation.models import students

    train = Labelled(examples.x, examples.y.astype(np.int64), examples.classes)
    # Five passes over few rows would be too few steps to learn anything.
    passes = min(50, max(students.DEFAULT.epochs, 12_500 // len(examples)))
    training = students.Training(epochs=passes)
    answer = students.table_classifier(train, examples.rows.schema, seed, training)
    return lambda others: answer(others.x)


CLASSIFIERS = (
    Learner("gradient boosting (histogram)", train_boosting, boosts=True),
    Learner("logistic regression", on_vectors(_logistic, np.float64)),
    Learner("random forest", on_vectors(_forest), most=10_000),
    Learner("decision tree", on_vectors(_tree)),
    Learner("k nearest neighbours", on_vectors(_neighbours), most=10_000),
    Learner("naive Bayes", on_vectors(_naive_bayes, np.float64)),
    Learner("linear discriminant", on_vectors(_linear_discriminant, np.float64)),
    Learner("quadratic discriminant", _train_quadratic_discriminant),
    Learner("linear support vectors", on_vectors(_linear_vectors, np.float64)),
    Learner("support vectors", on_vectors(_support_vectors), most=3_000),
    Learner("gradient boosting", _train_plain_boosting, most=10_000, boosts=True),
    Learner("AdaBoost", on_vectors(_adaboost), most=10_000),
    Learner("multilayer perceptron", on_vectors(_perceptron), most=10_000),
    Learner("student network", _train_student, most=2_000),
)
"""All, the standard ones first."""

STANDARD = 6
"""How many of them stand for their families where time is short."""
