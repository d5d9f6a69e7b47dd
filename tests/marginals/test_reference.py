"""Against mbi 2.0, the library of the method's authors, on small tables."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp

from fedsynth.marginals import Domain, JunctionTree, Measurement, Model, fit

NAMES = "abcdef"
# Few shapes, each of which takes the library a second to compile for.
SIZES = (2, 3, 2, 3, 2, 3)
# A cycle, which needs a chord; a triple; and a column on its own.
CLIQUES = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 2, 4), (5,)]


@pytest.fixture(scope="module")
def mbi():
    """The library in double precision, which it is not by default; compiling takes most of the
    time, and most of that goes to making fast what is run once."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.devices()
        import mbi
        from mbi import estimation, marginal_loss, marginal_oracles
    return SimpleNamespace(
        **vars(mbi) | {"fits": estimation, "losses": marginal_loss, "oracles": marginal_oracles}
    )


def names_of(clique):
    return tuple(NAMES[k] for k in clique)


def vector(mbi, domain, tables):
    theirs = mbi.Domain(names_of(range(len(domain))), domain.sizes)
    factors = {names_of(c): mbi.Factor(theirs.project(names_of(c)), t) for c, t in tables.items()}
    return mbi.CliqueVector(theirs, list(factors), factors)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(4)
    domain = Domain(SIZES)
    factors = {c: rng.normal(0, 2, domain.shape(c)) for c in CLIQUES}
    return Model(JunctionTree.of(domain, factors), factors, 1000.0)


def test_marginals_agree(mbi, model):
    theirs = vector(mbi, model.domain, model.factors)
    marginals = mbi.oracles.message_passing_shafer_shenoy(theirs, 1000.0)
    for clique in CLIQUES:
        np.testing.assert_allclose(
            model.total * model.marginal(clique),
            marginals.project(names_of(clique)).datavector(flatten=False),
            rtol=1e-9,
        )


def test_marginals_of_columns_far_apart_agree(mbi, model):
    theirs = vector(mbi, model.domain, model.factors)
    for columns in [(0, 4), (3, 4, 5)]:
        wanted = mbi.oracles.variable_elimination(theirs, names_of(columns), 1.0)
        np.testing.assert_allclose(
            model.marginal(columns), wanted.datavector(flatten=False), rtol=1e-9
        )


def test_the_log_partition_is_that_of_all_cells_written_out(model):
    joint = sum(
        factor.reshape([SIZES[k] if k in clique else 1 for k in range(len(SIZES))])
        for clique, factor in model.factors.items()
    )
    assert model.log_partition == pytest.approx(logsumexp(joint), rel=1e-12)


def test_the_cells_of_a_tree_agree(mbi, model):
    theirs = mbi.Domain(names_of(range(6)), SIZES)
    tree, _ = mbi.junction_tree.make_junction_tree(theirs, [names_of(c) for c in CLIQUES])
    assert model.tree.cells == sum(theirs.size(clique) for clique in tree.nodes)


def test_fitted_models_agree(mbi):
    """Different weights, a table within another, noise, and the total unknown."""
    rng = np.random.default_rng(1)
    domain = Domain((2, 3, 4))
    joint = rng.dirichlet(np.full(24, 2.0)).reshape(domain.sizes) * 5000
    measured = []
    for clique, sigma in [((0, 1), 20.0), ((1, 2), 40.0), ((1,), 5.0)]:
        exact = joint.sum(axis=tuple(k for k in range(3) if k not in clique))
        noisy = exact + rng.normal(0, sigma, exact.shape)
        measured.append(Measurement(clique, noisy, sigma))
    ours = fit(domain, measured, iterations=1000, tolerance=0.0)
    theirs = mbi.Domain(names_of(range(3)), domain.sizes)
    linear = [
        mbi.LinearMeasurement(m.values.ravel(), names_of(m.clique), m.sigma) for m in measured
    ]
    total = mbi.fits.minimum_variance_unbiased_total(linear)
    assert ours.total == pytest.approx(total, rel=1e-9)
    loss = mbi.losses.from_linear_measurements(linear, theirs)
    # Steps of one length compile four times as soon as those that are searched for.
    descent = mbi.fits.MirrorDescent(stepsize=8 / (loss.lipschitz * total))
    fitted = descent.estimate(theirs, loss, known_total=total, iters=10_000)
    for clique in [(0, 1), (1, 2), (0, 2)]:
        np.testing.assert_allclose(
            ours.total * ours.marginal(clique),
            fitted.project(names_of(clique)).datavector(flatten=False),
            rtol=1e-6,
        )
