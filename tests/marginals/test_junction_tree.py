"""Trees: what makes one, and what it costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.marginals import Domain, JunctionTree, grown_cells, growth, model_cells


@st.composite
def graphs(draw, most=9):
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=most))
    sets = st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)
    cliques = draw(st.lists(sets, max_size=12))
    return Domain(tuple(sizes)), [tuple(sorted(clique)) for clique in cliques]


@given(graphs())
def test_every_clique_has_a_home_and_shared_columns_run_along_the_path(graph):
    domain, cliques = graph
    tree = JunctionTree.of(domain, cliques)
    for clique in cliques:
        home = tree.home(clique)
        assert home is not None
        assert set(clique) <= set(tree.cliques[home])
        assert all(
            domain.cells(tree.cliques[home]) <= domain.cells(other)
            for other in tree.cliques
            if set(clique) <= set(other)
        )
    assert not any(set(a) < set(b) for a, b in itertools.permutations(tree.cliques, 2))
    assert len(set(tree.cliques)) == len(tree.cliques) == len(tree.edges) + 1
    # A column's cliques are connected: one less edge between them than cliques.
    for column in range(len(domain)):
        held = sum(column in clique for clique in tree.cliques)
        shared = sum(column in separator for separator in tree.separators)
        assert held == shared + 1


@given(graphs())
def test_parents_stand_before_their_children(graph):
    tree = JunctionTree.of(*graph)
    placed = {0}
    for parent, child in tree.edges:
        assert parent in placed
        assert child not in placed
        placed.add(child)


@given(graphs(), st.randoms(use_true_random=False))
def test_a_tree_depends_on_the_set_of_cliques_alone(graph, random):
    domain, cliques = graph
    tree = JunctionTree.of(domain, cliques)
    random.shuffle(cliques)
    assert JunctionTree.of(domain, [*cliques, *cliques]) == tree


@given(graphs())
def test_a_tree_of_a_trees_cliques_is_no_larger(graph):
    domain, cliques = graph
    tree = JunctionTree.of(domain, cliques)
    again = JunctionTree.of(domain, tree.cliques)
    assert again.cliques == tree.cliques
    assert model_cells(domain, [*tree.cliques, *cliques]) == model_cells(domain, tree.cliques)


@pytest.mark.parametrize("seed", range(8))
def test_greedy_trees_are_near_the_best_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(int(size) for size in rng.integers(2, 12, 6)))
    pairs = list(itertools.combinations(range(6), 2))
    cliques = [pairs[k] for k in rng.permutation(len(pairs))[:8]]
    best = min(_count_cells(domain, cliques, order) for order in _orders(6))
    assert best <= JunctionTree.of(domain, cliques).cells <= 2 * best


def _orders(columns):
    return itertools.permutations(range(columns))


def _count_cells(domain, cliques, order):
    edges = {frozenset(pair) for c in cliques for pair in itertools.combinations(c, 2)}
    eliminated = []
    left = set(order)
    for column in order:
        near = {k for k in left if frozenset((k, column)) in edges}
        edges |= {frozenset(pair) for pair in itertools.combinations(near, 2)}
        eliminated.append(near | {column})
        left.remove(column)
    return sum(domain.cells(sorted(c)) for c in eliminated if not any(c < d for d in eliminated))


def test_a_cycle_takes_one_chord():
    domain = Domain((2, 3, 5, 7))
    tree = JunctionTree.of(domain, [(0, 1), (1, 2), (2, 3), (0, 3)])
    # Chord 0-2: 2*3*5 + 2*5*7 = 100. Chord 1-3: 2*3*7 + 3*5*7 = 147.
    assert tree.cliques == ((0, 1, 2), (0, 2, 3))
    assert tree.cells == 100


@given(graphs())
def test_model_cells_are_those_of_the_tree_and_what_lies_within_it(graph):
    domain, cliques = graph
    cells, tree = model_cells(domain, cliques), JunctionTree.of(domain, cliques)
    assert tree.cells <= cells <= tree.cells + len(domain) * max(map(domain.cells, tree.cliques))
    assert model_cells(domain, cliques, cells) == cells
    assert model_cells(domain, cliques, cells - 1) == math.inf


def test_many_columns_make_one_tree_quickly():
    domain = Domain((10,) * 178)
    cliques = [(k, k + 1) for k in range(177)] + [(0, k) for k in range(2, 178)]
    tree = JunctionTree.of(domain, cliques)
    assert tree.cells == 176 * 1000
    assert max(map(len, tree.cliques)) == 3


def test_what_is_no_tree_is_refused():
    domain = Domain((2, 2, 2))
    for cliques, edges in [
        ((), ()),
        (((0, 1),), ()),
        (((0, 1), (1, 2)), ()),
        (((0, 1), (1, 2)), ((1, 0),)),
        (((0, 1), (1, 2)), ((0, 2),)),
        (((0, 1), (1, 2), (0, 2)), ((0, 1), (1, 2))),
    ]:
        with pytest.raises(ConfigError, match="no junction tree"):
            JunctionTree(domain, cliques, edges)
    for clique in [(1, 0), (0, 3), ()]:
        with pytest.raises(ConfigError, match="columns"):
            JunctionTree.of(domain, [clique])


@given(graphs(), st.data())
def test_growth_by_many_cliques_is_that_by_each_alone(graph, data):
    domain, cliques = graph
    sets = st.sets(st.integers(0, len(domain) - 1), min_size=1, max_size=4)
    candidates = [tuple(sorted(s)) for s in data.draw(st.lists(sets, max_size=6))]
    limit = data.draw(st.sampled_from([math.inf, 50.0, 500.0]))
    wanted = [model_cells(domain, [*cliques, candidate], limit) for candidate in candidates]
    assert grown_cells(domain, cliques, candidates, limit).tolist() == wanted


def test_growth_of_more_columns_than_a_word_has_bits(monkeypatch):
    rng = np.random.default_rng(0)
    domain = Domain(tuple(int(size) for size in rng.integers(2, 20, 150)))
    pairs = [tuple(sorted(rng.choice(150, 2, replace=False).tolist())) for _ in range(210)]
    cliques, candidates = pairs[:160], pairs[160:]
    wanted = [model_cells(domain, [*cliques, candidate], 1e9) for candidate in candidates]
    assert len(set(wanted)) > 10
    monkeypatch.setattr(growth, "_AT_ONCE", 7 * 150**2)
    assert grown_cells(domain, cliques, candidates, 1e9).tolist() == wanted
