"""A classifier learns from owners' rows what was released of them, and nothing else."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import nn

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.errors import ConfigError, DataError, PrivacyError, ReleaseError
from fedsynth.methods.classifier.features import Features, cuts_by_bounds, cuts_by_rows
from fedsynth.queries.session import Session
from fedsynth.release import read_release
from tests.methods.door import digest, listening, other_table
from tests.methods.small import SCHEMA, owners, table

FREE = fs.Budget(epsilon=math.inf, trust="central")
BUDGET = fs.Budget(epsilon=2.0, delta=1e-4, curious=1)
# Nobody is drawn: losses of drawn records take the accountant seconds.
QUICK = {"rounds": 2, "rate": 1.0}


def made(**settings):
    return fs.FederatedClassifier(SCHEMA, **{**QUICK, **settings})


@cache
def fitted():
    return made().fit(owners(30, 20), BUDGET, seed=1)


def shares_of(frame):
    return (frame["outcome"] == "ill").mean()


def test_without_noise_or_clipping_a_round_is_a_plain_gradient_step():
    tables = owners(30, 0, 20)
    rate, clip, decay = 2.0, 1e3, 0.25
    model = made(
        scaled_by="schema", rounds=1, clip=clip, learning_rate=rate, weight_decay=decay, average=0.0
    ).fit(tables, FREE)
    data = conformed(tables)
    x, labels = Features(SCHEMA, cuts_by_bounds(SCHEMA)).vectors(data), data.columns["outcome"]
    # It starts from the classes' shares alone, whatever the row.
    shares = np.bincount(labels) / len(labels)
    errors = shares - np.eye(2)[labels]
    gradient = errors.T @ np.column_stack([x, np.ones(len(x))]) / len(x)
    start = np.zeros_like(gradient)
    start[:, -1] = np.log(shares)
    # A first step of five that warm up; the penalty spares biases, and weights are 0 as yet.
    wanted = start - rate / 5 / clip * gradient
    np.testing.assert_allclose(model.learned.weights.reshape(2, -1), wanted, rtol=1e-4, atol=1e-7)


def conformed(tables):
    return conform(pd.concat([*tables.values()], ignore_index=True), SCHEMA)


def test_without_noise_rounds_end_where_scikit_learn_does():
    tables, decay = owners(60, 0, 40), 0.05
    data = conformed(tables)
    x, y = Features(SCHEMA, cuts_by_bounds(SCHEMA)).vectors(data), data.columns["outcome"]
    settings = {"rounds": 200, "clip": 10.0, "learning_rate": 8.0, "weight_decay": decay}
    model = made(**settings, scaled_by="schema").fit(tables, FREE)
    # Of two classes theirs is the difference of two logits: see fedsynth.tuning.federating.
    theirs = LogisticRegression(C=2 / (decay * len(y)), tol=1e-8).fit(x, y)
    frame = pd.concat([*tables.values()])
    np.testing.assert_allclose(model.predict_proba(frame), theirs.predict_proba(x), atol=2e-3)


@pytest.mark.parametrize("hidden", [[], [8]])
def test_it_learns_what_there_is_to_learn(hidden):
    settings = {"rounds": 30, "rate": 1.0, "learning_rate": 2.0}
    model = fs.FederatedClassifier(SCHEMA, hidden=hidden, **settings)
    model.fit(owners(200, 0, 100), FREE, progress=False)
    other = table(300, seed=9)
    assert model.score(other) > 0.95 > 0.8 > 1 - shares_of(other)
    assert model.score(other) == (model.predict(other) == other["outcome"]).mean()


def test_clients_teach_it_by_how_far_they_move():
    budget = fs.Budget(epsilon=math.inf, unit="client", trust="central", units=20)
    settings = {"rounds": 20, "rate": 1.0, "clip": 5.0, "learning_rate": 0.5}
    model = fs.FederatedClassifier(SCHEMA, **settings).fit(owners(*[20] * 20), budget)
    assert model.score(table(300, seed=99)) > 0.95
    assert model.learned.records is None


def test_predictions_outlive_saving_and_a_release(tmp_path):
    model, rows = fitted(), table(9)
    told = model.predict_proba(rows)
    np.testing.assert_allclose(told.sum(axis=1), 1)
    assert model.predict(rows).tolist() == [model.classes_[k] for k in told.argmax(axis=1)]
    model.save(tmp_path / "model")
    certificate = model.release(tmp_path / "release")
    assert certificate.epsilon == model.ledger.spent().epsilon <= 2.0
    for folder in ("model", "release"):
        again = fs.FederatedClassifier.load(tmp_path / folder)
        np.testing.assert_array_equal(again.predict_proba(rows), told)
        assert again.settings == model.settings
    assert again.certificate.content == certificate.content
    # Whoever has no labels gets the same answers, in any order of columns.
    bare = rows.drop(columns="outcome")
    np.testing.assert_array_equal(model.predict_proba(bare[bare.columns[::-1]]), told)


def test_a_release_verifies_and_says_what_was_trained(tmp_path):
    certificate = fitted().release(tmp_path / "release")
    checks = fs.verify(tmp_path / "release")
    assert checks.passed, checks
    assert [(one["label"], one["count"]) for one in certificate.content["releases"]] == [
        ("histogram", 1),
        ("classifier-gradient", 2),
    ]
    job = json.loads((tmp_path / "release" / "ledger.jsonl").read_text().splitlines()[0])
    assert "federated-classifier" in json.dumps(job)
    with pytest.raises(ReleaseError, match="never overwritten"):
        fitted().release(tmp_path / "release")
    # Changed weights are no longer what was certified.
    path = tmp_path / "release" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    assert not fs.verify(tmp_path / "release").passed
    with pytest.raises(ReleaseError, match="changed"):
        fs.FederatedClassifier.load(tmp_path / "release")


def test_a_release_without_rows_is_none_to_draw_or_search_on(tmp_path):
    fitted().release(tmp_path / "release")
    with pytest.raises(ReleaseError, match="classifier, which makes no rows"):
        fs.load(tmp_path / "release")
    with pytest.raises(ReleaseError, match="without rows"):
        read_release(tmp_path / "release")
    with pytest.raises(ReleaseError, match="not of mst"):
        fs.MST.load(tmp_path / "release")


@pytest.mark.parametrize(
    ("trust", "scaled_by"),
    [("central", "schema"), ("distributed", "histogram"), ("local", "histogram")],
)
def test_whatever_leaves_a_client_is_noised_and_nothing_else_is_learned_from(trust, scaled_by):
    demand_closed_door(fs.Budget(epsilon=2.0, delta=1e-4, trust=trust, curious=1), scaled_by)


def test_whatever_leaves_a_whole_client_is_noised():
    demand_closed_door(fs.Budget(epsilon=2.0, delta=1e-4, unit="client", units=3, curious=1))


def demand_closed_door(budget, scaled_by="schema"):
    """With another fit's releases in place of its own, all that clients are asked and all that is
    learned is that other fit's."""
    first = {"north": table(30, 0), "south": table(20, 1), "west": table(10, 2)}
    other = {"north": other_table(7, 3), "south": first["south"][:0], "west": other_table(41, 4)}
    model = made(noise_multiplier=20.0, scaled_by=scaled_by, hidden=[3])
    known = {"plan": model.plan(budget, 3), "insecure_noise_seed": 0}
    with listening() as heard:
        model.fit(first, budget, **known)
    arrays, plain = model.model_state()
    with listening(instead=heard) as again:
        model.fit(other, budget, again=True, **known)
    assert len(again.said) == len(heard.said) > len(heard.released) == 3
    assert digest([arrays, plain]) == digest([*model.model_state()])


