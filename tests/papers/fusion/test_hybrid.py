"""Hybrid fusion: clients to edges to cloud, and where the time goes."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.data.images import Images
from fedsynth.data.tables import conform
from fedsynth.errors import ConfigError, PrivacyError, ReleaseError
from fedsynth.jobs.loading import load
from fedsynth.methods.copula import families
from fedsynth.methods.copula.families import FAMILIES, Effort
from fedsynth.methods.sampling import classifier
from fedsynth.methods.sampling.classifier import Classifier, standardisation
from fedsynth.papers.fusion import published
from fedsynth.papers.fusion.averaging import Timing, average, deal
from fedsynth.papers.fusion.hybrid import HybridFusion
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.published import Fusion
from fedsynth.privacy.budget import Budget
from fedsynth.release import write_release
from fedsynth.schema import Categorical, ImageSchema, Integer, Schema
from tests.methods.small import SCHEMA, owners, table

NONE = Budget(epsilon=math.inf)
QUICK = {"points": 600, "effort": "quick", "epochs": 3}


def fitted(tables, budget=NONE, schema=SCHEMA, **changes):
    return HybridFusion(schema, **{**QUICK, **changes}).fit(tables, budget)


TRIED = ("norm", "uniform", "logistic", "beta")


@pytest.fixture(autouse=True, scope="module")
def short_training():
    """What is tested here is neither how well classifiers learn nor how near families come."""
    holds = families._holds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "_LEAST_STEPS", 25)
        patch.setattr(classifier, "_EPOCHS", 2)
        patch.setattr(published, "effort_of", lambda settings: Effort(20, 40, 1, 4))
        patch.setattr(families, "_holds", lambda k, own: FAMILIES[k] in TRIED and holds(k, own))
        yield


@pytest.fixture(scope="module")
def synth():
    return fitted(owners(90, 60, 50), edges=2)


@given(st.integers(1, 9), st.integers(1, 9))
def test_clients_are_dealt_in_order_and_evenly(edges, more):
    names = [f"c{k}" for k in range(edges + more - 1)]
    dealt = deal(names, edges)
    assert list(dealt) == names
    assert (np.diff(list(dealt.values())) >= 0).all()
    sizes = np.bincount(list(dealt.values()), minlength=edges)
    assert len(sizes) == edges and sizes.max() - sizes.min() <= 1 and sizes.min() >= 1


def blobs(rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return rng.normal(size=(rows, 3)) * [1, 100, 1e-3] + y[:, None] * [2, 0, 0] + 1e4, y


def test_averaging_by_hand():
    """Two edges of unequal size, two epochs; the inputs standardised as if they lay together."""
    points = [blobs(60, 0), blobs(20, 1)]
    model, exchange = average(points, 2, 2, 5, lambda done: None)
    mean, scale = standardisation(np.concatenate([x for x, _ in points]))
    assert model.mean == pytest.approx(mean) and model.scale == pytest.approx(scale)
    expected = Classifier.initial(model.mean, model.scale, 2, seed=5)
    for epoch in range(2):
        back = []
        for edge, (x, y) in enumerate(points):
            seed = int(np.random.SeedSequence([5, epoch, edge]).generate_state(1)[0])
            own = Classifier.train(x, y, 2, seed=seed, epochs=1, start=expected)
            back.append(own.to_vector())
        expected = Classifier.from_vector(0.75 * back[0] + 0.25 * back[1], 3, 2)
    assert model.to_vector() == pytest.approx(expected.to_vector(), abs=1e-6)
    # Up: moments, and a model an epoch; down: a model an epoch, and the last one.
    size = Classifier.size(3, 2)
    assert exchange.rounds == 3
    assert exchange.calls == 2 * (1 + 2 * 2 + 1)
    assert exchange.bytes == 8 * 2 * ((1 + 3 * 3) + (2 * 2 + 1) * size)


def test_an_edge_without_points_takes_no_part():
    x, y = blobs(40, 0)
    none = (np.zeros((0, 3)), np.zeros(0, np.int64))
    with_it, exchange = average([(x, y), none], 2, 2, 0, lambda done: None)
    without, _ = average([(x, y)], 2, 2, 0, lambda done: None)
    assert (with_it.to_vector() == without.to_vector()).all()
    assert exchange.calls == 1 + 2 * 2 + 1


def test_one_edge_is_fusion_with_an_average_of_one():
    tables = owners(90, 60)
    hybrid = fitted(tables, edges=1)
    fusion = Fusion(SCHEMA, points=600, effort="quick").fit(tables, NONE)
    assert (hybrid.learned.learned.messages == fusion.learned.messages).all()
    (points,) = hybrid.learned.points({"site-0": 0, "site-1": 0}, 600, 0)
    model, _ = average([points], 2, 3, 0, lambda done: None)
    assert (hybrid.learned.classifier.to_vector() == model.to_vector()).all()
    assert hybrid.sample(30, seed=1).equals(fusion.sample(30, seed=1))


@pytest.mark.parametrize("budget", [NONE, Budget(epsilon=5.0, delta=1e-5)])
def test_every_edge_may_be_one_client(budget):
    synth = fitted(owners(50, 40, 30), budget, edges=3)
    points = synth.learned.points(deal(["site-0", "site-1", "site-2"], 3), 600, 0)
    assert [len(y) for _, y in points] == [200] * 3
    assert len(synth.ledger.events) == 1


def test_an_edge_learns_from_its_own_clients_points_alone():
    tables = {
        "a": table(60).assign(age=20),
        "b": table(60).assign(age=40),
        "c": table(60).assign(age=60),
    }
    synth = fitted(tables, edges=2)
    first, second = synth.learned.points(deal(list(tables), 2), 300, 0)
    assert set(first[0][:, 0]) == {20, 40} and set(second[0][:, 0]) == {60}
    assert (len(first[1]), len(second[1])) == (200, 100)


def test_the_clouds_model_knows_the_label():
    synth = fitted(owners(200, 150, 100), edges=2, epochs=20, points=1500)
    test = table(300, seed=9)
    right = synth.probabilities(test).argmax(1) == (test["outcome"] == "ill")
    assert right.mean() > 0.9


def test_timing_adds_up_and_counts_real_messages(synth):
    timing = synth.timing
    layout = Layout(SCHEMA)
    assert timing.fusion_rounds == 1 and timing.federated_rounds == 1 + 3
    assert timing.client_edge_calls == 2 * 3
    assert timing.client_edge_bytes == synth.traffic.down + synth.traffic.up
    size = Classifier.size(layout.width, 2)
    assert timing.edge_cloud_calls == 2 * (1 + 2 * 3 + 1)
    assert timing.edge_cloud_bytes == 8 * 2 * (1 + 3 * layout.width + (2 * 3 + 1) * size)
    assert timing.fusion_seconds > 0 and timing.federated_seconds > 0
    compute = timing.fusion_seconds + timing.federated_seconds
    assert timing.seconds == pytest.approx(0.05 * 4 + 0.005 * 1 + compute)
    with pytest.raises(FrozenInstanceError):
        timing.fusion_rounds = 2


def test_the_time_model_by_hand():
    timing = Timing(2.0, 0.5, 10, 1, 3.0, 4.0, 0, 0, 0, 0)
    assert timing.seconds == 2.0 * 10 + 0.5 * 1 + 3.0 + 4.0


def test_latencies_are_the_users():
    synth = HybridFusion(SCHEMA, edge_cloud_latency=7, client_edge_latency=0)
    assert synth.settings.edge_cloud_latency == 7
    with pytest.raises(ConfigError, match="latency"):
        HybridFusion(SCHEMA, edge_cloud_latency=-1)
    with pytest.raises(ConfigError, match="not fitted"):
        _ = synth.timing


def test_more_edges_than_clients_are_refused_before_anybody_is_asked():
    with pytest.raises(ConfigError, match="3 edges and 2 clients"):
        fitted(owners(10, 10), edges=3)


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_privacy_is_one_event_that_costs_the_budget(trust):
    budget = Budget(epsilon=2.0, delta=1e-5, trust=trust)
    synth = fitted(owners(80, 60, 0), budget, edges=2)
    assert len(synth.ledger.events) == 1
    assert 0.98 * 2.0 < synth.ledger.spent().epsilon <= 2.0
    conform(synth.sample(50, seed=0), SCHEMA)
    assert synth.probabilities(table(5)).shape == (5, 2)


def test_private_edges_keep_to_their_own_clients():
    loose = Budget(epsilon=1e4, delta=1e-5, trust="central")
    tables = {"a": table(400).assign(colour="red"), "b": table(400).assign(colour="blue")}
    synth = fitted(tables, loose, edges=2)
    first, second = synth.learned.points(deal(list(tables), 2), 400, 0)
    red, blue = 1, 3  # after age: red, green, blue
    assert first[0][:, red].mean() > 0.95 and second[0][:, blue].mean() > 0.95
    rows = synth.sample(1000, seed=0)
    assert (rows["colour"] == "red").mean() == pytest.approx(0.5, abs=0.07)
    assert (synth.sample(40, where={"outcome": "ill"}, seed=0)["outcome"] == "ill").all()


def test_a_private_edge_is_the_private_fusion_of_its_clients():
    """Almost without noise an edge's statistics are those of its clients alone."""
    from fedsynth.methods.copula.private import PrivateFusion

    loose = Budget(epsilon=1e6, delta=1e-5, trust="central")
    tables = owners(200, 300)
    hybrid = fitted(tables, loose, edges=2)
    alone = PrivateFusion(SCHEMA).fit({"site-1": tables["site-1"]}, loose)
    ours, theirs = hybrid.learned.models[1], alone.learned.model
    assert ours.profiles.records == pytest.approx(theirs.profiles.records, abs=0.5)
    assert ours.profiles.shares == pytest.approx(theirs.profiles.shares, abs=0.01)


