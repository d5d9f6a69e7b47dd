"""Scores against scikit-learn and worked cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from fedsynth.evaluation.reading.scores import answer_always, score, score_numbers


def test_auroc_of_the_textbook_case():
    # Positives .35 and .8 against negatives .1 and .4: three of the four pairs are in order.
    positive = np.array([0.1, 0.4, 0.35, 0.8])
    truth = np.array([0, 0, 1, 1])
    found = score(np.stack([1 - positive, positive], axis=1), truth)
    assert found.auroc == 0.75 == metrics.roc_auc_score(truth, positive)
    assert found.accuracy == 0.75
    assert found.f1_positive == pytest.approx(2 / 3)  # precision 1, recall 1/2
    assert found.rows == 4
    # Precision 1 at recall 1/2, then 2/3 at recall 1.
    assert found.average_precision == pytest.approx(5 / 6)


@settings(max_examples=20, deadline=None)
@given(
    classes=st.integers(2, 6),
    rows=st.integers(1, 40),
    levels=st.integers(1, 20),
    seed=st.integers(0, 2**32),
)
def test_scores_equal_scikit_learns(classes, rows, levels, seed):
    rng = np.random.default_rng(seed)
    # Few levels make ties, which count one half.
    probabilities = rng.integers(1, levels + 1, (rows, classes)).astype(float)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    truth = rng.integers(classes, size=rows)
    predicted = probabilities.argmax(axis=1)
    found = score(probabilities, truth)
    present = np.unique(truth)
    recalls = metrics.recall_score(truth, predicted, labels=present, average=None, zero_division=0)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert found.balanced_accuracy == pytest.approx(recalls.mean())
    macro = metrics.f1_score(truth, predicted, average="macro", zero_division=0)
    assert found.f1 == pytest.approx(macro)
    if classes == 2:
        positive = metrics.f1_score(truth, predicted, pos_label=1, zero_division=0)
        assert found.f1_positive == pytest.approx(positive)
    else:
        assert math.isnan(found.f1_positive)
    if len(present) == 1:
        assert math.isnan(found.auroc)
        assert math.isnan(found.average_precision)
        return
    against_rest = [metrics.roc_auc_score(truth == c, probabilities[:, c]) for c in present]
    assert found.auroc == pytest.approx(against_rest[1] if classes == 2 else np.mean(against_rest))
    precise = [metrics.average_precision_score(truth == c, probabilities[:, c]) for c in present]
    expected = precise[1] if classes == 2 else np.mean(precise)
    assert found.average_precision == pytest.approx(expected)


def test_multiclass_auroc_is_scikit_learns_macro_one_against_rest():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), 200)
    truth = rng.integers(4, size=200)
    expected = metrics.roc_auc_score(truth, probabilities, multi_class="ovr", average="macro")
    assert score(probabilities, truth).auroc == pytest.approx(expected)


def test_one_answer_to_everything_scores_its_share_and_half():
    truth = np.array([0] * 7 + [1] * 2 + [2])
    found = score(answer_always(0, 10, 4), truth)
    assert (found.accuracy, found.auroc) == (0.7, 0.5)
    # Every row ties, so each class's precision is its share: (.7 + .2 + .1) / 3.
    assert found.average_precision == pytest.approx(1 / 3)
    assert found.balanced_accuracy == pytest.approx(1 / 3)


def test_decisions_do_as_well_as_probabilities():
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=(50, 3)) * 100
    truth = rng.integers(3, size=50)
    assert score(decisions, truth) == score(np.argsort(np.argsort(decisions, axis=None)).reshape(
        decisions.shape) / 1000, truth)  # fmt: skip


def test_a_worked_regression():
    # Residuals 1, -1, 0; the truth deviates by -2, 0, 2 from its mean.
    found = score_numbers(np.array([0.0, 4.0, 5.0]), np.array([1.0, 3.0, 5.0]))
    assert found.r2 == pytest.approx(1 - 2 / 8)
    assert found.mae == pytest.approx(2 / 3)
    assert found.rows == 3


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(2, 40), seed=st.integers(0, 2**32), scale=st.sampled_from([1e-3, 1, 1e6]))
def test_scores_of_numbers_equal_scikit_learns(rows, seed, scale):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.normal(size=(2, rows)) * scale
    found = score_numbers(predicted, truth)
    assert found.r2 == pytest.approx(metrics.r2_score(truth, predicted))
    assert found.mae == pytest.approx(metrics.mean_absolute_error(truth, predicted))


def test_the_mean_explains_nothing_and_one_number_cannot_be_explained():
    truth = np.array([1.0, 2.0, 6.0])
    assert score_numbers(np.full(3, 3.0), truth).r2 == 0
    assert math.isnan(score_numbers(truth, np.full(3, 3.0)).r2)
