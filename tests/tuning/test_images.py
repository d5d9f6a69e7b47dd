"""Images are tuned on as tables are: the student network, or any other model of pixels."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.models.students import Training, image_probabilities
from fedsynth.evaluation.reading.labelled import label_features
from fedsynth.tuning.images import StudentNetwork, flatten, shape_of
from fedsynth.tuning.rows import supervise
from fedsynth.tuning.spaces import named_space
from tests.evaluation.image_samples import SCHEMA, drawn

OPTIONS = {"trials": 2, "rows": 60, "seed": 1, "progress": False}
SMALL = {"epochs": (5, 9), "batch": [8], "maps": (2, 4), "hidden": (8, 16)}
COLOURED = fs.ImageSchema(shape=(5, 4, 3), maximum=16, target=SCHEMA.target)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures") / "release"
    made = {"hidden": 32, "steps": 60, "batch": 60, "channels": 0, "random_features": 100}
    synth = fs.MeanEmbedding(SCHEMA, **made, patch=0, learning_rate=1e-2, average=0.9)
    synth.fit(drawn(300, 1), {"epsilon": 20.0, "curious": 0}, insecure_noise_seed=0)
    synth.release(folder, rows=60, seed=1)
    return folder


def test_the_student_network_is_searched_and_trained_on_real_images(pictures: Path):
    found = fs.tune(pictures, None, SMALL, **OPTIONS)
    assert found.model == "student network"
    assert {name.removeprefix("model__") for name in found.settings} > set(SMALL)
    assert found.code.startswith("from fedsynth.tuning.images import StudentNetwork\n\nStudent")
    model = found.train(drawn(80, 7))
    unseen = drawn(200, 8)
    said = model.predict(unseen.pixels)
    names = np.array(SCHEMA.target.values)
    assert (said == names[unseen.labels]).mean() > 0.8
    assert found.compare(drawn(80, 7), unseen).tuned > 0.8
    again = fs.tune(pictures, None, SMALL, **OPTIONS)
    assert again.candidates == found.candidates


def test_any_model_of_pixels_is_searched(pictures: Path):
    found = fs.tune(pictures, LogisticRegression(), {"C": (0.01, 1.0, "log")}, **OPTIONS)
    assert found.best.score > 0.9
    for name in ("gradient boosting", "k nearest neighbours", "support vectors"):
        model = named_space(name, SCHEMA).build(SCHEMA, 0)
        known = supervise(drawn(60, 1), SCHEMA)
        assert model.fit(known.x, known.y).predict(known.x).shape == (60,)
    with pytest.raises(ConfigError, match="did you mean 'student network'"):
        fs.tune(pictures, "student net", **OPTIONS)


def test_pixels_are_read_as_the_reports_network_reads_them():
    images = drawn(20, 3, shape=(5, 4, 3), maximum=16)
    labelled = label_features(images, COLOURED)
    rows = flatten(images.pixels, 16)
    assert (rows.reshape(20, *shape_of(COLOURED)) == labelled.x).all()
    assert flatten(np.full((1, 2, 2), 200, np.uint8), 100).max() == 1


def test_the_default_student_is_the_papers_network():
    images, others = drawn(60, 3, shape=(5, 4, 3), maximum=16), drawn(30, 4, shape=(5, 4, 3))
    student = StudentNetwork(shape_of(COLOURED), random_state=5)
    student.fit(flatten(images.pixels, 16), images.labels)
    x = label_features(others, COLOURED).x
    expected = image_probabilities(label_features(images, COLOURED), x, 5, Training())
    np.testing.assert_array_equal(student.predict_proba(x.reshape(30, -1)), expected)


def test_students_are_estimators_like_others():
    images = drawn(40, 3)
    student = StudentNetwork(shape_of(SCHEMA), maps=2, hidden=4, epochs=1)
    x, y = flatten(images.pixels, 255), np.array(["b", "a"])[images.labels]
    before = torch.get_rng_state()
    one, two = (clone(student).fit(x, y) for _ in range(2))
    assert (torch.get_rng_state() == before).all()
    np.testing.assert_array_equal(one.predict_proba(x), two.predict_proba(x))
    assert set(one.predict(x)) <= {"a", "b"}
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.predict_proba(x), one.predict_proba(x))
    # What it learned from does not travel with it.
    assert not any(len(value) == len(x) for value in vars(one).values() if np.ndim(value))
    assert (student.fit(x, ["a"] * len(x)).predict(x) == "a").all()
    strong = clone(student).set_params(weight_decay=100.0, epochs=3).fit(x, y)
    assert strong.net_.output.weight.norm() < one.net_.output.weight.norm()


def test_images_of_another_shape_or_of_one_label_are_told():
    with pytest.raises(DataError, match="shape"):
        supervise(drawn(5, 1, shape=(7, 7)), SCHEMA, "real")
    one = drawn(5, 1)
    same = fs.Images(one.pixels, np.zeros(5, np.int64))
    with pytest.raises(DataError, match="same value of the target 'digit'"):
        supervise(same, SCHEMA, "real")
    with pytest.raises(DataError, match="image schema"):
        supervise(pd.DataFrame({"a": [1]}), SCHEMA, "real")
