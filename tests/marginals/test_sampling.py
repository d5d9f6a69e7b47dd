"""Rows against the marginals that they are drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.marginals import Domain, JunctionTree, Model, count


def build(sizes, factors):
    domain = Domain(sizes)
    return Model(JunctionTree.of(domain, factors), factors, 1.0)


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_a_column_of_two_codes_varies_less_than_independent_draws(rows):
    """With cells in a fixed order all rows of a 50 by 2 clique got the same second code."""
    model = build((50, 2), {(0, 1): np.zeros((50, 2))})
    rng = np.random.default_rng(0)
    ones = [model.sample(rows, rng)[:, 1].sum() for _ in range(600)]
    assert np.mean(ones) == pytest.approx(rows / 2, abs=5 * np.sqrt(rows / 4 / 600))
    assert np.std(ones) <= 1.1 * np.sqrt(rows / 4)


def test_small_groups_do_not_couple_their_columns():
    """200 groups of about ten rows that share out 10 by 2 cells each."""
    domain = Domain((200, 3, 10, 2))
    model = Model(JunctionTree.of(domain, [(0, 1), (0, 2, 3)]), {}, 1.0)
    rng = np.random.default_rng(1)
    draws = [model.sample(2000, rng) for _ in range(150)]
    assert np.std([codes[:, 3].sum() for codes in draws]) <= 1.1 * np.sqrt(2000 / 4)
    pairs = sum(count(domain, codes, (2, 3)) for codes in draws) / (150 * 2000)
    assert np.abs(pairs - 1 / 20).max() < 5 * np.sqrt(1 / 20 / 300_000)


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=5), st.integers(1, 40), st.integers(0, 2**32)
)
@settings(deadline=None, max_examples=6)
def test_every_cell_of_every_clique_is_right_on_average(sizes, rows, seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(sizes))
    cliques = [(k, k + 1) for k in range(len(sizes) - 1)]
    model = build(domain.sizes, {c: rng.normal(0, 1, domain.shape(c)) for c in cliques})
    times = 150
    means = {c: np.zeros(domain.shape(c)) for c in cliques}
    for _ in range(times):
        codes = model.sample(rows, rng)
        for clique in cliques:
            means[clique] += count(domain, codes, clique) / times
    for clique in cliques:
        wanted = rows * model.marginal(clique)
        # A cell's variance is at most that of independent draws.
        spread = np.sqrt(rows * model.marginal(clique) / times)
        assert (np.abs(means[clique] - wanted) < 6 * spread + 12 / times).all()


def test_independent_columns_with_equal_shares_are_not_tied():
    """Both columns' codes come in the same proportions: nothing may line them up."""
    shares = np.log([0.4, 0.3, 0.2, 0.1])
    model = build((4, 4, 4), {(0,): shares, (1,): shares, (2,): shares})
    codes = model.sample(100_000, np.random.default_rng(2))
    correlations = np.corrcoef(codes.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(100_000)
    # Nor any column with the place of a row.
    for column in codes.T:
        assert abs(np.corrcoef(column, np.arange(len(codes)))[0, 1]) < 5 / np.sqrt(100_000)
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 5 / np.sqrt(100_000)


def test_thousands_of_groups_follow_their_own_shares():
    rng = np.random.default_rng(3)
    domain = Domain((4000, 2, 3))
    factors = {(0, 1): rng.normal(0, 1, (4000, 2)), (0, 2): rng.normal(0, 1, (4000, 3))}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    codes = model.sample(400_000, rng)
    for clique in factors:
        counts = count(domain, codes, clique)
        within = counts.sum(axis=1, keepdims=True) * (
            model.marginal(clique) / model.marginal((0,))[:, None]
        )
        assert np.abs(counts - within).max() < 1 + 1e-6


def test_a_separator_with_a_zero_is_never_passed():
    never = np.array([[0.0, -np.inf, 0.0], [0.0, 0.0, -np.inf]])
    model = build((2, 3, 2), {(0, 1): never, (1, 2): np.array([[0, -np.inf], [0, 0], [0, 0.0]])})
    codes = model.sample(20_000, np.random.default_rng(0))
    assert (count(model.domain, codes, (0, 1))[np.isneginf(never)] == 0).all()
    assert not ((codes[:, 1] == 0) & (codes[:, 2] == 1)).any()


def test_no_rows_and_columns_of_one_code():
    model = build((1, 3, 1), {(0, 1): np.zeros((1, 3))})
    assert model.sample(0, np.random.default_rng(0)).shape == (0, 3)
    codes = model.sample(9, np.random.default_rng(0))
    assert codes.dtype == np.int32
    assert (np.bincount(codes[:, 1]) == 3).all()
    assert not codes[:, [0, 2]].any()


def test_the_same_generator_draws_the_same_rows():
    model = build((5, 4), {(0, 1): np.arange(20.0).reshape(5, 4) / 7})
    first, again, other = (model.sample(200, np.random.default_rng(seed)) for seed in (11, 11, 12))
    assert (first == again).all()
    assert (first != other).any()
