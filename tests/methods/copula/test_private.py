"""Private Fusion: one message within its budget, rows of the schema, odd tables, save and load."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.methods.copula.private import PrivateFusion
from fedsynth.methods.sampling import classifier
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from fedsynth.schema.checking import check
from tests.methods.small import SCHEMA, owners, table

LOOSE = Budget(epsilon=20.0, delta=1e-5, curious=1)
CENTRAL = Budget(epsilon=1.0, delta=1e-5, trust="central")


@pytest.fixture(autouse=True, scope="module")
def short_training():
    """What is tested here is not how well classifiers learn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "_LEAST_STEPS", 100)
        patch.setattr(classifier, "_EPOCHS", 8)
        yield


@pytest.fixture(scope="module")
def fitted():
    return PrivateFusion(SCHEMA).fit(owners(700, 500), LOOSE, insecure_noise_seed=1)


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
@pytest.mark.parametrize("unit", ["record", "client"])
def test_one_message_costs_the_budget_and_hardly_less(trust, unit):
    budget = Budget(epsilon=1.0, delta=1e-5, trust=trust, unit=unit)
    synth = PrivateFusion(SCHEMA).fit(owners(40, 30, 0), budget)
    assert len(synth.ledger.events) == 1
    assert synth.ledger.events[0].terms.trust == trust
    assert (synth.traffic.requests, synth.traffic.answers) == (3, 3)
    assert 0.98 < synth.ledger.spent().epsilon <= 1.0
    assert len(synth.sample(10, seed=0)) == 10


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_stable_noise_costs_the_budget_too(trust):
    budget = Budget(epsilon=1.0, delta=1e-5, trust=trust)
    synth = PrivateFusion(SCHEMA, mechanism="stable").fit(owners(40, 20, 10), budget)
    terms = synth.ledger.events[0].terms
    assert (terms.mechanism, terms.norm) == ("stable", "l1") and 1.5 < terms.alpha < 1.9
    assert 0.98 < synth.ledger.spent().epsilon <= 1.0
    assert len(synth.sample(10, seed=0)) == 10
    with pytest.raises(ConfigError, match="stable"):
        PrivateFusion(SCHEMA, alpha=1.5).fit(owners(40), budget)


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_laplace_noise_costs_the_budget_too(trust):
    budget = Budget(epsilon=1.0, delta=1e-5, trust=trust)
    synth = PrivateFusion(SCHEMA, mechanism="laplace").fit(owners(40, 20, 10), budget)
    terms = synth.ledger.events[0].terms
    assert (terms.mechanism, terms.norm) == ("laplace", "l1")
    assert 0.98 < synth.ledger.spent().epsilon <= 1.0
    assert len(synth.sample(10, seed=0)) == 10


def test_without_privacy_there_is_no_noise():
    budget = Budget(epsilon=float("inf"), trust="distributed")
    synth = PrivateFusion(SCHEMA).fit(owners(700, 500), budget, insecure_noise_seed=0)
    truth = pd.concat(owners(700, 500).values())
    assert synth.ledger.spent().epsilon == float("inf")
    share = (truth["outcome"] == "ill").mean()
    np.testing.assert_allclose(synth.learned.model.frequencies, [1 - share, share], atol=1e-9)
    rows = synth.sample(20_000, seed=0)
    assert rows["dose"].mean() == pytest.approx(truth["dose"].mean(), abs=0.1)
    assert rows["smoker"].mean() == pytest.approx(truth["smoker"].mean(), abs=0.02)
    assert rows["colour"].isna().mean() == pytest.approx(truth["colour"].isna().mean(), abs=0.02)


def test_rows_have_the_schemas_columns_and_what_depends_on_the_class(fitted):
    rows = fitted.sample(4000, seed=0)
    assert list(rows) == [column.name for column in SCHEMA.columns]
    assert rows["age"].between(18, 90).all() and rows["dose"].between(0, 10).all()
    assert set(rows["colour"].dropna()) <= {"red", "green", "blue"}
    ill = rows["outcome"] == "ill"
    assert 0.2 < ill.mean() < 0.4
    assert (rows["dose"][ill] > 5).mean() > 0.9 and (rows["dose"][~ill] > 5).mean() < 0.1
    pd.testing.assert_frame_equal(rows, fitted.sample(4000, seed=0))