@pytest.mark.parametrize("budget", [NONE, Budget(epsilon=5.0, delta=1e-5, curious=1)])
def test_save_and_load(budget, tmp_path, monkeypatch):
    synth = fitted(owners(60, 50), budget, edges=2)
    write_release(tmp_path / "release", synth, synth.sample(10, seed=1))
    loaded = load(tmp_path / "release")
    assert loaded.sample(30, seed=2).equals(synth.sample(30, seed=2))
    arrays, meta = synth.model_state()
    again = HybridFusion.from_state(SCHEMA, arrays, meta)
    assert again.sample(30, seed=2).equals(synth.sample(30, seed=2))
    test = table(20, seed=3)
    assert (again.probabilities(test) == synth.probabilities(test)).all()
    for name in arrays:
        with pytest.raises(ReleaseError):
            HybridFusion.from_state(SCHEMA, {k: v for k, v in arrays.items() if k != name}, meta)
    with pytest.raises(ReleaseError):
        HybridFusion.from_state(SCHEMA, arrays, {})


def test_images_without_privacy_alone():
    schema = ImageSchema(
        shape=(2, 2), maximum=16, target=Categorical(name="digit", values=["0", "1"])
    )
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 80)
    pixels = (rng.integers(0, 5, (80, 2, 2)) + labels[:, None, None] * 9).astype(np.uint8)
    images = [Images(pixels[:50], labels[:50]), Images(pixels[50:], labels[50:])]
    synth = fitted(images, schema=schema, epochs=8)
    assert (synth.probabilities(images[0]).argmax(1) == labels[:50]).mean() > 0.9
    assert synth.sample(6, seed=0).pixels.shape == (6, 2, 2)
    with pytest.raises((ConfigError, PrivacyError), match="tables"):
        fitted(images, Budget(epsilon=1.0), schema)


@pytest.mark.parametrize("budget", [NONE, Budget(epsilon=5.0, delta=1e-5)])
def test_without_classes_there_is_no_cloud(budget):
    schema = Schema(columns=[Integer(name="age", lower=0, upper=9)])
    frame = pd.DataFrame({"age": [1, 2, 3, 4, 5] * 8})
    synth = fitted([frame, frame, frame], budget, schema)
    assert synth.timing.federated_rounds == synth.timing.edge_cloud_calls == 0
    assert len(synth.sample(9, seed=0)) == 9
    with pytest.raises(ConfigError, match="no classifier"):
        synth.probabilities(frame)


@pytest.mark.parametrize("budget", [NONE, Budget(epsilon=1.0, delta=1e-5, curious=0)])
@pytest.mark.parametrize(
    "tables", [owners(2), owners(5, 0), owners(3, 2), {"a": table(30).assign(outcome="well")}]
)
def test_odd_federations(tables, budget):
    synth = fitted(tables, budget, edges=len(tables), points=100)
    assert len(synth.sample(10, seed=0)) == 10
    assert np.isfinite(synth.probabilities(table(4))).all()
