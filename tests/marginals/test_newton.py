"""The long steps that a fit begins with."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.marginals import Domain, JunctionTree, Measurement, Model, fit
from fedsynth.marginals.loss import Loss
from fedsynth.marginals.newton import Covariance, approach


@st.composite
def problems(draw):
    """A loss, and log-factors with a structural zero among them or not."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    domain = Domain(tuple(sizes))
    sets = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    cliques = {tuple(sorted(s)) for s in draw(st.lists(sets, min_size=1, max_size=5))}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = {c: rng.normal(0, 1.5, domain.shape(c)) for c in sorted(cliques)}
    first = next(iter(factors.values()))
    if draw(st.booleans()) and first.size > 1:
        first.flat[0] = -np.inf
    tables = {
        c: Measurement(c, rng.normal(20, 20, domain.shape(c)), float(rng.uniform(1, 30)))
        for c in factors
    }
    return Loss(JunctionTree.of(domain, factors), tables, 100.0), factors, rng


@given(problems())
@settings(deadline=None)
def test_products_with_the_covariance_equal_the_enumerated_ones(problem):
    losses, factors, rng = problem
    domain = losses.tree.domain
    direction = {c: rng.normal(0, 1, f.shape) for c, f in factors.items()}
    joint = Model(losses.tree, factors, 1.0).marginal(tuple(range(len(domain))))
    lifted = np.zeros(domain.sizes)
    for clique, values in direction.items():
        lifted += values.reshape([s if k in clique else 1 for k, s in enumerate(domain.sizes)])
    change = joint * (lifted - (joint * lifted).sum())
    covariance = Covariance(losses, losses.point(factors).masses)
    products = covariance.times(losses.flatten(direction))
    for clique, values in losses.split(products).items():
        axes = tuple(k for k in range(len(domain)) if k not in clique)
        np.testing.assert_allclose(values, change.sum(axis=axes), atol=1e-12)


@given(problems())
@settings(deadline=None)
def test_steps_never_raise_the_loss_and_keep_zeros(problem):
    losses, factors, _ = problem
    before = losses.point(factors).loss
    fitted = approach(losses, factors, 10)
    assert losses.point(fitted).loss <= before
    for clique, factor in factors.items():
        assert (np.isneginf(fitted[clique]) == np.isneginf(factor)).all()


def test_a_few_steps_meet_tables_that_agree():
    rng = np.random.default_rng(0)
    domain = Domain((5, 6, 4, 5))
    joint = 1000 * rng.dirichlet(np.full(600, 0.5)).reshape(domain.sizes)
    tables = {}
    for clique in itertools.combinations(range(4), 2):
        values = joint.sum(axis=tuple(k for k in range(4) if k not in clique))
        tables[clique] = Measurement(clique, values, 1.0)
    losses = Loss(JunctionTree.of(domain, tables), tables, 1000.0)
    start = {c: np.zeros(domain.shape(c)) for c in tables}
    fitted = approach(losses, start, 25)
    assert losses.point(fitted).loss < 1e-4 * losses.point(start).loss


def test_noise_that_differs_a_hundredfold_is_fitted_in_few_steps():
    """Mirror descent alone leaves a thousand times the least loss after as many."""
    rng = np.random.default_rng(1)
    domain = Domain((8, 8, 8, 8))
    joint = 50_000 * rng.dirichlet(np.full(4096, 0.05)).reshape(domain.sizes)
    measured = []
    for clique, sigma in [((0, 1), 100.0), ((1, 2), 100.0), ((2, 3), 10.0), ((0,), 1.0)]:
        values = joint.sum(axis=tuple(k for k in range(4) if k not in clique))
        measured.append(Measurement(clique, values + rng.normal(0, sigma, values.shape), sigma))

    def loss(model):
        return sum(
            ((model.total * model.marginal(m.clique) - m.values) ** 2).sum() / m.sigma**2
            for m in measured
        )

    few = loss(fit(domain, measured, iterations=80, tolerance=0.0))
    many = loss(fit(domain, measured, iterations=800, tolerance=0.0))
    assert many <= few <= 1.6 * many


def test_nothing_to_fit_leaves_the_factors_alone():
    domain = Domain((2, 2))
    tables = {(0, 1): Measurement((0, 1), np.full((2, 2), 25.0), 1.0)}
    losses = Loss(JunctionTree.of(domain, tables), tables, 100.0)
    fitted = approach(losses, {(0, 1): np.zeros((2, 2))}, 10)
    assert (fitted[(0, 1)] == 0).all()
