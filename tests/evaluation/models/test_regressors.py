"""Regressors: they learn numbers and dates, they are scikit-learn's, and no table breaks them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import linear_model, neighbors, tree

from fedsynth.evaluation.models.learners import answer, answer_prior, fit
from fedsynth.evaluation.models.regressors import REGRESSORS
from fedsynth.evaluation.reading.scores import score_numbers
from tests.evaluation.learning_tables import DATE, NUMBER, taught

BY_NAME = {learner.name: learner for learner in REGRESSORS}
EVERY = pytest.mark.parametrize("learner", REGRESSORS, ids=lambda learner: learner.name)


@EVERY
@pytest.mark.parametrize("schema", [NUMBER, DATE], ids=["number", "date"])
def test_every_regressor_learns(learner, schema):
    train, test = taught(500, schema), taught(500, schema, 1)
    assert score_numbers(answer(fit(learner, train, 0), test), test.y).r2 > 0.65


def test_regressors_are_scikit_learns_on_the_vectors():
    train, test = taught(150, NUMBER), taught(80, NUMBER, 1)
    x, z = train.vectors(train), train.vectors(test)
    for name, model in {
        "ridge regression": linear_model.Ridge(),
        "k nearest neighbours": neighbors.KNeighborsRegressor(),
        "decision tree": tree.DecisionTreeRegressor(random_state=4),
    }.items():
        expected = model.fit(x.astype(float) if "ridge" in name else x, train.y).predict(z)
        found = answer(fit(BY_NAME[name], train, 4), test)
        np.testing.assert_allclose(found, expected, atol=1e-3, err_msg=name)


@EVERY
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"x": None, "colour": None, "size": 4, "flag": True},
        {"x": 1.0, "colour": "pink", "size": 10**13, "flag": "perhaps"},
    ],
)
@pytest.mark.parametrize("n", [1, 2, 10])
def test_odd_rows_give_finite_numbers(learner, changes, n):
    train, test = taught(n, NUMBER, **changes), taught(30, NUMBER, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = answer(fit(learner, train, 0), test)
    assert np.isfinite(found).all()
    if "size" in changes and changes["size"] == 4:
        np.testing.assert_allclose(found, train.y.mean(), atol=1e-6)


@EVERY
def test_one_number_in_training_is_the_answer_to_everything(learner):
    test = taught(30, NUMBER, 1)
    assert (answer(fit(learner, taught(20, NUMBER, y=2.5), 0), test) == 2.5).all()


def test_the_mean_is_what_is_said_without_looking():
    train = taught(20, NUMBER, y=[*range(20)])
    assert (answer_prior(train)(taught(5, NUMBER, 1)) == 9.5).all()
