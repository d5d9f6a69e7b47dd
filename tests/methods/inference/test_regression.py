"""Regressions, moments and class probabilities from FedInfer's statistic."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from fedsynth.data.tables import conform
from fedsynth.errors import ConfigError, DataError
from fedsynth.methods.inference.estimate import Estimate
from fedsynth.methods.inference.synthesizer import FedInfer
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.schema import Categorical, Continuous, Integer, Schema
from tests.methods.inference.clinics import EXACT, LOOSE, SCHEMA, owners, table


@pytest.fixture(scope="module", params=[True, False], ids=["by class", "shared"])
def exact(request):
    return FedInfer(SCHEMA, class_conditional=request.param).fit(owners(60, 40, 25), EXACT)


@pytest.fixture(scope="module")
def pooled():
    return pd.concat(owners(60, 40, 25).values(), ignore_index=True)


def dummies(frame):
    """A design matrix by hand, the first categories left out; missing weights in the middle."""
    return pd.DataFrame(
        {
            "(intercept)": 1.0,
            "age": frame["age"].astype(float),
            "colour=green": (frame["colour"] == "green").astype(float),
            "colour=blue": (frame["colour"] == "blue").astype(float),
            "colour missing": frame["colour"].isna().astype(float),
            "weight": frame["weight"].fillna(120.0),
            "weight missing": frame["weight"].isna().astype(float),
            "smoker=True": frame["smoker"].astype(float),
            "outcome=ill": (frame["outcome"] == "ill").astype(float),
        }
    )


def test_without_noise_it_is_least_squares_of_the_pooled_rows(exact, pooled):
    regression = exact.regression("dose")
    design, y = dummies(pooled), pooled["dose"].to_numpy()
    b, *_ = np.linalg.lstsq(design.to_numpy(), y, rcond=None)
    assert regression.terms == tuple(design)
    np.testing.assert_allclose(regression.coefficients, b, atol=1e-10)
    rest = y - design.to_numpy() @ b
    s2 = rest @ rest / (len(y) - len(b))
    errors = np.sqrt(s2 * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(regression.errors, errors, rtol=1e-6)
    assert not regression.noise_errors.any()
    assert regression.r2 == pytest.approx(1 - rest @ rest / ((y - y.mean()) ** 2).sum(), abs=1e-9)
    assert regression.records == pytest.approx(len(y))
    np.testing.assert_allclose(regression.predict(pooled), design.to_numpy() @ b, atol=1e-9)


def test_a_category_is_fitted_by_the_probability_of_a_value(exact, pooled):
    regression = exact.regression("outcome", on=["dose", "smoker"])
    design = np.stack([np.ones(125), pooled["dose"], pooled["smoker"].astype(float)], axis=1)
    b, *_ = np.linalg.lstsq(design, (pooled["outcome"] == "ill").to_numpy(float), rcond=None)
    np.testing.assert_allclose(regression.coefficients, b, atol=1e-10)
    assert regression.value == "ill"
    well = exact.regression("outcome", on=["dose", "smoker"], value="well")
    np.testing.assert_allclose(well.coefficients[1:], -b[1:], atol=1e-10)
    np.testing.assert_allclose(well.predict(pooled) + regression.predict(pooled), 1, atol=1e-9)


def test_the_ridge_is_scikit_learns_in_coordinates(exact, pooled):
    regression = exact.regression("dose", on=["age", "smoker"], ridge=3.0)
    age = (pooled["age"].to_numpy() - 54) / 36
    smoker = np.where(pooled["smoker"], -1, 1) / np.sqrt(2)
    ridge = Ridge(alpha=3.0).fit(np.stack([age, smoker], axis=1), pooled["dose"])
    assert regression.coefficients[1] == pytest.approx(ridge.coef_[0] / 36, abs=1e-10)
    assert regression.coefficients[2] == pytest.approx(-math.sqrt(2) * ridge.coef_[1], abs=1e-10)
    plain = exact.regression("dose", on=["age", "smoker"])
    assert abs(regression.coefficients[2]) < abs(plain.coefficients[2])


def test_without_noise_moments_are_those_of_the_pooled_rows(exact, pooled):
    moments = exact.moments()
    wide = dummies(pooled).drop(columns="(intercept)")
    wide["weight"] = pooled["weight"]
    wide["dose"], wide["colour=red"] = pooled["dose"], (pooled["colour"] == "red").astype(float)
    at = [moments.names.index(name) for name in wide]
    np.testing.assert_allclose(moments.mean[at], wide.mean(), atol=1e-9)
    covariance = moments.covariance[np.ix_(at, at)]
    # pandas leaves out gaps pair by pair, and divides by n - 1.
    counts = wide.notna().astype(float).T @ wide.notna().astype(float)
    np.testing.assert_allclose(covariance, wide.cov() * (counts - 1) / counts, atol=1e-8)
    error = moments.mean_errors[moments.names.index("dose")]
    assert error == pytest.approx(pooled["dose"].std(ddof=0) / math.sqrt(125), rel=1e-6)
    table = moments.table()
    assert table.loc["smoker=True", "mean"] == pytest.approx(pooled["smoker"].mean())
    correlation = moments.correlations().loc["age", "dose"]
    assert correlation == pytest.approx(pooled["age"].corr(pooled["dose"]), abs=1e-9)


def test_probabilities_are_those_of_linear_discriminant_analysis(exact, pooled):
    form = exact.statistic.coordinates
    conformed = conform(pooled, SCHEMA, "pooled")
    v = form.matrix(conformed.columns, conformed.rows)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(v, conformed.columns["outcome"])
    probabilities = exact.probabilities(pooled)
    np.testing.assert_allclose(probabilities, peer.predict_proba(v), atol=1e-8)
    unlabelled = exact.probabilities(pooled.drop(columns="outcome"))
    np.testing.assert_array_equal(probabilities, unlabelled)


def test_three_classes_agree_with_discriminant_analysis_too():
    schema = Schema(
        columns=[
            *[Continuous(name=f"x{k}", lower=-9, upper=9, decimals=6) for k in range(4)],
            Categorical(name="y", values=["a", "b", "c"]),
        ],
        target="y",
    )
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    x = np.round(rng.normal(0, 1, (90, 4)) + rng.normal(0, 1, (3, 4))[labels], 6)
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(4)])
    frame["y"] = np.array(["a", "b", "c"])[labels]
    probabilities = FedInfer(schema).fit([frame[:50], frame[50:]], EXACT).probabilities(frame)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(x, labels)
    np.testing.assert_allclose(probabilities, peer.predict_proba(x), atol=1e-8)


LINE = Schema(
    columns=[
        Continuous(name="x", lower=-5, upper=5, decimals=6),
        Categorical(name="g", values=["a", "b"]),
        Continuous(name="y", lower=-20, upper=20, decimals=6),
    ]
)
TRUTH = np.array([1.0, 2.0, -1.5])
MEAN_Y = TRUTH[0] + TRUTH[2] / 2


def simulated(rows, epsilon, seed):
    """Records of a known line, their sum and the noise of a release, without a federation."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, rows).clip(-5, 5)
    g = rng.integers(0, 2, rows)
    y = TRUTH[0] + TRUTH[1] * x + TRUTH[2] * g + rng.normal(0, 1, rows)
    form = FedInfer(LINE).statistic
    v = form.coordinates.matrix({"x": x, "g": g, "y": y.clip(-20, 20)}, rows)
    total = form.contributions(v, None).weighted_sum(np.ones(rows))
    sigma = 0.0
    if math.isfinite(epsilon):
        sigma = form.bound * optimal_gaussian_sigma(epsilon, 1e-5)
    return Estimate(LINE, form, total + sigma * rng.standard_normal(len(total)), sigma, ("a",))


