"""Units, cells and levels of a numeric column."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.encoding.grid import BRANCHING, MAX_CELLS, MAX_TOP, Grid

grids = st.builds(
    lambda first, span, decimals, step: Grid(
        first / 10.0**decimals,
        (first + span // step * step) / 10.0**decimals,
        decimals,
        step=step,
    ),
    st.integers(-(10**9), 10**9),
    st.integers(0, 10**9),
    st.integers(0, 6),
    st.sampled_from((1, 1, 7, 500)),
)


@given(grids, st.data())
def test_every_unit_has_a_value_of_the_declared_decimals_and_reads_back(grid, data):
    offsets = np.array(data.draw(st.lists(st.integers(0, grid.units - 1), min_size=1)))
    values = grid.values(offsets)
    assert (values >= grid.lower).all() and (values <= grid.upper).all()
    assert values.tolist() == [round(value, grid.decimals) for value in values.tolist()]
    assert (grid.offsets(values) == offsets).all()
    places = [round(value * 10**grid.decimals) - grid.first for value in values.tolist()]
    assert places == (offsets * grid.step).tolist()


@given(grids)
def test_levels_end_with_the_cells_and_each_node_has_at_most_sixteen_children(grid):
    levels = grid.levels
    assert levels[-1] == grid.cells <= MAX_CELLS
    assert levels[0] <= MAX_TOP
    for coarse, fine in itertools.pairwise(levels):
        assert coarse == -(-fine // BRANCHING)


@given(grids)
def test_cells_are_single_units_where_there_is_room_for_them(grid):
    starts = grid.starts
    assert starts[0] == 0 and (np.diff(starts) > 0).all() and starts[-1] < grid.units
    if grid.units <= MAX_CELLS:
        assert len(starts) == grid.units


@given(grids)
def test_no_cell_is_wide_and_near_0_none_is_more_than_a_small_part_of_its_numbers(grid):
    lengths = np.diff(grid.starts, append=grid.units)
    assert lengths.max() <= 2 * -(-grid.units // MAX_CELLS)
    first = grid.starts * grid.step + grid.first
    last = first + (lengths - 1) * grid.step
    nearest = np.minimum(np.abs(first), np.abs(last))
    assert (lengths * grid.step <= np.maximum(2 * grid.step - 1, nearest / 500)).all()


def test_cells_of_moments_have_one_width():
    grid = Grid(0, 3_155_760_000, origin=False)
    assert (np.diff(grid.starts) == 24_077).all() and grid.cells <= MAX_CELLS


@pytest.mark.parametrize(
    ("grid", "units", "levels"),
    [
        (Grid(17, 90), 74, (5, 74)),
        (Grid(1, 16), 16, (16,)),
        (Grid(0, 99_999), 100_000, (25, 391, 6250, 100_000)),
        (Grid(0, 1_500_000, origin=False), 1_500_001, (31, 489, 7813, 125_001)),
        (Grid(5, 5), 1, (1,)),
        (Grid(-0.3, 0.3, 1), 7, (7,)),
    ],
)
def test_known_columns(grid, units, levels):
    assert (grid.units, grid.levels) == (units, levels)


def test_cells_by_hand(monkeypatch):
    monkeypatch.setattr("fedsynth.encoding.grid.MAX_CELLS", 16)
    # Widths of 4, and doubling sizes from 0.
    assert Grid(0, 31).starts.tolist() == [0, 1, 2, 4, 8, 12, 16, 20, 24, 28]
    # Widths of 3, and from 0 both ways: below it cells end at -1, -2, -4 and -8.
    found = Grid(-9, 9).starts - 9
    assert found.tolist() == [-9, -7, -6, -3, -1, 0, 1, 2, 3, 4, 6, 8, 9]


def test_a_range_of_1e12_keeps_its_bounds_and_few_cells():
    grid = Grid(-5e11, 5e11, 3)
    assert grid.cells <= MAX_CELLS
    ends = grid.values(np.array([0, grid.units - 1]))
    assert ends.tolist() == [-5e11, 5e11]


def test_values_outside_the_bounds_count_as_the_bound():
    grid = Grid(0.0, 9.9, 1)
    assert grid.offsets(np.array([-1e300, -0.06, 4.26, 1e300])).tolist() == [0, 0, 43, 99]


@pytest.mark.parametrize(
    ("edge", "unit"), [(-5.0, 0), (0.0, 0), (0.25, 3), (0.3, 3), (9.9, 99), (50.0, 100)]
)
def test_ceiling_is_the_first_unit_not_below(edge, unit):
    assert Grid(0.0, 9.9, 1).ceiling(edge) == unit
