"""The mean embedding from owners to rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.jobs.loading import load
from fedsynth.methods.embedding import synthesizer
from fedsynth.methods.embedding.synthesizer import MeanEmbedding
from fedsynth.methods.embedding.teacher import draw_told
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import Categorical, Continuous, ImageSchema, Integer, Schema
from tests.methods.embedding.test_messages import DIGITS, images
from tests.methods.small import SCHEMA, owners, table

FAST = {
    "components": 8,
    "random_features": 60,
    "patch_features": 10,
    "hidden": 16,
    "channels": 2,
    "steps": 3,
    "batch": 12,
}
FREE = Budget(epsilon=math.inf, trust="central")


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("epsilon", [0.3, 10.0])
def test_one_message_costs_the_budget_and_hardly_less(trust, unit, epsilon):
    budget = Budget(epsilon=epsilon, delta=1e-5, unit=unit, trust=trust, curious=1)
    synth = MeanEmbedding(DIGITS, **{**FAST, "steps": 0})
    synth.fit({"a": images(30), "b": images(5, 1)}, budget)
    assert len(synth.ledger.events) == 1
    assert 0.99 * epsilon <= synth.ledger.spent().epsilon <= epsilon
    # One question and one answer a client.
    assert synth.traffic.calls_per_client == 2


def test_without_privacy_the_certificate_is_void(tmp_path):
    synth = MeanEmbedding(SCHEMA, **FAST).fit(owners(40, 20), FREE)
    assert math.isinf(synth.ledger.spent().epsilon)
    certificate = synth.release(tmp_path / "release", synth.sample(10, seed=0))
    assert not certificate.content.get("valid", False)


def test_images_of_a_class_look_like_that_class():
    synth = MeanEmbedding(DIGITS, **{**FAST, "steps": 30, "components": 12})
    synth.fit([images(800)], Budget(epsilon=10.0, delta=1e-5, trust="central"), seed=0)
    for digit, bright in ((0, np.s_[:, :, :5]), (1, np.s_[:, :5, :])):
        made = synth.sample(40, where={"digit": digit}, seed=0)
        assert set(made.labels) == {digit}
        others = made.pixels.mean() * 2 - made.pixels[bright].mean()
        assert made.pixels[bright].mean() > others + 60
        # Images of a class differ from each other.
        assert made.pixels.reshape(40, -1).std(axis=0).mean() > 3


def test_shares_of_classes_follow_the_data_or_the_wish():
    synth = MeanEmbedding(DIGITS, **{**FAST, "steps": 0}).fit([images(600, classes=2)], FREE)
    drawn = synth.sample(2000, seed=0).labels
    assert np.bincount(drawn, minlength=3)[2] == 0
    wished = synth.sample(2000, proportions={0: 1, 2: 3}, seed=0).labels
    assert np.bincount(wished, minlength=3)[1] == 0
    assert (wished == 2).mean() == pytest.approx(0.75, abs=0.04)
    # A class without records can be asked for all the same.
    assert set(synth.sample(5, where={"digit": 2}, seed=0).labels) == {2}


def test_drawn_images_are_what_the_released_moments_take_them_for():
    synth = MeanEmbedding(DIGITS, **{**FAST, "steps": 0, "components": 12})
    synth.fit([images(800)], Budget(epsilon=10.0, delta=1e-5, trust="central"), seed=0)
    learned = synth.learned
    classes = np.arange(600) % 3
    made, coding = learned.embedding, learned.embedding.coding

    def told(records):
        said = learned.teacher.classes_of(
            made.coordinates(made.vectors(torch.tensor(records)).numpy())
        )
        return (said == classes).mean()

    plain = learned.generator.draw(classes, 0)
    kept = draw_told(learned.generator, learned.teacher, classes, np.random.default_rng(0))
    assert told(kept) >= max(0.99, told(plain))
    assert coding.intensities(kept).max() <= 1
    assert synth.remarks == ()


def test_images_are_shown_as_drawn_unless_they_lean(monkeypatch):
    synth = MeanEmbedding(DIGITS, **{**FAST, "steps": 0})
    synth.fit([images(200)], Budget(epsilon=10.0, delta=1e-5, trust="central"), seed=0)
    shown = {}
    for leans in (0.0, 1.0):
        roots = synth.learned.roots.copy()
        roots[:, -1] = leans
        learned = replace(synth.learned, roots=roots)
        with monkeypatch.context() as unmoved:
            unmoved.setattr(synthesizer, "move", lambda drawn, *_: drawn)
            still = learned.draw(30, None, None, 0)
        shown[leans] = (learned.draw(30, None, None, 0).pixels == still.pixels).mean(axis=(1, 2))
    assert shown[0.0].min() == 1
    assert shown[1.0].max() < 1


def test_a_class_without_images_is_told_of():
    synth = MeanEmbedding(DIGITS, **{**FAST, "steps": 0}).fit([images(600, classes=2)], FREE)
    (remark,) = synth.remarks
    assert "images of 2 from" in remark


def test_a_release_of_before_images_were_sheared_draws_what_it_drew():
    settings = {**FAST, "steps": 0, "upright": False}
    synth = MeanEmbedding(DIGITS, **settings).fit([images(50)], FREE)
    arrays, meta = synth.model_state()
    del meta["settings"]["upright"]
    again = MeanEmbedding.from_state(DIGITS, arrays, meta).sample(20, seed=5)
    np.testing.assert_array_equal(again.pixels, synth.sample(20, seed=5).pixels)


@pytest.mark.parametrize("shape", [[3, 3], [1, 6], [12, 9, 3]])
@pytest.mark.parametrize("labelled", [True, False])
def test_images_of_any_shape(shape, labelled):
    schema = ImageSchema(shape=shape, target=DIGITS.target if labelled else None, maximum=16)
    pixels = np.random.default_rng(0).integers(0, 17, (9, *shape)).astype(np.uint8)
    owned = Images(pixels, np.zeros(9, np.int64) if labelled else None)
    synth = MeanEmbedding(schema, **FAST).fit([owned], Budget(epsilon=1.0))
    made = synth.sample(7, seed=0)
    assert made.pixels.shape == (7, *shape)
    assert made.pixels.max() <= 16
    assert (made.labels is not None) == labelled


def test_a_tables_columns_depend_on_its_target_as_in_the_data():
    budget = Budget(epsilon=20.0, delta=1e-5, trust="central")
    synth = MeanEmbedding(SCHEMA, hidden=32, steps=80, batch=100, learning_rate=1e-2)
    synth.fit([table(4000)], budget, seed=0)
    ill = synth.sample(600, where={"outcome": "ill"}, seed=0)
    well = synth.sample(600, where={"outcome": "well"}, seed=0)
    assert set(ill["outcome"]) == {"ill"}
    assert ill["dose"].mean() > well["dose"].mean() + 3
    assert (ill["colour"] == "red").mean() > 0.6
    assert (well["colour"] == "red").mean() < 0.2
    assert 0.02 < well["colour"].isna().mean() < 0.3
    assert list(ill) == list(table(1))


def test_conditions_on_other_columns_are_met():
    synth = MeanEmbedding(SCHEMA, **FAST).fit(owners(200), FREE)
    made = synth.sample(30, where={"outcome": "ill", "smoker": True}, seed=0)
    assert set(made["outcome"]) == {"ill"}
    assert set(made["smoker"]) == {True}


_WELL = pd.Series(["well", "well"])
ONE_NUMBER = Schema(columns=[Continuous(name="x", lower=0, upper=1, decimals=2, missing=True)])
TARGET_ALONE = Schema(columns=[Categorical(name="y", values=["a", "b"])], target="y")
NUMERIC_TARGET = Schema(
    columns=[Integer(name="x", lower=0, upper=9), Integer(name="y", lower=0, upper=9)], target="y"
)


@pytest.mark.parametrize("kind", ["images", "table"])
def test_a_release_draws_the_same_rows_for_a_seed(kind, tmp_path):
    schema, owned = (DIGITS, [images(50)]) if kind == "images" else (SCHEMA, owners(50, 30, 20))
    synth = MeanEmbedding(schema, **FAST).fit(owned, Budget(epsilon=3.0))
    rows = synth.sample(20, seed=5)
    synth.release(tmp_path / "release", rows)
    again = load(tmp_path / "release").sample(20, seed=5)
    if isinstance(rows, Images):
        np.testing.assert_array_equal(again.pixels, rows.pixels)
        np.testing.assert_array_equal(again.labels, rows.labels)
    else:
        pd.testing.assert_frame_equal(again, rows)
    other = synth.sample(20, seed=6)
    different = (
        (other.pixels != rows.pixels).any() if isinstance(rows, Images) else not other.equals(rows)
    )
    assert different


def test_parts_that_do_not_fit_together_are_refused():
    synth = MeanEmbedding(SCHEMA, **FAST).fit(owners(20), Budget(epsilon=1.0))
    arrays, meta = synth.model_state()
    MeanEmbedding.from_state(SCHEMA, arrays, meta)
    for name in arrays:
        with pytest.raises(ReleaseError, match=r"do not fit|no shares"):
            MeanEmbedding.from_state(SCHEMA, {**arrays, name: arrays[name][..., :-1]}, meta)
    with pytest.raises(ReleaseError, match=r"do not fit|no shares"):
        MeanEmbedding.from_state(SCHEMA, arrays, {"settings": {"steps": "many"}})


def test_the_seed_decides_the_generator():
    def rows(seed):
        synth = MeanEmbedding(DIGITS, **FAST)
        budget = Budget(epsilon=1.0, trust="central")
        synth.fit([images(50)], budget, seed=seed, insecure_noise_seed=3)
        return synth.sample(5, seed=0).pixels

    np.testing.assert_array_equal(rows(1), rows(1))
    assert (rows(1) != rows(2)).any()


def test_an_interrupted_training_resumes_without_asking_again(tmp_path):
    budget = Budget(epsilon=1.0, trust="central")

    def stop(label, done, total, epsilon):
        if label == "generator":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MeanEmbedding(DIGITS, **FAST).fit([images(50)], budget, folder=tmp_path, progress=stop)
    synth = MeanEmbedding(DIGITS, **FAST).fit([images(50)], budget, folder=tmp_path, resume=True)
    assert len(synth.ledger.events) == 1
    assert len(Ledger.open(tmp_path / "ledger.jsonl").events) == 1
    assert len(synth.sample(3, seed=0)) == 3


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"moments_share": 0.95}, "leave random features"),
        ({"moments_share": 0.0}, "must be positive"),
        ({"bandwidths": []}, "list of positive numbers"),
        ({"steps": -1}, "steps"),
    ],
)
def test_senseless_settings_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        MeanEmbedding(DIGITS, **overrides).fit([images(5)], Budget(epsilon=1.0))