def test_by_the_schema_nothing_is_counted_but_classes():
    model = made(scaled_by="schema")
    plan = model.plan(BUDGET, 2)
    assert plan.labels == ("labels", "classifier-gradient")
    # A record counts once, with whatever columns.
    assert plan.terms("labels").clip == pytest.approx(1, abs=1e-4)
    assert plan.epsilon() <= 2.0
    model.fit(owners(30, 20), BUDGET, plan=plan)
    assert dict(model.learned.model.features.cuts) == dict(cuts_by_bounds(SCHEMA))


def test_counts_of_classes_are_those_of_the_pooled_rows():
    tables = owners(30, 0, 20)
    learned = made(scaled_by="schema", rounds=1).fit(tables, FREE).learned
    share = shares_of(pd.concat([*tables.values()]))
    assert learned.records == pytest.approx(50, rel=1e-4)
    np.testing.assert_allclose(learned.frequencies, [1 - share, share], rtol=1e-4)


def test_a_fit_that_was_cut_off_goes_on_with_what_was_released(tmp_path, monkeypatch):
    genuine, options = Session.checkpoint, {"folder": tmp_path / "job", "checkpoint_every": 1}

    def crashing(self, arrays, meta):
        genuine(self, arrays, meta)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "checkpoint", crashing)
        with pytest.raises(KeyboardInterrupt):
            made(hidden=[3]).fit(owners(30, 20), BUDGET, **options)
    model = made(hidden=[3]).fit(owners(30, 20), BUDGET, resume=True, **options)
    labels = [event.label for event in model.ledger.events]
    assert labels == ["histogram", "classifier-gradient", "classifier-gradient"]
    with pytest.raises(ConfigError, match="other settings"):
        made(hidden=[4]).fit(owners(30, 20), BUDGET, resume=True, **options)
    model.release(tmp_path / "job")
    assert fs.verify(tmp_path / "job").passed


