"""Consistency against dense least squares, and refinement where there is signal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedsynth.encoding.grid import BRANCHING
from fedsynth.encoding.tree import gather, make_consistent, pool, refine, shared_total


def level_sizes(cells: int, depth: int) -> list[int]:
    sizes = [cells]
    for _ in range(depth - 1):
        sizes.insert(0, -(-sizes[0] // BRANCHING))
    return sizes


def noisy_column(rng, cells, depth, extras):
    levels = [rng.normal(10, 30, size) for size in level_sizes(cells, depth)]
    return levels, rng.normal(5, 20, (depth, extras))


def dense_design(columns):
    """The linear model of each column's counts, whose unknowns are its cells and extras."""
    blocks, unknowns = [], []
    for levels, extras in columns:
        cells, count = len(levels[-1]), extras.shape[1]
        rows = []
        for level in levels:
            stride = BRANCHING ** ([len(part) for part in levels][::-1].index(len(level)))
            for node in range(len(level)):
                row = np.zeros(cells + count)
                row[node * stride : min((node + 1) * stride, cells)] = 1
                rows.append(row)
            rows.extend(np.eye(cells + count)[cells:])
        blocks.append(np.array(rows))
        unknowns.append(cells + count)
    return blocks, unknowns


@pytest.mark.parametrize(
    "shapes", [[(20, 2, 0)], [(300, 3, 1)], [(35, 2, 2), (7, 1, 1), (2, 1, 0)]]
)
def test_settled_counts_solve_the_least_squares_problem_of_all_columns_together(shapes):
    rng = np.random.default_rng(len(shapes))
    columns = [noisy_column(rng, *shape) for shape in shapes]
    blocks, unknowns = dense_design(columns)
    design = np.zeros((sum(map(len, blocks)), sum(unknowns)))
    target, row, start = [], 0, 0
    starts = np.cumsum([0, *unknowns])
    for (levels, extras), block in zip(columns, blocks, strict=True):
        design[row : row + len(block), start : start + block.shape[1]] = block
        row, start = row + len(block), start + block.shape[1]
        for level, extra in zip(levels, extras, strict=True):
            target.extend([*level, *extra])
    # All columns hold the same records: weigh that so heavily that it is an equation.
    equal = np.zeros((len(columns) - 1, design.shape[1]))
    for index in range(1, len(columns)):
        equal[index - 1, starts[0] : starts[1]] = 1e6
        equal[index - 1, starts[index] : starts[index + 1]] = -1e6
    solution = np.linalg.lstsq(
        np.vstack([design, equal]), np.concatenate([target, np.zeros(len(equal))]), rcond=None
    )[0]
    gathered = [gather(levels, extras) for levels, extras in columns]
    total = shared_total(gathered)
    for index, column in enumerate(gathered):
        settled = make_consistent(column, total)
        expected = solution[starts[index] : starts[index + 1]]
        np.testing.assert_allclose(
            np.concatenate([settled.levels[-1], settled.extras]), expected, atol=1e-5
        )
        assert settled.total == pytest.approx(total)


@given(st.integers(1, 400), st.integers(0, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_settled_children_sum_to_their_parent(cells, extras, seed):
    rng = np.random.default_rng(seed)
    settled = make_consistent(gather(*noisy_column(rng, cells, 3, extras)), 77.0)
    assert settled.levels[0].sum() + settled.extras.sum() == pytest.approx(77.0)
    for coarse, fine in itertools.pairwise(settled.levels):
        sums = [fine[i : i + BRANCHING].sum() for i in range(0, len(fine), BRANCHING)]
        np.testing.assert_allclose(coarse, sums, atol=1e-8)


@given(
    arrays(np.float64, (3, 5), elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 3, elements=st.floats(0, 1e6)),
    arrays(np.float64, (3, 5), elements=st.integers(0, 9)),
    st.floats(0, 1e5),
)
@settings(deadline=None)
def test_pooled_counts_are_nonnegative_sum_to_the_parent_and_need_units(
    children, parents, units, cut
):
    pooled = pool(parents, children, np.full((3, 5), cut), units)
    assert (pooled >= 0).all()
    assert (pooled[units == 0] == 0).all()
    room = units.sum(axis=1) > 0
    np.testing.assert_allclose(pooled.sum(axis=1)[room], parents[room], rtol=1e-9, atol=1e-9)


def test_pooling_sets_a_spike_apart_and_evens_out_the_rest():
    pooled = pool(
        np.array([1060.0]),
        np.array([[1000.0, 12, 18, 9, 21]]),
        np.full((1, 5), 30.0),
        np.ones((1, 5)),
    )
    np.testing.assert_allclose(pooled, [[1000, 15, 15, 15, 15]])


def test_pooling_sees_a_hole():
    pooled = pool(
        np.array([400.0]),
        np.array([[98.0, 102, 0, 99, 101]]),
        np.full((1, 5), 30.0),
        np.ones((1, 5)),
    )
    np.testing.assert_allclose(pooled, [[100, 100, 0, 100, 100]])


@given(st.integers(1, 400), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_refining_without_noise_returns_the_exact_counts(cells, seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(3, cells) * rng.integers(0, 2, cells) + 0.0
    levels = [counts]
    for _ in range(2):
        finer = levels[0]
        levels.insert(0, np.add.reduceat(finer, np.arange(0, len(finer), BRANCHING)))
    tree = make_consistent(gather(levels, np.zeros((3, 0))), counts.sum())
    refined = refine(tree, float(counts.sum()), np.ones(cells), 0.0)
    np.testing.assert_allclose(refined, counts, atol=1e-6)


def test_refining_pure_noise_around_an_even_density_makes_no_detail():
    rng = np.random.default_rng(0)
    truth = [np.full(16, 16_000.0), np.full(256, 1000.0), np.full(4096, 62.5)]
    levels = [level + rng.normal(0, 20, len(level)) for level in truth]
    tree = make_consistent(gather(levels, np.zeros((3, 0))), 256_000.0)
    refined = refine(tree, 256_000.0, np.ones(4096), 20.0)
    assert len(np.unique(np.round(refined, 6))) < 400
    assert np.abs(refined - 62.5).mean() < np.abs(tree.levels[-1] - 62.5).mean() / 4