def test_conditions_on_the_target_are_exact(fitted):
    assert (fitted.sample(200, where={"outcome": "ill"}, seed=0)["outcome"] == "ill").all()
    rows = fitted.sample(2000, proportions={"ill": 3, "well": 1}, seed=0)
    assert (rows["outcome"] == "ill").mean() == pytest.approx(0.75, abs=0.03)
    young = fitted.sample(50, where={"age": {"from": 20, "to": 30}}, seed=0)
    assert young["age"].between(20, 30).all()
    with pytest.raises(ConfigError, match="did you mean"):
        fitted.sample(5, where={"outcom": "ill"})


def test_the_classifier_of_regenerated_rows_tells_real_rows_apart(fitted):
    real = table(300, seed=9)
    chances = fitted.probabilities(real)
    assert chances.shape == (300, 2) and chances.dtype == np.float64
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
    assert ((chances[:, 1] > 0.5) == (real["outcome"] == "ill")).mean() > 0.95
    np.testing.assert_array_equal(fitted.probabilities(real.drop(columns="outcome")), chances)


def test_a_release_can_be_sampled_from_again(fitted, tmp_path):
    fitted.release(tmp_path / "release", fitted.sample(50, seed=3))
    loaded = fs.load(tmp_path / "release")
    pd.testing.assert_frame_equal(loaded.sample(200, seed=5), fitted.sample(200, seed=5))
    real = table(20, seed=9)
    np.testing.assert_allclose(loaded.probabilities(real), fitted.probabilities(real), atol=1e-6)
    arrays, meta = fitted.model_state()
    again = PrivateFusion.from_state(SCHEMA, arrays, meta)
    pd.testing.assert_frame_equal(again.sample(200, seed=5), fitted.sample(200, seed=5))
    for damaged in (
        {},
        {**arrays, "shares": arrays["shares"][:, 1:]},
        {**arrays, "shares": -arrays["shares"]},
        {**arrays, "ranks": np.zeros_like(arrays["ranks"])},
        {**arrays, "correlations": np.full_like(arrays["correlations"], 2.0)},
        {**arrays, "records": np.full_like(arrays["records"], np.nan)},
    ):
        with pytest.raises(ReleaseError):
            PrivateFusion.from_state(SCHEMA, damaged, meta)
    for damaged in ({}, {**meta, "families": [[0, "age", {}]]}):
        with pytest.raises(ReleaseError):
            PrivateFusion.from_state(SCHEMA, arrays, damaged)


def test_families_that_fit_take_the_place_of_the_histogram():
    rng = np.random.default_rng(0)
    normal = np.round(rng.normal(500, 60, 4000)).clip(0, 1000).astype(int)
    schema = Schema(columns=[Integer(name="x", lower=0, upper=1000), Boolean(name="y")], target="y")
    frame = pd.DataFrame({"x": normal, "y": rng.random(4000) < 0.5})
    budget = Budget(epsilon=0.5, delta=1e-5, trust="central")
    synth = PrivateFusion(schema, marginals="families").fit([frame], budget, insecure_noise_seed=0)
    rows = synth.sample(4000, seed=0)
    assert set(synth.learned.model.families) == {(0, "x"), (1, "x")}
    assert rows["x"].mean() == pytest.approx(500, abs=15)
    assert rows["x"].std() == pytest.approx(60, abs=15)
    again = PrivateFusion.from_state(schema, *synth.model_state())
    assert again.learned.model.families == synth.learned.model.families
    plain = PrivateFusion(schema, marginals="histogram").fit([frame], budget, insecure_noise_seed=0)
    assert not plain.learned.model.families


def test_an_answered_job_is_not_asked_again(tmp_path):
    tables, budget = owners(60, 30, 20), Budget(epsilon=1.0, delta=1e-5)
    synth = PrivateFusion(SCHEMA).fit(tables, budget, folder=tmp_path)
    again = PrivateFusion(SCHEMA).fit(tables, budget, folder=tmp_path, resume=True)
    assert len(again.ledger.events) == 1
    pd.testing.assert_frame_equal(again.sample(50, seed=1), synth.sample(50, seed=1))


def joined(rows=6000, rho=0.8):
    """Two numbers and two categories that hang together within both classes."""
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal(np.zeros(2), [[1, rho], [rho, 1]], rows)
    word = np.where(z[:, 0] < -0.5, "c", np.where(z[:, 0] < 0.5, "a", "b"))
    other = np.where(z[:, 1] < -0.5, "y", np.where(z[:, 1] < 0.5, "z", "x"))
    return pd.DataFrame(
        {
            "u": np.round(np.exp(z[:, 0]) * 1000).astype(int),
            "v": np.round(50 + 10 * z[:, 1]).astype(int),
            "word": word,
            "other": other,
            "label": rng.choice(["p", "q"], rows),
        }
    )


