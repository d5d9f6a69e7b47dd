"""Fusion as published: messages, regeneration, odd federations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.images import Images
from fedsynth.data.tables import conform
from fedsynth.errors import ConfigError, FederationError, PrivacyError, ReleaseError
from fedsynth.jobs.loading import load
from fedsynth.methods.copula import families
from fedsynth.methods.copula.families import FAMILIES, POINT, Effort, fit_feature
from fedsynth.methods.sampling import classifier
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.papers.fusion import published
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.published import Fusion
from fedsynth.papers.fusion.regeneration import shares_of
from fedsynth.papers.unprotected import unprotected_terms
from fedsynth.privacy.budget import Budget
from fedsynth.release import write_release
from fedsynth.schema import Categorical, Continuous, ImageSchema, Integer, Schema
from tests.methods.small import SCHEMA, channel_to, owners, table

NONE = Budget(epsilon=math.inf)
SETTINGS = {
    "categories": "frequencies",
    "screened": 30,
    "points": 60,
    "finalists": 2,
    "evaluations": 6,
    "seed": 7,
}


def fitted(tables, schema=SCHEMA, **settings):
    return Fusion(schema, **{"points": 1000, "effort": "quick", **settings}).fit(
        tables, NONE, outside="allow"
    )


def messages(tables, schema=SCHEMA, **settings):
    channel = channel_to(tables, NONE, schema)
    asked = {**SETTINGS, **settings}
    layout = Layout(schema, asked["categories"])
    collected = channel.collect("fusion", unprotected_terms(), layout.dim, settings=asked)
    return layout, dict(zip(collected.clients, collected.values, strict=True))


TRIED = ("norm", "uniform", "logistic", "beta")


@pytest.fixture(autouse=True, scope="module")
def short_training():
    """What is tested here is neither how well classifiers learn nor how near families come."""
    holds = families._holds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "_LEAST_STEPS", 50)
        patch.setattr(classifier, "_EPOCHS", 4)
        patch.setattr(published, "effort_of", lambda settings: Effort(20, 40, 1, 4))
        patch.setattr(families, "_holds", lambda k, own: FAMILIES[k] in TRIED and holds(k, own))
        yield


@pytest.fixture(scope="module")
def synth():
    return fitted(owners(300, 200, 80))


def test_a_message_is_what_the_client_s_own_rows_say():
    tables = owners(120)
    layout, sent = messages(tables)
    model = layout.decode(sent["site-0"], "site-0")
    columns = conform(tables["site-0"], SCHEMA).columns
    colour = columns["colour"]
    age, shades, dose, _ = model.features
    assert shades.missing == pytest.approx((colour < 0).mean())
    assert shades.shares == pytest.approx(np.bincount(colour[colour >= 0]) / (colour >= 0).sum())
    effort = Effort(30, 60, 2, 6)
    for feature, name in ((age, "age"), (dose, "dose")):
        expected = fit_feature(columns[name], effort).fit
        assert (feature.fit.family, feature.fit.parameters) == (
            expected.family,
            expected.parameters,
        )
    x = Design(SCHEMA).matrix(columns)
    own = Classifier.train(x, columns["outcome"], 2, seed=7)
    assert (model.classifier.to_vector() == own.to_vector()).all()
    assert model.failures.shape == (25,)


def test_the_message_does_not_depend_on_who_is_simulated_beside_the_client():
    tables = owners(60, 50, 40)
    _, together = messages(tables)
    _, alone = messages({"site-1": tables["site-1"]})
    assert (together["site-1"] == alone["site-1"]).all()
    assert (together["site-0"] != alone["site-1"]).any()


def test_a_message_survives_the_wire_exactly():
    layout, sent = messages(owners(50, 40))
    for name, message in sent.items():
        again = layout.encode(layout.decode(message, name))
        assert (again == message).all()
        assert message.shape == (layout.dim,)


@pytest.fixture(scope="module")
def one_message():
    return messages(owners(50))


@pytest.mark.parametrize("fault", ["length", "first", "family", "scale", "missing", "weights"])
def test_a_message_that_is_none_is_refused(fault, one_message):
    layout, sent = one_message
    message = sent["site-0"].copy()
    assert message[1] > 0, "age comes first"
    broken = {"first": (0, 2.0), "family": (1, 40.0), "missing": (6, 1.5), "weights": (-1, np.nan)}
    if fault == "length":
        message = message[:-1]
    elif fault == "scale":
        message[2:6] = -1.0
    else:
        place, value = broken[fault]
        message[place] = value
    with pytest.raises(FederationError, match="site-0"):
        layout.decode(message, "site-0")


@pytest.mark.parametrize("epsilon", [1.0, 1e6])
def test_any_promise_of_privacy_is_refused_before_anybody_is_asked(epsilon):
    with pytest.raises(PrivacyError, match="private-fusion"):
        Fusion(SCHEMA).fit(owners(20), Budget(epsilon=epsilon))
    with pytest.raises(PrivacyError):
        Fusion(SCHEMA).settings.resolved(Budget(epsilon=epsilon), SCHEMA)


def test_one_message_and_no_privacy(synth):
    (event,) = synth.ledger.events
    assert event.label == "fusion"
    assert synth.ledger.spent().epsilon == math.inf
    layout = Layout(SCHEMA)
    assert (synth.traffic.requests, synth.traffic.answers) == (3, 3)
    assert synth.traffic.up == 3 * 8 * layout.dim


def test_rows_look_like_the_clients(synth):
    rows = synth.sample(3000, seed=0)
    real = pd.concat(owners(300, 200, 80).values())
    assert list(rows) == list(real)
    assert rows["age"].mean() == pytest.approx(real["age"].mean(), abs=3)
    assert rows["dose"].between(0, 10).all()
    assert rows["colour"].isna().mean() == pytest.approx(real["colour"].isna().mean(), abs=0.05)
    # The label is the classifier's, and the clients' classifiers know what makes it.
    ill = rows["outcome"] == "ill"
    assert rows.loc[ill, "dose"].mean() > rows.loc[~ill, "dose"].mean() + 1


def test_the_global_classifier_knows_the_label(synth):
    test = table(400, seed=99)
    chances = synth.probabilities(test)
    assert chances.shape == (400, 2)
    assert ((chances[:, 1] > 0.5) == (test["outcome"] == "ill")).mean() > 0.9
    assert (synth.probabilities(test.drop(columns="outcome")) == chances).all()


def test_a_seed_fixes_everything(synth):
    again = fitted(owners(300, 200, 80))
    assert (again.learned.messages == synth.learned.messages).all()
    assert again.sample(50, seed=4).equals(synth.sample(50, seed=4))
    assert not synth.sample(50, seed=4).equals(synth.sample(50, seed=5))


def test_conditions_hold(synth):
    ill = synth.sample(200, where={"outcome": "ill"}, seed=0)
    assert set(ill["outcome"]) == {"ill"}
    mixed = synth.sample(400, proportions={"ill": 0.5, "well": 0.5}, seed=0)
    assert 140 < (mixed["outcome"] == "ill").sum() < 260
    old = synth.sample(50, where={"age": {"from": 60, "to": 90}, "outcome": "well"}, seed=0)
    assert (old["age"] >= 60).all() and set(old["outcome"]) == {"well"}


def test_drawn_labels_follow_the_classifiers_probabilities():
    """Labels that nothing tells: the likeliest class is always the same, drawn ones are not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(600), "y": np.where(rng.random(600) < 0.3, "b", "a")})
    schema = Schema(
        columns=[
            Continuous(name="x", lower=0, upper=1, decimals=3),
            Categorical(name="y", values=["a", "b"]),
        ],
        target="y",
    )
    likeliest = fitted([frame], schema).sample(1500, seed=0)
    drawn = fitted([frame], schema, labelling="drawn").sample(1500, seed=0)
    assert (likeliest["y"] == "b").mean() < 0.1
    assert (drawn["y"] == "b").mean() == pytest.approx(0.3, abs=0.07)


