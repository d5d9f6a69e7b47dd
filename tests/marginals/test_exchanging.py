"""Rows led out of empty cells: the model's tables as they were, and the law of what is left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.marginals import Domain, JunctionTree, Model, count, exchange


@st.composite
def chains(draw):
    """A model of a tree of pairs, rows of it, and cells of a pair that no clique holds."""
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=3, max_size=6)))
    domain, rng = Domain(sizes), np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = [(draw(st.integers(0, k - 1)), k) for k in range(1, len(sizes))]
    factors = {pair: rng.normal(0, 1, domain.shape(pair)) for pair in pairs}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    outside = [(a, b) for b in range(len(sizes)) for a in range(b) if (a, b) not in pairs]
    empty = [(pair, rng.random(domain.shape(pair)) < 0.3) for pair in outside[:3]]
    return model, model.sample(draw(st.integers(1, 200)), rng), empty, rng


@given(chains(), st.booleans())
@settings(deadline=None, max_examples=20)
def test_every_clique_keeps_its_table_and_a_fixed_column_its_rows(case, fixes):
    model, codes, empty, rng = case
    fixed = len(model.domain) - 1 if fixes else None
    before = codes.copy()
    exchange(model.tree, codes, empty, fixed, rng)
    for clique in model.tree.cliques:
        tables = [count(model.domain, one, clique) for one in (before, codes)]
        assert np.array_equal(*tables)
    if fixed is not None:
        assert np.array_equal(before[:, fixed], codes[:, fixed])
    broken = [
        sum(mask[one[:, a], one[:, b]].sum() for (a, b), mask in empty) for one in (before, codes)
    ]
    assert broken[1] <= broken[0]


def test_rows_that_keep_out_are_as_the_model_conditioned_on_it():
    """Of x - s - y with x and y never both 1, where s is, by the enumeration of all cells."""
    domain = Domain((2, 2, 2))
    rng = np.random.default_rng(0)
    # Few 1s, so that rows outside the cell have room for all that are led out of it.
    factors = {(0, 1): np.array([[0.0, 0], [-2, -1]]), (1, 2): np.array([[0.0, -1], [0, -2]])}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    codes = model.sample(20_000, rng)
    mask = np.array([[False, False], [False, True]])
    exchange(model.tree, codes, [((0, 2), mask)], None, rng)
    assert not (codes[:, 0] & codes[:, 2]).any()
    # What the tables of the cliques leave: each s has its own x and y, never together.
    x, y = (count(domain, codes, pair) for pair in ((0, 1), (1, 2)))
    expected = np.array([[0, y[s, 1], x[1, s]] for s in (0, 1)]) / len(codes)
    found = count(domain, codes, (0, 1, 2)) / len(codes)
    for s in (0, 1):
        assert found[1, s, 1] == expected[s, 0]
        assert found[0, s, 1] == pytest.approx(expected[s, 1])
        assert found[1, s, 0] == pytest.approx(expected[s, 2])


def test_a_row_without_a_partner_stays_as_it_is():
    domain = Domain((2, 2, 2))
    tree = JunctionTree.of(domain, [(0, 1), (1, 2)])
    codes = np.array([[1, 0, 1], [0, 1, 0]], np.int32)
    exchange(
        tree, codes, [((0, 2), np.array([[0, 0], [0, 1]], bool))], None, np.random.default_rng(0)
    )
    assert codes.tolist() == [[1, 0, 1], [0, 1, 0]]
