"""The copula: known correlations come back, noise is shrunk, matrices are correlations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from fedsynth.data.tables import conform, restore
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.copula import _coefficients, fit_copula
from fedsynth.methods.copula.fitted import estimate
from fedsynth.methods.copula.model import learn
from fedsynth.methods.copula.question import Question
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.schema import Boolean, Categorical, Integer, Schema


def test_mehlers_series_is_the_covariance_of_the_steps():
    # P(both above) of two latents of correlation rho, by integration of the bivariate density.
    steps = np.array([[0.0], [1.0]])
    for rho in (-0.6, 0.3, 0.8):
        a = _coefficients(steps, np.array([0.3, 0.7]), np.arange(2))[:, 0]
        b = _coefficients(steps, np.array([0.6, 0.4]), np.arange(2))[:, 0]
        t = [norm.ppf(0.3), norm.ppf(0.6)]
        both = multivariate_normal(cov=[[1, rho], [rho, 1]]).cdf([-t[0], -t[1]])
        series = (rho ** np.arange(1, len(a) + 1) * a * b).sum()
        assert series == pytest.approx(both - 0.7 * 0.4, abs=2e-4)


SCHEMA = Schema(
    columns=[
        Integer(name="u", lower=0, upper=100),
        Integer(name="v", lower=0, upper=100_000),
        Categorical(name="w", values=list("abcd")),
        Boolean(name="y"),
    ],
    target="y",
)


def normal_rows(rows, seed=0):
    """Latents of known correlation, 0.7 and -0.4 in the two classes, as columns."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.4
    rho = np.where(y, 0.7, -0.4)
    z = rng.standard_normal((rows, 3))
    z[:, 1] = rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]
    # The category rises with the latent in another order than the schema's.
    z[:, 2] = 0.8 * z[:, 0] + 0.6 * z[:, 2]
    word = np.array([2, 0, 3, 1])[np.searchsorted([-0.7, 0, 0.7], z[:, 2])]
    columns = {
        "u": np.round(50 + 12 * z[:, 0]).clip(0, 100),
        "v": np.round(np.exp(6 + z[:, 1])).clip(0, 100_000),
        "w": word,
        "y": y.astype(np.int64),
    }
    return restore(columns, SCHEMA, rng)


def statistics_of(frame, sigma, apart, seed=0):
    question = Question(TableCells.of(SCHEMA, apart), 0.5, "l2")
    total = clip_and_sum(question.rows(conform(frame, SCHEMA).columns, 0), 1.001)
    noise = np.random.default_rng(seed).standard_normal(len(total))
    return question.answer(total + sigma * noise, sigma)


@pytest.mark.parametrize(("sigma", "reach"), [(0.0, 0.05), (4.0, 0.15)])
def test_correlations_that_made_the_rows_are_found(sigma, reach):
    statistics = statistics_of(normal_rows(20_000), sigma, 9)
    copula = fit_copula(statistics, 0, estimate(statistics, 0).shares)
    assert copula.correlations[0, 0, 1] == pytest.approx(-0.4, abs=reach)
    assert copula.correlations[1, 0, 1] == pytest.approx(0.7, abs=reach)


def test_the_order_of_categories_is_learned_from_what_they_go_with():
    statistics = statistics_of(normal_rows(20_000), 4.0, 9)
    copula = fit_copula(statistics, 0, estimate(statistics, 0).shares)
    ranks = copula.ranks[statistics.question.cells.slices()[2]]
    order = np.argsort(ranks).tolist()
    assert order in ([2, 0, 3, 1], [1, 3, 0, 2])
    strength = copula.correlations[:, 0, 2] * (1 if order[0] == 2 else -1)
    np.testing.assert_allclose(strength, 0.8, atol=0.12)
    # Without scores of their own the categories keep the schema's order.
    plain = statistics_of(normal_rows(20_000), 4.0, 0)
    kept = fit_copula(plain, 0, estimate(plain, 0).shares).ranks
    assert kept[plain.question.cells.slices()[2]].tolist() == [0, 1, 2, 3]


def test_regenerated_rows_have_the_joint_distribution():
    frame = normal_rows(20_000)
    model = learn(statistics_of(frame, 0.0, 9))
    labels = frame["y"].to_numpy().astype(np.int64)
    columns = model.columns(labels, len(labels), np.random.default_rng(0))
    real = conform(frame, SCHEMA).columns
    for label in (0, 1):
        ours, theirs = (
            np.histogram2d(
                c["u"][labels == label],
                np.log1p(c["v"][labels == label]),
                bins=5,
                range=[[0, 100], [3, 9]],
            )[0]
            for c in (columns, real)
        )
        assert np.abs(ours - theirs).sum() / 2 / theirs.sum() < 0.05
    pairs = [
        np.bincount(c["w"].astype(int) * 2 + (c["u"] > 50), minlength=8) / len(labels)
        for c in (columns, real)
    ]
    assert np.abs(pairs[0] - pairs[1]).sum() / 2 < 0.05