def test_categories_as_numbers_stay_categories():
    synth = fitted(owners(150, 90), categories="numbers")
    layout = synth.learned.source.layout
    assert all(feature.size == 0 for feature in layout.features)
    rows = synth.sample(500, seed=0)
    assert set(rows["colour"].dropna()) <= {"red", "green", "blue"}
    assert rows["colour"].isna().any()
    assert rows["smoker"].nunique() == 2


def test_failures_are_counted_by_family(synth, monkeypatch):
    from scipy import stats

    def failing(self, *_, **__):
        raise ValueError

    # The beta of scipy is the only one of its class.
    monkeypatch.setattr(type(stats.beta), "fit", failing)
    seen = []
    options = {"progress": lambda label, done, total, epsilon: seen.append(label)}
    broken = Fusion(SCHEMA, effort="quick", points=500).fit(owners(60, 50), NONE, **options)
    assert broken.failures["beta"] == 4, "two numbers at each of two clients"
    assert any("beta 4" in label for label in seen)
    assert all(
        f.fit.name != "beta" for m in broken.learned.source.models for f in m.features if f.fit
    )


def test_every_fitted_number_is_seen_to_be_done():
    seen = []

    def progress(label, done, total, epsilon):
        if label == "features":
            seen.append((done, total))

    Fusion(SCHEMA, effort="quick", points=500).fit(owners(30, 20), NONE, progress=progress)
    # Two numbers at each of two clients.
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (4, 4)]


