"""Fitted models: what they minimise, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.marginals import Domain, JunctionTree, Measurement, Model, fit

DOMAIN = Domain((3, 4, 2, 3))
CLIQUES = [(0, 1), (1, 2), (2, 3), (3,)]


def sum_onto(joint, columns):
    return joint.sum(axis=tuple(k for k in range(joint.ndim) if k not in columns))


def table(seed, total=1000.0):
    rng = np.random.default_rng(seed)
    return total * rng.dirichlet(np.full(72, 1.0)).reshape(DOMAIN.sizes)


def measure(joint, cliques, sigma, rng):
    measurements = []
    for clique in cliques:
        exact = sum_onto(joint, clique)
        measurements.append(Measurement(clique, exact + rng.normal(0, sigma, exact.shape), sigma))
    return measurements


def loss(model, measurements):
    return sum(
        ((model.total * model.marginal(m.clique) - m.values) ** 2).sum() / (2 * m.sigma**2)
        for m in measurements
    )


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_consistent_tables_are_met_exactly_whatever_their_weight(sigma):
    joint = table(0)
    exact = [Measurement(c, sum_onto(joint, c), sigma) for c in CLIQUES]
    model = fit(DOMAIN, exact, iterations=2000, tolerance=0.0)
    assert model.total == pytest.approx(1000)
    for clique in CLIQUES:
        np.testing.assert_allclose(
            model.total * model.marginal(clique), sum_onto(joint, clique), atol=0.01
        )


def test_the_model_has_the_largest_entropy_of_those_that_agree():
    """On a chain that is the product of conditionals, in closed form."""
    joint = table(1)
    exact = [Measurement(c, sum_onto(joint, c), 1.0) for c in [(0, 1), (1, 2)]]
    model = fit(DOMAIN, exact, iterations=2000, tolerance=0.0)
    left, right = sum_onto(joint, (0, 1)) / 1000, sum_onto(joint, (1, 2)) / 1000
    wanted = left[:, :, None] * (right / right.sum(axis=1, keepdims=True))[None]
    np.testing.assert_allclose(model.marginal((0, 1, 2)), wanted, atol=1e-5)
    # Nobody measured the last column.
    np.testing.assert_allclose(model.marginal((3,)), 1 / 3, atol=1e-12)


@given(st.integers(0, 2**32), st.sampled_from([1.0, 20.0, 200.0]))
@settings(deadline=None, max_examples=6)
def test_no_distribution_nearby_has_a_lower_loss(seed, sigma):
    """The loss is convex: at the least point every way towards another table goes up."""
    rng = np.random.default_rng(seed)
    ms = measure(table(seed), CLIQUES, sigma, rng)
    model = fit(DOMAIN, ms, iterations=3000, tolerance=0.0)
    joint = model.marginal((0, 1, 2, 3))
    gradient = np.zeros(DOMAIN.sizes)
    for m in ms:
        error = (model.total * model.marginal(m.clique) - m.values) * model.total / sigma**2
        gradient += error.reshape([s if k in m.clique else 1 for k, s in enumerate(DOMAIN.sizes)])
    # The steepest way is all mass to the cell of least gradient (Frank and Wolfe's gap).
    gap = float((gradient * joint).sum() - gradient.min())
    assert gap <= 1e-3 * max(1.0, loss(model, ms))


def test_repeated_measurements_are_as_good_as_their_weighted_mean():
    rng = np.random.default_rng(2)
    joint = table(2)
    one, two = measure(joint, [(0, 1)], 10.0, rng)[0], measure(joint, [(0, 1)], 20.0, rng)[0]
    mean = Measurement((0, 1), 0.8 * one.values + 0.2 * two.values, np.sqrt(80.0))
    both, single = (
        fit(DOMAIN, [*ms, *measure(joint, [(1, 2)], 10.0, np.random.default_rng(3))], total=1000.0)
        for ms in ([one, two], [mean])
    )
    np.testing.assert_allclose(both.marginal((0, 1)), single.marginal((0, 1)), rtol=1e-9)


def test_a_table_within_another_pulls_by_its_own_weight():
    """A column alone, known well, against a pair's poor word on it."""
    rng = np.random.default_rng(4)
    joint = table(4)
    pair, single = measure(joint, [(0, 1)], 100.0, rng)[0], measure(joint, [(0,)], 1.0, rng)[0]
    model = fit(DOMAIN, [pair, single], total=1000.0, iterations=500, tolerance=0.0)
    poor = np.abs(fit(DOMAIN, [pair], total=1000.0).marginal((0,)) * 1000 - sum_onto(joint, (0,)))
    good = np.abs(model.marginal((0,)) * 1000 - sum_onto(joint, (0,)))
    assert good.max() < 5 < poor.max()


def test_exact_counts_beside_noisy_ones_are_kept():
    rng = np.random.default_rng(5)
    joint = table(5)
    exact = Measurement((0,), sum_onto(joint, (0,)), 0.0)
    model = fit(DOMAIN, [exact, *measure(joint, [(0, 1)], 20.0, rng)], iterations=1000)
    assert model.total == pytest.approx(1000)
    np.testing.assert_allclose(model.total * model.marginal((0,)), exact.values, atol=0.5)