@pytest.mark.parametrize(("rows", "epsilon"), [(40, math.inf), (1000, 2.0), (1000, 0.7)])
def test_intervals_cover_the_truth_as_often_as_they_say(rows, epsilon):
    hits, ends = np.zeros(3), 0
    for seed in range(80):
        intervals = simulated(rows, epsilon, seed).regression("y").intervals(0.9)
        hits += (intervals["low"] <= TRUTH) & (intervals["high"] >= TRUTH)
        ends += np.isfinite(intervals["low"]).all()
    # 90 % of 80 is 72, with a standard deviation of 2.7.
    assert (hits >= 63).all()
    if epsilon != 0.7:
        assert (hits <= 79).all() and ends == 80


def test_means_are_within_their_errors_as_often_as_they_say(monkeypatch):
    # Errors of fewer draws are as good to count by.
    monkeypatch.setattr("fedsynth.methods.inference.moments._REPEATS", 100)
    result = [simulated(600, 2.0, seed) for seed in range(40)]
    moments = [estimate.moments() for estimate in result]
    z = [(m.mean[-1] - MEAN_Y) / m.mean_errors[-1] for m in moments]
    assert 0.7 < np.std(z) < 1.35
    variance = TRUTH[1] ** 2 * 2.25 + TRUTH[2] ** 2 / 4 + 1
    z = [(m.covariance[-1, -1] - variance) / m.covariance_errors[-1, -1] for m in moments]
    assert 0.7 < np.std(z) < 1.35