def test_save_and_load(synth, tmp_path, monkeypatch):
    write_release(tmp_path / "release", synth, synth.sample(20, seed=1))
    loaded = load(tmp_path / "release")
    assert loaded.sample(60, seed=2).equals(synth.sample(60, seed=2))
    assert "No privacy" in " ".join(synth.ledger.job.budget.cautions())
    arrays, meta = synth.model_state()
    again = Fusion.from_state(SCHEMA, arrays, meta)
    assert again.sample(60, seed=2).equals(synth.sample(60, seed=2))
    test = table(30, seed=3)
    assert (again.probabilities(test) == synth.probabilities(test)).all()
    assert again.failures == synth.failures
    for name in arrays:
        with pytest.raises(ReleaseError):
            Fusion.from_state(SCHEMA, {k: v for k, v in arrays.items() if k != name}, meta)
        with pytest.raises(ReleaseError):
            Fusion.from_state(SCHEMA, {**arrays, name: arrays[name].ravel()[:-1]}, meta)
    with pytest.raises(ReleaseError):
        Fusion.from_state(SCHEMA, arrays, {})


def test_a_job_resumes_with_the_messages_that_it_has(tmp_path):
    folder = tmp_path / "job"

    def fail(label, done, total, epsilon):
        if label == "global classifier":
            raise KeyboardInterrupt

    tables, synth = owners(60, 40), Fusion(SCHEMA, effort="quick", points=500)
    with pytest.raises(KeyboardInterrupt):
        synth.fit(tables, NONE, folder=folder, progress=fail)
    resumed = Fusion(SCHEMA, effort="quick", points=500)
    resumed.fit(tables, NONE, folder=folder, resume=True)
    assert len(resumed.ledger.events) == 1
    expected = Fusion(SCHEMA, effort="quick", points=500).fit(tables, NONE)
    assert resumed.sample(20, seed=0).equals(expected.sample(20, seed=0))


def test_points_go_in_equal_shares():
    assert shares_of(10, 3).tolist() == [4, 3, 3]
    assert shares_of(9, 3).tolist() == [3, 3, 3]


def odd(**changes):
    frame = table(40)
    return {"site": frame.assign(**changes)}


@pytest.mark.parametrize(
    "tables",
    [
        owners(40, 0),
        owners(2),
        owners(5, 5),
        owners(1, 1),
        odd(outcome="well"),
        {"a": table(30).assign(outcome="ill"), "b": table(30).assign(outcome="well")},
        odd(colour=None),
        odd(age=30),
        odd(dose=[math.inf, -math.inf, math.nan, 1e300] * 10),
        odd(age=[10**12, -(10**12)] * 20),
    ],
)
def test_odd_federations(tables, monkeypatch):
    monkeypatch.setattr(classifier, "_LEAST_STEPS", 10)
    synth = fitted(tables, points=100)
    rows = synth.sample(40, seed=0)
    assert len(rows) == 40
    conform(rows, SCHEMA)
    assert np.isfinite(synth.probabilities(table(10))).all()


def test_a_client_without_rows_says_so_and_has_no_points():
    layout, sent = messages(owners(40, 0))
    assert not sent["site-1"].any()
    assert layout.decode(sent["site-1"], "site-1") is None
    assert len(fitted(owners(40, 0)).learned.source.models) == 1


