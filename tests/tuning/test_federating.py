"""Settings found on synthetic rows mean the same to a federated classifier, or are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import fedsynth as fs
from fedsynth.errors import ConfigError
from fedsynth.tuning.federating import federate
from tests.methods.small import table


@pytest.mark.parametrize("classes", [2, 3])
def test_weight_decay_is_scikit_learns_penalty(classes):
    """The minimum of the mean cross-entropy of softmax logits with it has the probabilities of
    scikit-learn's logistic regression."""
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(60, 2))
    y = (x[:, 0] + rng.normal(size=60) > 0).astype(int) + (classes == 3) * (x[:, 1] > 0.5)
    C = 0.05
    decay = federate("logistic regression", {"model__C": C}, 60, classes)["weight_decay"]
    design = np.column_stack([x, np.ones(60)])

    def loss(flat):
        weights = flat.reshape(classes, 3)
        logits = design @ weights.T
        likely = logits[np.arange(60), y] - np.log(np.exp(logits).sum(1))
        return -likely.mean() + decay / 2 * (weights[:, :2] ** 2).sum()

    found = minimize(loss, np.zeros(3 * classes), tol=1e-12).x.reshape(classes, 3)
    scores = np.exp(design @ found.T)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(scores / scores.sum(1, keepdims=True), theirs, atol=1e-4)


def test_a_perceptrons_layers_and_penalty_go_over_and_adams_rate_does_not():
    settings = {
        "model__hidden_layer_sizes": (32, 16),
        "model__alpha": 0.1,
        "model__learning_rate_init": 0.01,
    }
    found = federate("multilayer perceptron", settings, 8_000, 2)
    assert found == {"hidden": [32, 16], "weight_decay": pytest.approx(0.1 / 200)}
    assert federate("multilayer perceptron", {}, 50, 2)["hidden"] == [100]


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        ("gradient boosting", {}, "no federated form.*logistic regression"),
        ("LogisticRegression", {"model__C": 1.0}, "no federated form"),
        ("logistic regression", {"model__solver": "saga"}, "'solver' has no federated form"),
    ],
)
def test_what_has_no_federated_form_is_refused(model, settings, said):
    with pytest.raises(ConfigError, match=said):
        federate(model, settings, 100, 2)


def test_what_a_search_found_is_trained_on_owners_rows(releases: list[Path]):
    found = fs.tune(releases[0], "logistic regression", trials=2, rows=200)
    model = found.federated(rounds=2, rate=1.0)
    wanted = federate("logistic regression", found.settings, 200, 2)["weight_decay"]
    assert model.settings.weight_decay == wanted > 0
    assert (model.settings.rounds, model.settings.hidden) == (2, ())
    model.fit([table(40, 1), table(40, 2)], epsilon=5.0, delta=1e-4, trust="central")
    assert model.predict_proba(table(5)).shape == (5, 2)
