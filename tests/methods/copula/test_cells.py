"""Public cells: every value has one, in order, whatever the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.methods.copula.cells import TableCells, column_cells
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema


@st.composite
def integers(draw):
    lower = draw(st.integers(-(10**9), 10**9))
    upper = lower + draw(st.integers(1, 10**9))
    spikes = draw(st.lists(st.integers(lower, upper), max_size=3, unique=True))
    return Integer(name="x", lower=lower, upper=upper, spikes=spikes, missing=draw(st.booleans()))


@settings(max_examples=25, deadline=None)
@given(integers(), st.integers(0, 2**31))
def test_cells_part_the_units_in_order(column, seed):
    cells = column_cells(column)
    assert cells.starts[0] == 0 and (cells.lengths > 0).all()
    assert cells.lengths.sum() == cells.grid.units
    # Each value, or 32 equal widths, 4 steps an octave one way, 2 the shorter way, bounds and 0.
    assert cells.size <= max(130, 48 + 6 * np.log2(cells.grid.units))
    rng = np.random.default_rng(seed)
    values = rng.integers(column.lower, column.upper + 1, 50).astype(float)
    codes = cells.codes(values)
    assert codes.min() >= column.missing and codes.max() < cells.size
    order = np.argsort(values)
    assert (np.diff(codes[order]) >= 0).all()
    back = cells.values(codes, rng.random(50))
    np.testing.assert_array_equal(cells.codes(back), codes)
    ends = [cells.codes(cells.values(codes, np.full(50, share))) for share in (0.0, 1 - 1e-12)]
    assert (ends[0] == codes).all() and (ends[1] == codes).all()


@settings(max_examples=25, deadline=None)
@given(integers())
def test_spikes_bounds_and_zero_have_cells_of_their_own(column):
    cells = column_cells(column)
    alone = [*column.spikes, column.lower, column.upper]
    if column.lower <= 0 <= column.upper:
        alone.append(0)
    codes = cells.codes(np.array(alone, float)) - column.missing
    assert (cells.lengths[codes] == 1).all()


def test_a_ladder_resolves_small_amounts_and_equal_widths():
    cells = column_cells(Integer(name="x", lower=0, upper=100_000))
    starts = cells.starts
    # Below 1,000, where amounts pile up, no cell is wider than a fifth of where it begins.
    low = (starts >= 10) & (starts < 1000)
    assert (cells.lengths[low] <= 0.2 * starts[low] + 1).all()
    assert cells.lengths.max() <= 100_001 / 32 + 1
    assert 60 <= cells.size <= 110


def test_a_ladder_reaches_single_values_however_wide_the_bounds():
    for column in (
        Continuous(name="x", lower=0, upper=1e9, decimals=2),
        Continuous(name="x", lower=-1e9, upper=5e8, decimals=2),
    ):
        cells = column_cells(column)
        # No cell from a cent on is wider than half of where it begins, at two steps an octave.
        first = np.abs(cells.grid.values(cells.starts))
        last = np.abs(cells.grid.values(cells.starts + cells.lengths - 1))
        near = np.minimum(first, last)
        assert (cells.lengths <= 0.5 * 100 * near + 2).all()
        assert cells.size <= 300


def test_a_ladder_runs_both_ways_from_zero():
    cells = column_cells(Continuous(name="x", lower=-100, upper=1000, decimals=2))
    for value in (-1.0, 1.0):
        code = cells.codes(np.array([value]))
        assert cells.lengths[code][0] <= 50
    assert cells.size <= 120


def test_few_values_have_a_cell_each_and_edges_are_kept():
    single = column_cells(Integer(name="x", lower=17, upper=90))
    assert single.size == 74 and (single.lengths == 1).all()
    edged = column_cells(Integer(name="x", lower=0, upper=1000, edges=[0, 10, 500, 1000]))
    np.testing.assert_array_equal(edged.starts, [0, 10, 500])
    np.testing.assert_array_equal(
        edged.codes(np.array([0.0, 9, 10, 499, 500, 1000])), [0] * 2 + [1] * 2 + [2] * 2
    )


def test_missing_has_the_first_code():
    number = column_cells(Integer(name="x", lower=0, upper=9, missing=True))
    np.testing.assert_array_equal(number.codes(np.array([np.nan, 0.0, 9.0])), [0, 1, 10])
    back = number.values(np.array([0, 1, 10]), np.zeros(3))
    np.testing.assert_array_equal(back, [np.nan, 0.0, 9.0])
    word = column_cells(Categorical(name="x", values=["a", "b"], missing=True))
    np.testing.assert_array_equal(word.codes(np.array([-1, 0, 1])), [0, 1, 2])
    np.testing.assert_array_equal(word.values(np.array([0, 1, 2]), np.zeros(3)), [-1, 0, 1])


@pytest.mark.parametrize(
    "column",
    [
        Integer(name="x", lower=0, upper=10**6, missing=True),
        Categorical(name="x", values=list("abcde")),
        Boolean(name="x"),
        Datetime(name="x", lower="2000-01-01", upper="2030-01-01"),
        Categorical(name="x", values=["a"]),
        Integer(name="x", lower=3, upper=4),
    ],
)
@pytest.mark.parametrize("hot", [False, True])
def test_scores_are_bounded_and_tell_cells_apart(column, hot):
    cells = column_cells(column, hot)
    scores = cells.scores
    assert scores.shape[0] == cells.size == len(cells.measure)
    assert (np.linalg.norm(scores, axis=1) <= 1).all()
    assert len(np.unique(scores, axis=0)) == cells.size
    assert cells.measure.sum() == pytest.approx(1) and (cells.measure > 0).all()
    if scores.shape[1] == 1:
        assert (np.diff(scores[:, 0]) > 0).all()


def test_the_target_makes_the_classes():
    schema = Schema(
        columns=[
            Integer(name="x", lower=0, upper=9),
            Categorical(name="y", values=["a", "b", "c"]),
        ],
        target="y",
    )
    cells = TableCells.of(schema)
    assert (cells.target, cells.classes, [c.name for c in cells.columns]) == ("y", 3, ["x"])
    columns = {"x": np.array([1.0, 5.0]), "y": np.array([2, 0])}
    np.testing.assert_array_equal(cells.labels(columns), [2, 0])
    numeric = TableCells.of(schema.model_copy(update={"target": "x"}))
    assert (numeric.target, numeric.classes, len(numeric.columns)) == (None, 1, 2)
    alone = TableCells.of(Schema(columns=[Categorical(name="y", values=["a", "b"])], target="y"))
    assert (alone.target, alone.classes, len(alone.columns)) == (None, 1, 1)
