"""The classifier that clients send."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ReleaseError
from fedsynth.methods.sampling.classifier import Classifier, standardisation


def rings(rows, seed=0):
    """Class 1 within a circle: no linear classifier tells them apart."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) * [1.0, 1000.0] + [5.0, -300.0]
    z = (x - [5.0, -300.0]) / [1.0, 1000.0]
    return x, ((z**2).sum(1) < 1.2).astype(np.int64)


def test_it_learns_what_no_linear_classifier_can():
    x, y = rings(900)
    model = Classifier.train(x, y, 2, seed=0)
    fresh_x, fresh_y = rings(500, seed=1)
    answers = model.probabilities(fresh_x)
    assert (answers.argmax(1) == fresh_y).mean() > 0.93
    assert answers.sum(1) == pytest.approx(1)


def test_probabilities_agree_with_torch_layers():
    x, y = rings(60)
    model = Classifier.train(x, y, 3, seed=0, epochs=2)
    assert [w.shape for w in model.weights[::2]] == [(100, 2), (100, 100), (3, 100)]
    layers = []
    for weight, bias in zip(model.weights[::2], model.weights[1::2], strict=True):
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
        layers += [layer, torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    z = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    expected = torch.softmax(network(z).double(), 1).detach().numpy()
    assert model.probabilities(x) == pytest.approx(expected, abs=1e-6)


@given(st.integers(0, 4), st.integers(1, 4), st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_a_vector_holds_all_of_it(width, classes, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, width)), rng.integers(0, classes, 30)
    model = Classifier.train(x, y, classes, seed=seed, epochs=1)
    vector = model.to_vector()
    assert vector.shape == (Classifier.size(width, classes),)
    again = Classifier.from_vector(vector, width, classes)
    assert (again.probabilities(x) == model.probabilities(x)).all()
    assert (again.to_vector() == vector).all()


def test_the_same_seed_gives_the_same_classifier_and_no_global_state_is_touched():
    x, y = rings(200)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = Classifier.train(x, y, 2, seed=3, epochs=2)
    assert (first.to_vector() == Classifier.train(x, y, 2, seed=3, epochs=2).to_vector()).all()
    assert (first.to_vector() != Classifier.train(x, y, 2, seed=4, epochs=2).to_vector()).any()
    assert (torch.get_rng_state() == before).all()


def test_one_class_alone_is_a_constant_answer():
    x = np.random.default_rng(0).normal(size=(5, 3))
    model = Classifier.train(x, np.full(5, 2), 4, seed=0)
    assert model.probabilities(x * 50).tolist() == [[0, 0, 1, 0]] * 5


def test_without_rows_nothing_is_known():
    model = Classifier.train(np.zeros((0, 3)), np.zeros(0, np.int64), 4, seed=0)
    assert model.probabilities(np.ones((2, 3))).tolist() == [[0.25] * 4] * 2
    assert (
        Classifier.train(np.zeros((0, 3)), np.zeros(0, np.int64), 4, seed=0, start=model)
    ) is model


def test_training_goes_on_from_a_given_start():
    x, y = rings(400)
    start = Classifier.initial(np.array([1.0, 2.0]), np.array([3.0, 900.0]), 2, seed=9)
    kept = start.to_vector()
    assert (Classifier.train(x, y, 2, seed=0, epochs=0, start=start).to_vector() == kept).all()
    on = Classifier.train(x, y, 2, seed=0, epochs=5, start=start)
    assert (on.mean == start.mean).all() and (on.scale == start.scale).all()
    assert (start.to_vector() == kept).all(), "the start itself is left as it was"

    def loss(model):
        return -np.log(model.probabilities(x)[np.arange(len(y)), y]).mean()

    assert loss(on) < loss(start)


def test_a_constant_and_a_huge_column_do_no_harm():
    x, y = rings(800)
    wild = np.column_stack([x, np.full(len(x), 0.1), np.where(np.arange(len(x)) == 3, 1e15, 0)])
    model = Classifier.train(wild, y, 2, seed=0)
    answers = model.probabilities(wild)
    assert np.isfinite(answers).all()
    assert (answers.argmax(1) == y).mean() > 0.93
    _, scale = standardisation(wild)
    assert scale[2] == 1


@pytest.mark.parametrize("fault", ["short", "nan", "scale"])
def test_a_vector_that_is_none_is_refused(fault):
    vector = Classifier.initial(np.zeros(2), np.ones(2), 2, seed=0).to_vector()
    if fault == "short":
        vector = vector[:-1]
    elif fault == "nan":
        vector[-1] = np.nan
    else:
        vector[2] = 0
    with pytest.raises(ReleaseError):
        Classifier.from_vector(vector, 2, 2)