def test_impossible_cells_stay_empty_and_the_rest_is_fitted():
    rng = np.random.default_rng(6)
    never = np.zeros((3, 4), bool)
    never[0, 1:] = never[2, 0] = True
    joint = table(6)
    joint[never] = 0
    ms = measure(joint, [(0, 1), (1, 2)], 1.0, rng)
    model = fit(DOMAIN, ms, zeros=[((0, 1), never)], iterations=500)
    marginal = model.marginal((0, 1))
    assert (marginal[never] == 0).all()
    np.testing.assert_allclose(
        model.total * marginal[~never], sum_onto(joint, (0, 1))[~never], atol=6
    )
    assert (model.sample(500, rng)[:, 0] != 2).any()
    with pytest.raises(ConfigError, match="probability zero"):
        fit(DOMAIN, ms, zeros=[((0,), np.ones(3, bool))])


def test_impossible_cells_leave_a_started_models_others_in_proportion():
    rng = np.random.default_rng(7)
    factors = {(0, 1): rng.normal(0, 2, (3, 4)), (1, 2): rng.normal(0, 2, (4, 2))}
    start = Model(JunctionTree.of(DOMAIN, factors), factors, 50.0)
    never = np.zeros((3, 4), bool)
    never[1, 2] = True
    model = fit(DOMAIN, [], start=start, total=50.0, zeros=[((0, 1), never)], iterations=5)
    wanted = np.where(never[:, :, None], 0, start.marginal((0, 1, 2)))
    np.testing.assert_allclose(model.marginal((0, 1, 2)), wanted / wanted.sum(), rtol=1e-9)


def test_a_fit_that_continues_starts_where_the_last_one_ended():
    rng = np.random.default_rng(8)
    ms = measure(table(8), CLIQUES, 5.0, rng)
    first = fit(DOMAIN, ms, iterations=40, tolerance=0.0)
    same = fit(DOMAIN, ms, start=first, iterations=0)
    np.testing.assert_allclose(same.marginal((0, 1)), first.marginal((0, 1)), rtol=1e-12)
    more = fit(DOMAIN, ms, start=first, iterations=10, tolerance=0.0)
    assert loss(more, ms) <= loss(first, ms)
    extended = [*ms, *measure(table(8), [(0, 3)], 5.0, rng)]
    wider = fit(DOMAIN, extended, start=first, iterations=2000, tolerance=0.0)
    afresh = fit(DOMAIN, extended, iterations=2000, tolerance=0.0)
    assert loss(wider, extended) == pytest.approx(loss(afresh, extended), rel=1e-4)


def test_nothing_measured_is_the_even_distribution():
    model = fit(DOMAIN, [], total=10.0, cliques=[(0, 1), (2, 3)])
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3)), 1 / 72, rtol=1e-12)
    assert model.tree.home((0, 1)) is not None
    assert model.tree.home((2, 3)) is not None


def test_a_column_of_one_code_and_a_total_below_nothing_are_fitted():
    domain = Domain((1, 2))
    model = fit(domain, [Measurement((0, 1), np.array([[-3.0, -9.0]]), 5.0)])
    assert model.total == 1.0
    assert model.marginal((0,)) == pytest.approx(1.0)
    assert np.isfinite(model.marginal((0, 1))).all()


def test_what_does_not_fit_the_columns_is_refused():
    with pytest.raises(ConfigError, match="instead of"):
        fit(DOMAIN, [Measurement((0, 1), np.zeros((4, 3)), 1.0)])
    with pytest.raises(ConfigError, match="columns"):
        fit(DOMAIN, [Measurement((1, 0), np.zeros((4, 3)), 1.0)])
    with pytest.raises(ConfigError, match="instead of"):
        fit(DOMAIN, [], zeros=[((0, 1), np.zeros((3, 3), bool))])
    other = fit(Domain((2, 2)), [])
    with pytest.raises(ConfigError, match="same columns"):
        fit(DOMAIN, [], start=other)


def test_a_fit_gives_way_where_cells_are_unsure():
    """Within one total, counts move from what was measured by their variances' shares."""
    values, sigmas = np.array([100.0, 200, 300]), (1.0, 2.0, 3.0)
    model = fit(Domain((3,)), [Measurement((0,), values, sigmas)], total=614.0, iterations=2000)
    expected = values + 14 * np.square(sigmas) / 14
    np.testing.assert_allclose(model.marginal((0,)) * 614, expected, rtol=1e-3)


def test_a_cell_without_noise_among_noisy_ones_leaves_other_columns_their_fit():
    """Two tables of the first column know its last cell exactly; the second column is far from
    even."""
    known = Measurement((0,), np.array([600.0, 400.0, 0.0]), (40.0, 40.0, 0.0))
    second = Measurement((1,), np.array([900.0, 80.0, 20.0]), 40.0)
    model = fit(Domain((3, 3)), [known, known, second], iterations=60)
    assert model.marginal((1,)) * 1000 == pytest.approx([900, 80, 20], abs=5)
    assert model.marginal((0,)) * 1000 == pytest.approx([600, 400, 0], abs=5)
