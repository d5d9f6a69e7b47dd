"""Can anything tell synthetic rows from real ones? Classifier two-sample tests, propensity scores.

A classifier learns to tell two tables apart. Its AUROC on rows that it did not learn from is .5
where they are alike (Lopez-Paz and Oquab 2017). The propensity score's mean squared error (pMSE,
Woo, Reiter, Oganian and Karr 2009) is that of a logistic regression's fitted probabilities around
the share of synthetic rows, .5 here; divided by what it is expected to be where both tables are
samples of one population, it is near 1 for a synthesis without fault. With k coefficients, N rows
in all and the share c that is c (1 - c) (k - 1) / N, since the fitted probabilities then have the
variance of a linear fit. (Snoke et al. 2018, theorem 1, have 1 - c times that: they compare with
rows made by a model fitted to the very real rows, which a generator has to do without here.)
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.models.classifiers import boosting, has_values
from fedsynth.evaluation.reading.confidence import LEVEL, auroc, auroc_interval
from fedsynth.evaluation.reading.features import Features
from fedsynth.evaluation.reading.rows import Rows

MOST = 10_000
"""Rows of each table that a classifier sees."""
_LEAST = 20
_NEWTON = 400
"""Coordinates up to which the regression is fitted to the end, as the null ratio supposes."""
_PENALTY = 1e3


@dataclass(frozen=True)
class Detection:
    """One classifier's attempt to tell two tables apart.

    Attributes:
        auroc, low, high: on rows it did not learn from, with the 95 % interval; .5 by guessing.
        pmse: in [0, .25], of its fitted probabilities. pmse_ratio: that over what it is expected
            to be for two samples of one population. Both are None for gradient boosting, the ratio
            also where nothing varies or a row has more than 400 coordinates.
        real: the AUROC with other real rows in the place of the synthetic ones; None if they are
            fewer than 20.
    """

    name: str
    auroc: float
    low: float
    high: float
    pmse: float | None
    pmse_ratio: float | None
    real: float | None


def detection(synthetic: Rows, train: Rows, real: Rows, seed: int = 0) -> tuple[Detection, ...]:
    """Of logistic regression and gradient boosting; none with fewer than 20 rows in a table.

    Too few rows in `train` only leave out `real`.
    """
    attempts = attempt_all(synthetic, real, seed)
    beside = attempt_all(train, real, seed)
    if not (attempts and beside):
        return attempts
    return tuple(
        replace(one, real=other.auroc) for one, other in zip(attempts, beside, strict=True)
    )


def attempt_all(made: Rows, real: Rows, seed: int = 0) -> tuple[Detection, ...]:
    """Of each classifier against one table; both tables give the same number of rows."""
    size = min(len(made), len(real), MOST)
    if size < _LEAST:
        return ()
    tables = [real.sample(size, seed), made.sample(size, seed + 1)]
    truth = np.repeat([0, 1], size)
    # Halves are drawn from each table on its own, so that both are balanced; a person is in one.
    rng = np.random.default_rng(seed)
    held = np.concatenate([half_of(rows.people, rng) for rows in tables])
    logistic = _logistic(tables, truth, held)
    values = np.concatenate([rows.values for rows in tables])
    boosted = _boost(values, truth, held, real, seed)
    return logistic, boosted


def half_of(people: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows [n] are of a random half of the people."""
    count = int(people.max()) + 1
    return np.asarray((rng.permutation(count) < count // 2)[people])


def _logistic(tables: list[Rows], truth: NDArray[np.int64], held: NDArray[np.bool_]) -> Detection:
    features = Features.of(tables[0])
    x = np.concatenate([features.matrix(rows) for rows in tables]).astype(np.float64)
    x = x[:, np.ptp(x, axis=0) > 0]
    scores = _fit_logistic(x[~held], truth[~held], x[held])
    fitted = _fit_logistic(x, truth, x)
    pmse = float(np.mean((fitted - 0.5) ** 2))
    parameters = np.linalg.matrix_rank(np.column_stack([np.ones(len(x)), x]))
    expected = (parameters - 1) / 4 / len(x)
    ratio = float(pmse / expected) if expected and x.shape[1] <= _NEWTON else None
    return _attempt("logistic regression", scores, truth[held], pmse, ratio)


def _fit_logistic(
    x: NDArray[np.float64], truth: NDArray[np.int64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Probabilities [rows of `at`] of being synthetic; .5 where nothing varies."""
    from sklearn.linear_model import LogisticRegression

    if x.shape[1] == 0:
        return np.full(len(at), 0.5)
    if x.shape[1] > _NEWTON:
        model = LogisticRegression(C=1.0, max_iter=100)
    else:
        # The weak penalty keeps Newton steps for one-hot columns, which add up to 1, defined.
        model = LogisticRegression(C=_PENALTY, solver="newton-cholesky", max_iter=50)
    with warnings.catch_warnings():
        # Of steps that ended early: tables that are told apart for certain have no finite fit.
        warnings.simplefilter("ignore")
        model.fit(x, truth)
    probabilities: NDArray[np.float64] = model.predict_proba(at)[:, 1]
    return probabilities


def _boost(
    values: NDArray[np.float64],
    truth: NDArray[np.int64],
    held: NDArray[np.bool_],
    real: Rows,
    seed: int,
) -> Detection:
    known = has_values(values[~held])
    chances = np.full(int(held.sum()), 0.5)
    if known.any():
        sizes = np.array(real.sizes)[known].tolist()
        model = boosting(sizes, 2, seed).fit(values[~held][:, known], truth[~held])
        chances = model.predict_proba(values[held][:, known])[:, 1]
    return _attempt("gradient boosting", chances, truth[held], None, None)


def _attempt(
    name: str,
    scores: NDArray[np.float64],
    truth: NDArray[np.int64],
    pmse: float | None,
    ratio: float | None,
) -> Detection:
    made, theirs = scores[truth == 1], scores[truth == 0]
    low, high = auroc_interval(made, theirs, LEVEL)
    return Detection(name, auroc(made, theirs), low, high, pmse, ratio, None)
