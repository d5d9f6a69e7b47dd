"""Inference, checked against the enumeration of every combination."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.marginals import Domain, JunctionTree, Model


@st.composite
def models(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    domain = Domain(tuple(sizes))
    d = len(sizes)
    sets = st.sets(st.integers(0, d - 1), min_size=1, max_size=3)
    cliques = [tuple(sorted(s)) for s in draw(st.lists(sets, min_size=1, max_size=6))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = {c: rng.normal(0, 2, domain.shape(c)) for c in cliques}
    if draw(st.booleans()):
        first = factors[cliques[0]]
        first.flat[0] = -np.inf if first.size > 1 else 0.0
    return Model(JunctionTree.of(domain, factors), factors, 100.0)


def enumerate_cells(model):
    """The whole joint table, and the logarithm of its sum."""
    domain = model.domain
    logs = np.zeros(domain.sizes)
    for clique, factor in model.factors.items():
        logs = logs + factor.reshape([s if k in clique else 1 for k, s in enumerate(domain.sizes)])
    total = np.exp(logs).sum()
    return np.exp(logs) / total, np.log(total)


def sum_onto(joint, columns):
    return joint.sum(axis=tuple(k for k in range(joint.ndim) if k not in columns))


@given(models())
@settings(deadline=None)
def test_marginals_of_any_columns_equal_the_enumerated_ones(model):
    joint, log_total = enumerate_cells(model)
    assert model.log_partition == pytest.approx(log_total)
    d = len(model.domain)
    for size in range(1, d + 1):
        for columns in itertools.combinations(range(d), size):
            np.testing.assert_allclose(
                model.marginal(columns), sum_onto(joint, columns), atol=1e-12
            )


@given(models(), st.data())
@settings(deadline=None)
def test_conditions_are_exact(model, data):
    joint, _ = enumerate_cells(model)
    column = data.draw(st.integers(0, joint.ndim - 1))
    size = model.domain.sizes[column]
    weights = np.array(data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    shape = [size if k == column else 1 for k in range(joint.ndim)]
    product = joint * weights.reshape(shape)
    if product.sum() < 1e-12:
        return
    conditioned = model.condition({column: weights})
    assert conditioned.total == pytest.approx(100 * product.sum())
    for columns in itertools.combinations(range(joint.ndim), min(2, joint.ndim)):
        np.testing.assert_allclose(
            conditioned.marginal(columns), sum_onto(product / product.sum(), columns), atol=1e-9
        )


def test_a_condition_that_no_row_meets_is_refused():
    domain = Domain((2, 2))
    factor = np.array([[0.0, -np.inf], [0.0, 0.0]])
    model = Model(JunctionTree.of(domain, [(0, 1)]), {(0, 1): factor}, 10.0)
    with pytest.raises(ConfigError, match="probability zero"):
        model.condition({0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])})
    with pytest.raises(ConfigError, match="weight"):
        model.condition({0: np.array([1.0])})
    for weights in ([1.0, -1.0], [1.0, np.nan], [1.0, np.inf]):
        with pytest.raises(ConfigError, match="weight"):
            model.condition({0: np.array(weights)})
    for column in (-1, 2):
        with pytest.raises(ConfigError, match="columns of a table of 2"):
            model.condition({column: np.array([1.0, 1.0])})


def test_potentials_far_apart_neither_overflow_nor_lose_their_rows():
    domain = Domain((2, 2, 2))
    factors = {
        (0, 1): np.array([[2000.0, -3000.0], [-3000.0, 0.0]]),
        (1, 2): np.array([[-2000.0, -2000.0], [0.0, 0.0]]),
    }
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    # exp(2000 - 2000) against exp(0): both halves weigh the same.
    np.testing.assert_allclose(model.marginal((0, 1)), [[0.5, 0], [0, 0.5]], atol=1e-12)


@given(models(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_rows_hold_no_impossible_combination_and_follow_their_first_clique(model, seed):
    rows = 500
    codes = model.sample(rows, np.random.default_rng(seed))
    joint, _ = enumerate_cells(model)
    assert (joint[tuple(codes.T)] > 0).all()
    first = model.tree.cliques[0]
    counts = np.zeros(model.domain.shape(first))
    np.add.at(counts, tuple(codes[:, list(first)].T), 1)
    assert np.abs(counts - rows * model.marginal(first)).max() < 1 + 1e-9


def test_rows_are_unbiased_and_independent_columns_stay_so():
    domain = Domain((3, 4))
    factors = {(0,): np.log([0.5, 0.3, 0.2]), (1,): np.log([0.1, 0.2, 0.3, 0.4])}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    rng = np.random.default_rng(0)
    draws = np.zeros((1500, 3, 4))
    for one in draws:
        np.add.at(one, tuple(model.sample(7, rng).T), 1)
    wanted = 7 * np.outer([0.5, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - wanted) < 4.5 * error).all()
    codes = model.sample(100_000, rng)
    assert abs(np.corrcoef(codes.T)[0, 1]) < 0.02
    # No order either: neighbouring rows tell nothing of each other.
    assert abs(np.corrcoef(codes[1:, 0], codes[:-1, 0])[0, 1]) < 0.02


def test_imputed_cells_follow_the_distribution_given_the_known_ones():
    rng = np.random.default_rng(1)
    domain = Domain((2, 3, 3, 2))
    factors = {c: rng.normal(0, 1.5, domain.shape(c)) for c in [(0, 1), (1, 2), (2, 3)]}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    joint, _ = enumerate_cells(model)
    n = 60_000
    codes = np.full((2 * n, 4), -1, np.int32)
    codes[:n, 0], codes[:n, 3] = 1, 0
    codes[n:, 1] = 2
    completed = model.impute(codes, rng)
    assert (completed >= 0).all()
    assert (completed[codes >= 0] == codes[codes >= 0]).all()
    for part, known in ((completed[:n], joint[1, :, :, 0]), (completed[n:], joint[:, 2])):
        columns = [1, 2] if known.ndim == 2 else [0, 2, 3]
        shares = np.zeros(known.shape)
        np.add.at(shares, tuple(part[:, columns].T), 1 / n)
        assert np.abs(shares - known / known.sum()).max() < 0.01


def test_complete_rows_stay_and_a_row_without_known_cells_is_a_draw():
    domain = Domain((2, 2))
    model = Model(JunctionTree.of(domain, [(0, 1)]), {(0, 1): np.log([[9.0, 1], [1, 9]])}, 1.0)
    rng = np.random.default_rng(0)
    whole = np.array([[0, 1], [1, 0]], np.int32)
    assert (model.impute(whole, rng) == whole).all()
    completed = model.impute(np.full((20_000, 2), -1, np.int32), rng)
    assert np.mean(completed[:, 0] == completed[:, 1]) == pytest.approx(0.9, abs=0.01)


@given(models())
@settings(deadline=None, max_examples=15)
def test_a_model_read_back_is_the_same(model):
    arrays, meta = model.to_arrays()
    again = Model.from_arrays(arrays, meta)
    assert again.total == model.total
    for k in range(len(model.domain)):
        np.testing.assert_array_equal(again.marginal((k,)), model.marginal((k,)))


def test_damaged_parts_are_refused():
    domain = Domain((2, 2, 3))
    factors = {(0, 1): np.zeros((2, 2)), (1, 2): np.zeros((2, 3))}
    arrays, meta = Model(JunctionTree.of(domain, factors), factors, 1.0).to_arrays()
    damages = [
        {"sizes": [2, 2]},
        {"sizes": [2, 2, 4]},
        {"sizes": [2, "x", 3]},
        {"cliques": [[0, 1], [2]]},
        {"cliques": [[1, 0], [1, 2]]},
        {"edges": [[0, 0]]},
        {"edges": [[1, 0]]},
        {"edges": []},
        {"total": -1.0},
        {"total": float("nan")},
    ]
    for damage in damages:
        with pytest.raises(ReleaseError):
            Model.from_arrays(arrays, {**meta, **damage})
    for name in meta:
        with pytest.raises(ReleaseError):
            Model.from_arrays(arrays, {k: v for k, v in meta.items() if k != name})
    for broken in (np.nan, np.inf):
        with pytest.raises(ReleaseError):
            Model.from_arrays({**arrays, "factor 0 1": np.full((2, 2), broken)}, meta)
    with pytest.raises(ReleaseError):
        Model.from_arrays({**arrays, "factor 0 x": np.zeros((2, 2))}, meta)


def test_a_read_back_model_draws_the_same_rows():
    rng = np.random.default_rng(0)
    domain = Domain((2, 3, 4, 3))
    factors = {c: rng.normal(0, 1, domain.shape(c)) for c in [(0, 1), (1, 2), (2, 3), (0, 3)]}
    model = Model(JunctionTree.of(domain, factors), factors, 7.0)
    again = Model.from_arrays(*model.to_arrays())
    rows = [m.sample(100, np.random.default_rng(1)) for m in (model, again)]
    assert (rows[0] == rows[1]).all()


def test_a_query_too_large_is_refused_with_its_columns():
    domain = Domain((200,) * 5)
    factors = {(k, k + 1): np.zeros((200, 200)) for k in range(4)}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    with pytest.raises(ConfigError, match="fewer columns"):
        model.marginal((0, 1, 2, 3, 4))


def test_a_query_stays_among_the_columns_it_asks_for():
    """The root's end of a chain has no part in a marginal of the other end."""
    rng = np.random.default_rng(0)
    size = 100
    domain = Domain((size,) * 6)
    factors = {(k, k + 1): rng.normal(0, 1, (size, size)) for k in range(5)}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    assert model.tree.cliques[0] == (0, 1)
    pairs = {k: model.marginal((k, k + 1)) for k in (3, 4)}
    wanted = pairs[3] @ (pairs[4] / pairs[4].sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.marginal((3, 5)), wanted, rtol=1e-9)
    ends = model.marginal((0, 5))
    np.testing.assert_allclose(ends.sum(axis=0), model.marginal((5,)), rtol=1e-9)


def test_independent_columns_multiply():
    domain = Domain((3, 4, 2))
    factors = {(k,): np.log(np.arange(1.0, domain.sizes[k] + 1)) for k in range(3)}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    one, two, three = (np.arange(1.0, n + 1) / sum(range(1, n + 1)) for n in domain.sizes)
    wanted = np.einsum("a,b,c->abc", one, two, three)
    np.testing.assert_allclose(model.marginal((0, 1, 2)), wanted, rtol=1e-12)