def test_a_second_fit_is_not_paid_for_unasked():
    model = made().fit(owners(30, 20), BUDGET)
    with pytest.raises(PrivacyError, match=r"this classifier was fitted already.*predicts"):
        model.fit(owners(30, 20), BUDGET)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows") / "release"
    fs.MST(SCHEMA, bins=4, iterations=5).fit(owners(60, 40), BUDGET).release(folder, 200, seed=1)
    return folder


def test_a_releases_rows_scale_numbers_and_cost_nothing(release, tmp_path):
    rows, _, _ = read_release(release)
    model = made(scaled_by=release)
    assert model.settings.scaled_by == cuts_by_rows(rows, SCHEMA)
    model.fit(owners(60, 40), BUDGET)
    assert next(event.label for event in model.ledger.events) == "labels"
    model.release(tmp_path / "release")
    assert fs.verify(tmp_path / "release").passed
    again = fs.FederatedClassifier.load(tmp_path / "release")
    np.testing.assert_array_equal(again.predict_proba(table(9)), model.predict_proba(table(9)))
    assert clone(model).settings == model.settings


def test_rows_that_nothing_protects_scale_nothing(tmp_path):
    synth = fs.MST(SCHEMA, bins=4, iterations=5).fit(owners(60, 40), FREE)
    synth.release(tmp_path / "void", 50)
    with pytest.raises(PrivacyError, match="are not protected"):
        made(scaled_by=tmp_path / "void")
    synth = fs.MST(SCHEMA, bins=4, iterations=5).fit(owners(60, 40), BUDGET)
    synth.release(tmp_path / "edited", table(50), edited=True)
    with pytest.raises(PrivacyError, match="edited by hand"):
        made(scaled_by=tmp_path / "edited")
    with pytest.raises(ReleaseError, match="no such folder"):
        made(scaled_by=tmp_path / "nowhere")
    with pytest.raises(ReleaseError, match="hystogram"):
        made(scaled_by="hystogram")


def test_a_release_of_another_schema_scales_nothing(release):
    other = SCHEMA.edit("age", upper=100)
    with pytest.raises(ConfigError, match="another schema"):
        fs.FederatedClassifier(other, scaled_by=release)


@pytest.mark.parametrize(
    ("columns", "target", "said"),
    [
        (["age", "outcome"], "age", "a number or a date.*FedInfer"),
        (["age", "outcome"], None, "no target"),
        (["outcome"], "outcome", "no column besides"),
    ],
)
def test_a_schema_without_anything_to_predict_is_refused(columns, target, said):
    schema = fs.Schema(columns=[SCHEMA.column(name) for name in columns], target=target)
    with pytest.raises(ConfigError, match=said):
        fs.FederatedClassifier(schema)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hiden": [3]}, "'hidden'"),
        ({"hidden": [0]}, "layer widths"),
        ({"scaled_by": {"age": [3, 2]}}, "must rise"),
        ({"scaled_by": {"age": "x"}}, "cut points"),
        ({"scaled_by": {"colour": [1.0]}}, "'colour'"),
        ({"rate": 0.0}, "share"),
    ],
)
def test_settings_that_are_none_are_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        fs.FederatedClassifier(SCHEMA, **settings)