def test_what_the_noise_drowns_is_said_to_be_unknown():
    regression = simulated(30, 0.5, 0).regression("y")
    assert np.isinf(regression.errors).any() and np.isfinite(regression.coefficients).all()
    assert simulated(4000, 0.5, 0).regression("y").noise_errors[1] > 0


def test_what_nobody_varies_in_is_said_to_be_unknown():
    frame = table(80).assign(smoker=True)
    regression = FedInfer(SCHEMA).fit([frame], EXACT).regression("dose", on=["age", "smoker"])
    errors = dict(zip(regression.terms, regression.errors, strict=True))
    assert math.isinf(errors["smoker=True"]) and math.isinf(errors["(intercept)"])
    assert errors["age"] < 1
    design = np.stack([np.ones(80), frame["age"]], axis=1)
    b, *_ = np.linalg.lstsq(design, frame["dose"].to_numpy(), rcond=None)
    assert regression.coefficients[1] == pytest.approx(b[1], abs=1e-8)
    np.testing.assert_allclose(regression.predict(frame), design @ b, atol=1e-8)


def test_a_fit_without_freedom_claims_nothing():
    regression = FedInfer(SCHEMA).fit([table(2)], EXACT).regression("dose")
    assert np.isinf(regression.errors).all() and np.isfinite(regression.coefficients).all()


def test_no_predictors_give_the_mean(exact, pooled):
    regression = exact.regression("dose", on=[])
    assert regression.terms == ("(intercept)",)
    assert regression.coefficients[0] == pytest.approx(pooled["dose"].mean())
    assert regression.predict(pooled[:3]).tolist() == [regression.coefficients[0]] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"target": "dos"}, "did you mean 'dose'"),
        ({"target": "dose", "on": ["agee"]}, "did you mean 'age'"),
        ({"target": "dose", "on": 3}, "a column's name or a list"),
        ({"target": "dose", "on": ["dose"]}, "explain itself"),
        ({"target": "dose", "ridge": -1}, "at least 0"),
        ({"target": "dose", "value": 3}, "holds numbers"),
        ({"target": "outcome", "value": "dead"}, "no value 'dead'"),
        ({"target": "weight"}, "may be missing"),
    ],
)
def test_a_wrong_question_is_explained(exact, arguments, said):
    with pytest.raises(ConfigError, match=said):
        exact.regression(**arguments)


def test_wrong_tables_and_levels_are_explained(exact, pooled):
    regression = exact.regression("dose", on=["age"])
    with pytest.raises(DataError, match="'age'"):
        regression.predict(pooled[["smoker"]])
    with pytest.raises(ConfigError, match="between 0 and 1"):
        regression.intervals(95)
    with pytest.raises(DataError, match="'dose'"):
        exact.probabilities(pooled[["age"]])
    numbers = Schema(columns=[Integer(name="n", lower=0, upper=9)])
    alone = FedInfer(numbers).fit([pd.DataFrame({"n": [1, 2]})], EXACT)
    with pytest.raises(ConfigError, match="target of categories"):
        alone.probabilities(pd.DataFrame({"n": [1]}))


def test_noise_widens_intervals_and_larger_budgets_narrow_them():
    tables = owners(3000, 2000)
    errors = []
    for epsilon in (1.0, 5.0, 50.0):
        budget = Budget(epsilon=epsilon, delta=1e-5, trust="central")
        fitted = FedInfer(SCHEMA).fit(tables, budget, insecure_noise_seed=0)
        errors.append(fitted.regression("dose", on=["age"]).errors[1])
    exact = FedInfer(SCHEMA).fit(tables, EXACT).regression("dose", on=["age"]).errors[1]
    assert errors[0] > errors[1] > errors[2] > exact


def test_laplace_noise_is_known_by_its_deviation():
    fitted = FedInfer(SCHEMA, mechanism="laplace").fit(owners(300), LOOSE)
    terms = fitted.ledger.events[0].terms
    assert terms.norm == "l1"
    assert fitted.learned.scales[0] == pytest.approx(math.sqrt(2) * terms.scale)