def test_a_class_absent_at_a_client_comes_from_the_others():
    tables = {"a": table(80).assign(outcome="well"), "b": table(200, seed=1)}
    synth = fitted(tables)
    assert (synth.sample(100, where={"outcome": "ill"}, seed=0)["outcome"] == "ill").all()


def test_a_class_that_nobody_has_is_refused_in_words(monkeypatch):
    monkeypatch.setattr("fedsynth.papers.fusion.regeneration._LEAST_DRAWS", 100)
    monkeypatch.setattr("fedsynth.papers.fusion.regeneration._DRAWS", 20)
    synth = fitted(odd(outcome="well"), points=200)
    with pytest.raises(ConfigError, match=r"0 of 5 rows after 100 draws.* hardly ever"):
        synth.sample(5, where={"outcome": "ill"}, seed=0)


def test_a_constant_feature_is_a_point():
    synth = fitted(odd(age=33))
    (model,) = synth.learned.source.models
    assert model.features[0].fit.family == POINT
    assert set(synth.sample(30, seed=0)["age"]) == {33}


@pytest.mark.parametrize("target", [None, "age"])
def test_without_classes_there_are_rows_and_no_classifier(target):
    schema = Schema(
        columns=[
            Integer(name="age", lower=18, upper=90, missing=True),
            Categorical(name="colour", values=["red", "green", "blue"], missing=True),
        ],
        target=target,
    )
    frame = table(100)[["age", "colour"]]
    synth = fitted([frame], schema)
    rows = synth.sample(200, where={"colour": "red"}, seed=0)
    assert set(rows["colour"]) == {"red"}
    with pytest.raises(ConfigError, match="no classifier"):
        synth.probabilities(frame)
    again = Fusion.from_state(schema, *synth.model_state())
    assert again.sample(20, seed=1).equals(synth.sample(20, seed=1))


def test_one_column_alone():
    schema = Schema(columns=[Categorical(name="c", values=["a", "b"])], target="c")
    frame = pd.DataFrame({"c": ["a"] * 30 + ["b"] * 10})
    rows = fitted([frame], schema).sample(2000, seed=0)
    assert (rows["c"] == "b").mean() == pytest.approx(0.25, abs=0.04)


def test_columns_all_missing_stay_missing():
    schema = Schema(columns=[Integer(name="a", lower=0, upper=9, missing=True)])
    frame = pd.DataFrame({"a": pd.array([None] * 6, dtype="Int64")})
    assert fitted([frame], schema).sample(5, seed=0)["a"].isna().all()


def pictures(rows, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    pixels = rng.integers(0, 6, (rows, 2, 2))
    pixels[:, 0, 0] = 0
    pixels[:, 1, 1] += labels * 9
    return Images(pixels.astype(np.uint8), labels.astype(np.int64))


def test_images():
    schema = ImageSchema(
        shape=(2, 2), maximum=16, target=Categorical(name="digit", values=["0", "1"])
    )
    synth = fitted([pictures(150, 0), pictures(100, 1)], schema)
    test = pictures(200, 2)
    assert (synth.probabilities(test).argmax(1) == test.labels).mean() > 0.95
    ones = synth.sample(50, where={"digit": "1"}, seed=0)
    assert set(ones.labels) == {1} and ones.pixels.shape == (50, 2, 2)
    assert (ones.pixels[:, 0, 0] == 0).all(), "a constant pixel is a point"
    assert ones.pixels[:, 1, 1].mean() > 8
    models = synth.learned.source.models
    assert all(model.features[0].fit.family == POINT for model in models)
    again = Fusion.from_state(schema, *synth.model_state())
    assert (again.sample(9, seed=3).pixels == synth.sample(9, seed=3).pixels).all()


def test_images_without_labels():
    schema = ImageSchema(shape=(2, 2), maximum=16)
    synth = fitted([Images(pictures(60, 0).pixels)], schema)
    rows = synth.sample(7, seed=0)
    assert rows.labels is None and rows.pixels.shape == (7, 2, 2)
    with pytest.raises(ConfigError):
        synth.probabilities(rows)


def test_families_of_the_message_are_numbered_by_the_public_list():
    assert len(FAMILIES) == 25
    assert (FAMILIES[0], FAMILIES[11], FAMILIES[24]) == ("norm", "wrapcauchy", "rdist")
