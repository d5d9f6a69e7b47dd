"""Fourteen classifiers: they learn, they are scikit-learn's, and no table breaks them."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, svm

from fedsynth.evaluation.models import classifiers, students
from fedsynth.evaluation.models.classifiers import CLASSIFIERS, STANDARD, boosting
from fedsynth.evaluation.models.learners import Learner, answer, fit
from fedsynth.evaluation.reading.labelled import label_rows
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.evaluation.reading.scores import score
from fedsynth.schema import Categorical, Continuous, Schema
from tests.evaluation.learning_tables import BINARY, THREE, frame, taught

BY_NAME = {learner.name: learner for learner in CLASSIFIERS}
EVERY = pytest.mark.parametrize("learner", CLASSIFIERS, ids=lambda learner: learner.name)


@pytest.fixture
def briefly(monkeypatch):
    """Networks pass a few times over their rows, and few stumps are boosted: what they learn is
    not looked at."""
    training = students.Training
    monkeypatch.setattr(students, "Training", lambda epochs: training(epochs=min(epochs, 2)))
    perceptron = neural_network.MLPClassifier
    monkeypatch.setattr(
        neural_network, "MLPClassifier", lambda max_iter, **own: perceptron(max_iter=5, **own)
    )
    stumps = functools.partial(ensemble.AdaBoostClassifier, n_estimators=8)
    monkeypatch.setattr(ensemble, "AdaBoostClassifier", stumps)


def scores(learner, train, test, seed=0):
    return score(answer(fit(learner, train, seed), test), test.y)


def test_there_are_the_papers_twelve_its_student_and_logistic_regression():
    assert len(CLASSIFIERS) == len(BY_NAME) == 14
    assert CLASSIFIERS[0].name == "gradient boosting (histogram)"
    assert STANDARD == 6


def test_the_student_learns():
    learner = BY_NAME["student network"]
    assert scores(learner, taught(64), taught(300, seed=1)).auroc > 0.85


@pytest.mark.parametrize("learner", CLASSIFIERS[:-1], ids=lambda learner: learner.name)
@pytest.mark.parametrize("schema", [BINARY, THREE], ids=["two", "three"])
def test_every_other_classifier_learns_and_shuffled_answers_teach_nothing(learner, schema):
    train, test = taught(300, schema), taught(400, schema, 1)
    found = scores(learner, train, test)
    # A tree overfits; no line tells the middle class from both others.
    assert found.auroc > 0.75
    assert found.accuracy > 0.65
    if schema is BINARY and learner is not CLASSIFIERS[0]:
        return
    shuffled = train.rows.values.copy()
    shuffled[:, -1] = np.random.default_rng(0).permutation(shuffled[:, -1])
    rows = type(train.rows)(schema, shuffled, train.rows.outside)
    # What is learned at random may well be the contrary of the truth.
    assert scores(learner, label_rows(rows), test).auroc < 0.65


@EVERY
def test_a_seed_gives_one_model_and_no_warning_gets_through(learner, briefly):
    train, test = taught(30), taught(30, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, again = (answer(fit(learner, train, 3), test) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (30, 2)


ODD = {
    "ten rows, three classes": {"n": 10, "y": [*"aaaabbbbbc"]},
    "every row a gap": {"n": 20, "x": None, "colour": None, "size": 4, "flag": True},
    "one value each": {"n": 20, "x": 1.0, "colour": "red", "size": 4, "flag": True},
    "a category not listed": {"n": 20, "colour": "pink"},
    "numbers far outside": {"n": 20, "size": [10**12, *range(19)]},
    "two rows": {"n": 2, "y": ["a", "b"]},
    "a class of one row": {"n": 30, "y": [*"ab" * 14, "a", "c"]},
}
BLANK = ("every row a gap", "one value each")


@EVERY
@pytest.mark.parametrize("case", ODD)
def test_odd_rows_give_figures_or_nothing_and_never_noise(learner, case, briefly):
    changes = dict(ODD[case])
    train, test = taught(changes.pop("n"), THREE, 0, **changes), taught(40, THREE, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = answer(fit(learner, train, 0), test)
    # The linear one needs more rows than classes, the quadratic one two classes of many rows.
    if found is None:
        assert (learner.name, case) in {
            ("linear discriminant", "two rows"),
            *(("quadratic discriminant", case) for case in ODD if case not in BLANK),
        }
        return
    assert found.shape == (40, 3)
    assert np.isfinite(found).all()
    if case in BLANK and learner.name != "student network":
        assert score(found, test.y).auroc == 0.5


@EVERY
def test_one_class_in_training_is_the_answer_to_everything(learner):
    test = taught(30, THREE, 1)
    found = scores(learner, taught(20, THREE, y="b"), test)
    assert found.accuracy == (test.y == 1).mean()
    assert found.auroc == 0.5


@EVERY
def test_a_class_never_seen_is_never_answered(learner, briefly):
    train, test = taught(40, THREE), taught(60, THREE, 1)
    train = train.take(train.y != 1)
    found = answer(fit(learner, train, 0), test)
    assert not (found.argmax(axis=1) == 1).any()
    assert np.ptp(found[:, 1]) == 0 or learner.name == "student network"


def test_classifiers_are_scikit_learns_on_the_vectors():
    train, test = taught(150, THREE), taught(80, THREE, 1)
    x, z = (train.vectors(table).astype(np.float64) for table in (train, test))
    for name, model in {
        "logistic regression": linear_model.LogisticRegression(max_iter=200),
        "k nearest neighbours": neighbors.KNeighborsClassifier(),
        "random forest": ensemble.RandomForestClassifier(classifiers.TREES, random_state=5),
        "AdaBoost": ensemble.AdaBoostClassifier(random_state=5),
        "naive Bayes": naive_bayes.GaussianNB(),
    }.items():
        expected = model.fit(x, train.y).predict_proba(z)
        found = answer(fit(BY_NAME[name], train, 5), test)
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=name)
    machine = svm.SVC().fit(x, train.y)
    found = answer(fit(BY_NAME["support vectors"], train, 5), test)
    np.testing.assert_allclose(found, machine.decision_function(z), atol=1e-5)
    assert (found.argmax(axis=1) == machine.predict(z)).mean() > 0.95


def test_two_classes_by_decisions_answer_as_predicted():
    train, test = taught(150), taught(80, seed=1)
    machine = svm.LinearSVC(dual=False).fit(train.vectors(train).astype(float), train.y)
    found = answer(fit(BY_NAME["linear support vectors"], train, 0), test)
    vectors = train.vectors(test).astype(float)
    np.testing.assert_array_equal(found.argmax(axis=1), machine.predict(vectors))
    np.testing.assert_allclose(found[:, 1], machine.decision_function(vectors), atol=1e-6)


def test_boosting_takes_gaps_and_categories_as_they_are_whatever_they_are_called():
    train, test = taught(400, THREE), taught(200, THREE, 1)
    other = {"red": "zebra", "green": "antelope", "blue": "mouse"}
    columns = [
        Categorical(name="colour", values=("mouse", "zebra", "antelope"), missing=True)
        if column.name == "colour"
        else column
        for column in THREE.columns
    ]
    schema = Schema(columns=columns, target="y")
    renamed = [
        label_rows(read_rows(table.assign(colour=table["colour"].map(other)), schema, "rows"))
        for table in (frame(400, THREE), frame(200, THREE, 1))
    ]
    learner = BY_NAME["gradient boosting (histogram)"]
    one = answer(fit(learner, train, 0), test)
    two = answer(fit(learner, renamed[0], 0), renamed[1])
    np.testing.assert_allclose(one, two, atol=1e-9)
    model = boosting([0, 0, 3, 3], 3, 0)
    assert np.array(model.categorical_features).tolist() == [False, False, True, True]


def test_the_order_of_rows_does_not_matter_to_models_without_chance():
    train, test = taught(300), taught(100, seed=1)
    turned = train.take(np.random.default_rng(0).permutation(300))
    for name in ("gradient boosting (histogram)", "logistic regression", "naive Bayes"):
        one, two = (answer(fit(BY_NAME[name], t, 0), test) for t in (train, turned))
        np.testing.assert_allclose(one, two, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("categories", [254, 255, 256, 400])
def test_many_categories_and_undeclared_ones_are_taken(categories):
    values = tuple(f"v{i:03}" for i in range(categories))
    schema = Schema(
        columns=(Categorical(name="code", values=values), Categorical(name="y", values=(0, 1))),
        target="y",
    )
    code = np.repeat(np.arange(categories), 20)
    y = (code >= categories // 2).astype(int)
    spelled = np.array([*values, "undeclared"], object)
    table = pd.DataFrame({"code": spelled[code], "y": y})
    extra = pd.DataFrame({"code": ["undeclared"] * 20, "y": [0] * 20})
    train = label_rows(read_rows(pd.concat([table, extra]), schema, "rows"))
    assert scores(CLASSIFIERS[0], train, train).accuracy > 0.97


def test_a_rare_class_does_not_cost_the_quadratic_discriminant():
    train, test = taught(300, THREE), taught(200, THREE, 1)
    rare = np.flatnonzero(train.y == 2)[1:]
    train = train.take(np.setdiff1d(np.arange(300), rare))
    found = answer(fit(BY_NAME["quadratic discriminant"], train, 0), test)
    assert score(found[test.y < 2], test.y[test.y < 2]).accuracy > 0.8
    assert not found[:, 2].any()


def test_many_classes_take_no_longer_than_a_few():
    values = tuple(range(60))
    schema = Schema(
        columns=(
            Continuous(name="x", lower=0, upper=60, decimals=3),
            Categorical(name="y", values=values),
        ),
        target="y",
    )
    x = np.random.default_rng(0).uniform(0, 60, 1500).round(3)
    table = pd.DataFrame({"x": x, "y": np.minimum(x.astype(int), 59)})
    train = label_rows(read_rows(table, schema, "rows"))
    assert boosting([0], 60, 0, rounds=100).max_iter == 16
    assert scores(CLASSIFIERS[0], train, train).accuracy > 0.5


def test_rows_of_wide_tables_and_many_classes_are_fewer():
    train = taught(3000)
    assert all(learner.rows(train) == min(3000, learner.most) for learner in CLASSIFIERS)
    assert all(learner.rows(train.take(np.arange(20))) == 20 for learner in CLASSIFIERS)
    wide = Schema(
        columns=(
            *(Continuous(name=f"x{i}", lower=0, upper=1, decimals=1) for i in range(749)),
            Categorical(name="y", values=(0, 1)),
        ),
        target="y",
    )
    table = pd.DataFrame(np.zeros((2000, 750)), columns=[c.name for c in wide.columns])
    found = label_rows(read_rows(table, wide, "rows"))
    # 749 numbers count for 5,992 coordinates, 33 times what gets all rows: 50,000 become 1,500.
    assert 1490 < BY_NAME["naive Bayes"].rows(found) < 1510
    assert BY_NAME["support vectors"].rows(found) == 1000
    three = taught(60_000, THREE)
    rows = [BY_NAME[name].rows(three) for name in ("naive Bayes", "gradient boosting")]
    assert rows == [50_000, 10_000 * 2 // 3]


def test_seeds_may_be_of_any_size():
    train = taught(40)
    assert answer(fit(BY_NAME["random forest"], train, 2**40), train) is not None


def test_answers_that_are_no_numbers_are_none():
    train = taught(20)
    for wrong in (np.nan, np.inf):
        spoiled = Learner("spoiled", lambda *_: lambda others: np.full((len(others), 2), wrong))  # noqa: B023
        assert answer(fit(spoiled, train, 0), train) is None
    assert answer(None, train) is None