JOINED = Schema(
    columns=[
        Integer(name="u", lower=0, upper=100_000),
        Integer(name="v", lower=0, upper=100),
        Categorical(name="word", values=["a", "b", "c"]),
        Categorical(name="other", values=["x", "y", "z"]),
        Categorical(name="label", values=["p", "q"]),
    ],
    target="label",
)


@pytest.mark.parametrize(("epsilon", "reach"), [(1.0, 0.25), (float("inf"), 0.03)])
def test_the_copula_keeps_what_independent_columns_lose(epsilon, reach):
    frame = joined()
    budget = Budget(epsilon=epsilon, delta=1e-5)
    kept = PrivateFusion(JOINED, learned_orders=9).fit([frame], budget, insecure_noise_seed=0)
    lost = PrivateFusion(JOINED, correlations="none").fit([frame], budget, insecure_noise_seed=0)
    real = frame["u"].rank().corr(frame["v"].rank())
    rows, loose = kept.sample(6000, seed=0), lost.sample(6000, seed=0)
    assert rows["u"].rank().corr(rows["v"].rank()) == pytest.approx(real, abs=reach)
    assert abs(loose["u"].rank().corr(loose["v"].rank())) < 0.05
    table_of = [pd.crosstab(f["word"], f["other"], normalize=True) for f in (frame, rows, loose)]
    error, independent = (float((t - table_of[0]).abs().to_numpy().sum() / 2) for t in table_of[1:])
    assert error < 0.08 < 0.2 < independent


ODD = [
    ("one column", Schema(columns=[Integer(name="x", lower=0, upper=9)]), {"x": [1, 2, 3]}),
    (
        "the target alone",
        Schema(columns=[Categorical(name="y", values=["a", "b"])], target="y"),
        {"y": ["a", "b"]},
    ),
    (
        "one class",
        Schema(
            columns=[Integer(name="x", lower=0, upper=9), Categorical(name="y", values=["a"])],
            target="y",
        ),
        {"x": [1, 2], "y": ["a", "a"]},
    ),
    (
        "all missing",
        Schema(
            columns=[
                Continuous(name="x", lower=0, upper=9, decimals=2, missing=True),
                Categorical(name="c", values=["a", "b"], missing=True),
                Boolean(name="y"),
            ],
            target="y",
        ),
        {"x": [np.nan] * 3, "c": [None] * 3, "y": [True, False, True]},
    ),
    (
        "infinite, huge, constant",
        Schema(
            columns=[
                Continuous(name="x", lower=-5, upper=1e6, decimals=2),
                Integer(name="k", lower=3, upper=4),
                Categorical(name="y", values=["a", "b", "never"]),
            ],
            target="y",
        ),
        {"x": [np.inf, -np.inf, 1e300, -1e300, 1], "k": [3] * 5, "y": list("ababa")},
    ),
    (
        "numeric target and dates",
        Schema(
            columns=[
                Datetime(name="d", lower="2000-01-01", upper="2030-01-01", missing=True),
                Integer(name="y", lower=0, upper=1000),
            ],
            target="y",
        ),
        {"d": ["2001-02-03", None], "y": [1, 1000]},
    ),
]


@pytest.mark.parametrize(("schema", "columns"), [o[1:] for o in ODD], ids=[o[0] for o in ODD])
@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [("gaussian", 1.0), ("laplace", 1.0), ("stable", 1.0), ("gaussian", float("inf"))],
)
def test_odd_tables(schema, columns, epsilon, mechanism):
    frame = pd.DataFrame(columns)
    tables = {"one": frame, "empty": frame.iloc[:0], "two": frame.iloc[:1]}
    budget = Budget(epsilon=epsilon, delta=1e-5, trust="central")
    synth = PrivateFusion(schema, mechanism=mechanism)
    rows = synth.fit(tables, budget, insecure_noise_seed=3, outside="allow").sample(30, seed=0)
    assert len(rows) == 30 and list(rows) == list(columns)
    assert check(rows, schema) == []


def test_settings_are_explained():
    with pytest.raises(ConfigError, match="did you mean 'moment_share'"):
        PrivateFusion(SCHEMA, moment_shar=0.5)
    with pytest.raises(ConfigError, match="share"):
        PrivateFusion(SCHEMA, moment_share=1.0)
    with pytest.raises(ConfigError, match="fit first"):
        PrivateFusion(SCHEMA).sample(3)
