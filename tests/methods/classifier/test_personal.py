"""What an owner makes of a released classifier: by hand, at home, and nowhere else."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.errors import ConfigError, DataError
from tests.methods.small import SCHEMA, owners, table

BUDGET = fs.Budget(epsilon=2.0, delta=1e-4, curious=1)


@cache
def fitted():
    model = fs.FederatedClassifier(SCHEMA, rounds=2, rate=1.0, scaled_by="schema")
    return model.fit(owners(30, 20), BUDGET, seed=1)


def weights_of(personal):
    return personal._model.learned.weights.reshape(2, -1).astype(float)


@pytest.mark.parametrize("epochs", [1, 2])
def test_one_batch_an_epoch_is_gradient_descent_pulled_back(epochs):
    model, own = fitted(), table(40, seed=7)
    data = conform(own, SCHEMA)
    features = model.learned.model.features
    x = np.column_stack([features.vectors(data), np.ones(len(own))]).astype(float)
    labels, start = np.eye(2)[features.labels(data)], model.learned.weights.reshape(2, -1)
    wanted = start.astype(float)
    for _ in range(epochs):
        logits = x @ wanted.T
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        slope = (shares - labels).T @ x / len(x)
        wanted = wanted - 0.5 * (slope + 0.3 * (wanted - start))
    found = model.personalise(own, epochs=epochs, learning_rate=0.5, batch_size=99, proximal=0.3)
    np.testing.assert_allclose(weights_of(found), wanted, rtol=1e-4, atol=1e-6)


def test_a_pull_keeps_few_rows_near_what_all_learned():
    model, own = fitted(), table(20, seed=8)
    start = model.learned.weights.reshape(2, -1)
    far, near = (
        np.linalg.norm(weights_of(model.personalise(own, epochs=30, proximal=pull)) - start)
        for pull in (0.0, 5.0)
    )
    assert 0 < near < far / 2


def test_an_owner_unlike_the_others_is_served_better_by_its_own():
    model, own = fitted(), table(300, seed=3)
    own["outcome"] = own["outcome"].map({"ill": "well", "well": "ill"})
    learned, other = own.iloc[:200], own.iloc[200:]
    assert model.personalise(learned, epochs=20).score(other) > 0.8 > model.score(other) + 0.3


def test_what_was_released_stays_as_it_was_and_nobody_is_asked():
    model = fitted()
    before, events = model.learned.weights.copy(), len(model.ledger.events)
    personal = model.personalise(table(30, seed=2))
    assert (model.learned.weights == before).all() and len(model.ledger.events) == events
    # There is no way to hand it on as if it were covered.
    assert not {"release", "save", "ledger", "certificate"} & set(dir(personal))
    assert "as private as they are" in repr(personal)


def test_what_cannot_be_gone_on_with_is_refused():
    model = fitted()
    with pytest.raises(ConfigError, match="call fit first"):
        fs.FederatedClassifier(SCHEMA).personalise(table(5))
    with pytest.raises(ConfigError, match="proximal"):
        model.personalise(table(5), proximal=-1)
    with pytest.raises(DataError, match="outcome"):
        model.personalise(table(5).drop(columns="outcome"))
    with pytest.raises(ConfigError, match="take a smaller one"):
        model.personalise(table(9), learning_rate=1e30, epochs=5, proximal=1.0)