def test_records_are_drawn_by_coins_alone():
    with pytest.raises(ConfigError, match="Poisson"):
        made(sampling="fixed").plan(BUDGET, 3)


def test_nothing_is_told_before_a_fit_and_data_must_fit():
    with pytest.raises(ConfigError, match="nothing to predict with yet"):
        made().predict(table(3))
    with pytest.raises(ConfigError, match="not fitted here"):
        _ = made().ledger
    with pytest.raises(DataError, match="lacks columns"):
        fitted().predict(table(3).drop(columns="age"))
    with pytest.raises(DataError, match="lacks columns"):
        fitted().score(table(3).drop(columns="outcome"))


def test_images_are_seen_as_pixels():
    schema = fs.ImageSchema(
        shape=[4, 4], maximum=16, target=fs.Categorical(name="side", values=["left", "right"])
    )
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    pixels = rng.integers(0, 8, (200, 4, 4))
    pixels[np.arange(200), :, labels * 3] += 8
    images = fs.Images(pixels.astype(np.uint8), labels)
    model = fs.FederatedClassifier(schema, rounds=20, rate=1.0, learning_rate=2.0)
    model.fit([images.take(np.arange(120)), images.take(np.arange(120, 200))], FREE)
    assert model.score(images) == 1.0
    assert set(model.predict(fs.Images(images.pixels))) == {"left", "right"}


def test_a_forecast_knows_what_will_be_sent():
    forecast = fs.plan(made(hidden=[7], scaled_by="schema"), BUDGET, clients=3, records=60)
    width = 2 + 4 + 2  # Numbers; three colours and a gap; a boolean.
    assert [one.numbers for one in forecast.questions] == [2, 7 * (width + 1) + 2 * 8]
    assert forecast.epsilon <= 2.0


def test_it_shows_what_it_is_and_can_do():
    told = " ".join(str(fitted()).split())
    assert "FederatedClassifier for the schema, fitted" in told
    assert "predict (the class of rows)" in told and "with a certificate" in told
    assert "sample" not in told


@pytest.mark.parametrize(
    "budget", [FREE, fs.Budget(epsilon=math.inf, unit="client", trust="central")]
)
def test_layers_of_pytorch_learn_what_there_is_to_learn(budget, tmp_path):
    layers = [{"LazyLinear": 6}, {"LayerNorm": 6}, "Tanh", {"LazyLinear": 2}]
    more = {"learning_rate": 2.0} if budget is FREE else {"local_epochs": 3, "clip": 100.0}
    tables = owners(60, 60)
    model = made(layers=layers, rounds=15, **more).fit(tables, budget, seed=1)
    frame = pd.concat([*tables.values()])
    assert model.score(frame) > 0.05 + max(shares_of(frame), 1 - shares_of(frame))
    model.save(tmp_path)
    loaded = fs.FederatedClassifier.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    again = made(layers=model.settings.layers, rounds=15, **more)
    assert again.settings.layers == model.settings.layers
    personal = model.personalise(next(iter(tables.values())))
    assert personal.predict_proba(frame).shape == (len(frame), 2)


def test_layers_are_read_from_a_module_and_refused_in_words():
    schema = fs.builtin_schema("digits")
    module = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    model = fs.FederatedClassifier(schema, layers=module)
    assert [name for name, _ in model.settings.layers] == [
        "LazyConv2d", "ReLU", "Flatten", "LazyLinear",
    ]  # fmt: skip
    plan = model.plan(fs.Budget(epsilon=1.0), clients=3)
    assert plan.total > 1
    with pytest.raises(ConfigError, match=r"layer 1, Linear does not take a record of shape \(1,"):
        fs.FederatedClassifier(schema, layers=[{"Linear": [64, 10]}])
    with pytest.raises(ConfigError, match="BatchNorm2d is no layer"):
        fs.FederatedClassifier(schema, layers=[nn.BatchNorm2d(1), nn.Flatten(), nn.LazyLinear(10)])
    with pytest.raises(ConfigError, match="in the place of hidden and activation"):
        fs.FederatedClassifier(schema, layers=module, hidden=[3]).plan(fs.Budget(epsilon=1.0), 3)
