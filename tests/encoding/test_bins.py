"""Cutting a column into bins, and drawing values within them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.cutting import POINTS, Atoms, cell_units, cut
from fedsynth.encoding.grid import Grid
from fedsynth.errors import ReleaseError

NONE = np.zeros(0, np.int64)


def atoms_of(grid, counts, spikes=NONE, spike_counts=(), alone=None):
    edges = grid.starts
    alone = np.ones(len(spikes), bool) if alone is None else alone
    return Atoms.of(
        grid, edges, np.asarray(counts, float), spikes, np.asarray(spike_counts, float), alone
    )


@st.composite
def histograms(draw):
    cells = draw(st.integers(1, 60))
    counts = draw(
        st.lists(st.sampled_from((0.0, 1.0, 7.5, 300.0, 1e6)), min_size=cells, max_size=cells)
    )
    return Grid(0, cells - 1), counts


@given(histograms(), st.integers(1, 40), st.sampled_from((0.0, 1e-300, 0.5, 50.0, 1e9)))
@settings(deadline=None)
def test_cutting_covers_every_value_and_loses_no_record(histogram, bins, sigma):
    grid, counts = histogram
    column_bins, records = cut(atoms_of(grid, counts), bins, sigma)
    codes = column_bins.encode(np.arange(grid.units, dtype=float))
    assert set(codes.tolist()) == set(range(column_bins.size))
    assert len(records) == column_bins.size <= 3 * bins + 1
    assert records.sum() == pytest.approx(sum(counts))


@given(histograms(), st.integers(1, 40), st.sampled_from((0.0, 0.5, 50.0)), st.integers(0, 99))
@settings(deadline=None)
def test_drawn_values_lie_in_their_bin(histogram, bins, sigma, seed):
    grid, counts = histogram
    column_bins, _ = cut(atoms_of(grid, counts), bins, sigma)
    codes = np.repeat(np.arange(column_bins.size), 20)
    drawn = column_bins.decode(codes, np.random.default_rng(seed))
    assert (column_bins.encode(drawn) == codes).all()


@st.composite
def pieces(draw):
    """Bins of the values -0.5, -0.4 .. 1.4 with gaps, and the values that each can draw."""
    grid = Grid(-0.5, 1.4, decimals=1)
    starts = sorted({0, *draw(st.lists(st.integers(1, grid.units - 1), max_size=8))})
    codes = draw(st.lists(st.integers(0, 2), min_size=len(starts), max_size=len(starts)))
    codes = np.unique(codes, return_inverse=True)[1]
    live = draw(st.lists(st.booleans(), min_size=len(starts), max_size=len(starts)))
    # Every bin needs a piece that can be drawn.
    first = np.unique(codes, return_index=True)[1]
    live = np.array(live) | np.isin(np.arange(len(starts)), first)
    bins = Bins(grid, np.array(starts), codes, live.astype(float))
    tenths = range(-5, 15)
    place = np.searchsorted(starts, np.arange(grid.units), side="right") - 1
    values = [
        [t / 10 for t, k in zip(tenths, place, strict=True) if live[k] and codes[k] == code]
        for code in range(bins.size)
    ]
    return bins, values


@given(pieces(), st.lists(st.floats(-1, 2) | st.integers(-9, 19).map(lambda t: t / 10), min_size=1))
@settings(deadline=None)
def test_the_next_value_of_a_bin_in_either_direction_is_the_nearest_that_can_be_drawn(made, spots):
    bins, values = made
    for code in range(bins.size):
        codes = np.full(len(spots), code)
        above = bins.round_up(np.array(spots), codes).tolist()
        below = bins.round_down(np.array(spots), codes).tolist()
        for spot, high, low in zip(spots, above, below, strict=True):
            assert high == min((v for v in values[code] if v >= spot), default=np.inf)
            assert low == max((v for v in values[code] if v <= spot), default=-np.inf)


def test_without_noise_the_exact_density_comes_back():
    rng = np.random.default_rng(3)
    counts = rng.poisson(40, 50) * rng.integers(0, 2, 50)
    bins, records = cut(atoms_of(Grid(0, 49), counts), 12, 0.0)
    weights = np.repeat(bins.weights / bins.lengths, bins.lengths)
    for code in range(bins.size):
        own = bins.codes[np.searchsorted(bins.starts, np.arange(50), side="right") - 1] == code
        assert records[code] == pytest.approx(counts[own].sum())
        np.testing.assert_allclose(weights[own] / weights[own].sum() * records[code], counts[own])


def test_draws_follow_the_density_within_five_standard_errors():
    grid = Grid(0, 9)
    bins = Bins(grid, np.array([0, 1, 5]), np.array([0, 0, 0]), np.array([6.0, 1, 3]))
    drawn = bins.decode(np.zeros(100_000, np.int64), np.random.default_rng(0))
    expected = np.repeat([0.6, 0.025, 0.06], [1, 4, 5])
    share = np.bincount(drawn.astype(int), minlength=10) / 100_000
    assert (np.abs(share - expected) < 5 * np.sqrt(expected / 100_000)).all()


def test_heavy_values_stand_alone_and_the_rest_is_cut_at_its_quantiles():
    counts = np.full(99, 10.0)
    counts[39] = 1000
    bins, records = cut(atoms_of(Grid(1, 99), counts), 8, 1.0)
    code = bins.encode(np.array([40.0]))[0]
    assert bins.labels()[code] == "40"
    assert records[code] == 1000
    assert records[np.arange(bins.size) != code] == pytest.approx(980 / 7, rel=0.1)


def test_what_noise_could_have_made_joins_the_only_value():
    counts = np.full(74, 1.0)
    counts[20] = 5000
    bins, records = cut(atoms_of(Grid(17, 90), counts), 24, 50.0)
    assert (bins.size, records.tolist()) == (1, [5073])
    drawn = bins.decode(np.zeros(1000, np.int64), np.random.default_rng(0))
    assert set(drawn) == {37}


def test_declared_spikes_have_bins_of_their_own_even_when_empty():
    spikes = np.array([0, 3])
    bins, records = cut(atoms_of(Grid(0, 9), np.full(10, 10.0), spikes, [0, 0]), 4, 0.0)
    singles = bins.encode(np.array([0.0, 3.0]))
    assert records[singles].tolist() == [0, 0]
    drawn = bins.decode(np.repeat(singles, 50), np.random.default_rng(0))
    assert drawn.tolist() == [0.0] * 50 + [3.0] * 50


def test_single_values_within_a_wide_cell_are_told_apart():
    grid = Grid(0, 2**20 - 1, origin=False)
    counts = np.zeros(grid.cells)
    counts[0] = 700
    spikes = np.array([0, grid.units - 1])
    atoms = atoms_of(grid, counts, spikes, [9000, 300], np.zeros(2, bool))
    assert cell_units(grid, np.arange(grid.cells) * 8, spikes)[[0, 1, -1]].tolist() == [7, 8, 7]
    assert atoms.masses.sum() == pytest.approx(10_000)
    bins, records = cut(atoms, 10, 1.0)
    zero = bins.encode(np.array([0.0]))[0]
    assert records[zero] == 9000
    assert bins.labels()[zero] == "0"


def test_a_column_that_is_mostly_one_value_takes_few_others_under_noise():
    counts = np.full(100_000, 0.02)
    counts[0] = 50_000
    atoms = atoms_of(Grid(0, 99_999), counts)
    bins, records = cut(atoms, 24, 30.0)
    drawn = bins.decode(
        np.random.default_rng(0).choice(bins.size, 50_000, p=records / records.sum()),
        np.random.default_rng(1),
    )
    assert len(np.unique(drawn)) <= POINTS + 1
    middle = np.median(drawn[drawn > 0])
    assert 45_000 < middle < 55_000


@pytest.mark.parametrize(
    "damage",
    [
        {"starts": [0]},
        {"starts": [1, 5, 7]},
        {"starts": [0, 5, 5]},
        {"starts": [0, 5, 10]},
        {"codes": [0, 2, 2]},
        {"codes": [0, -1, 1]},
        {"codes": [0, 10**12, 1]},
        {"weights": [1.0, float("nan"), 1.0]},
        {"weights": [1.0, -1.0, 1.0]},
        {"weights": [0.0, 1.0, 1.0]},
        {"weights": "many"},
        {"starts": None},
    ],
)
def test_damaged_documents_are_refused(damage):
    document = {"starts": [0, 5, 7], "codes": [0, 1, 1], "weights": [1.0, 0.5, 1 / 3]}
    good = Bins.from_dict(json.loads(json.dumps(document)), Grid(0, 9))
    assert good.to_dict() == document
    with pytest.raises(ReleaseError, match="bins"):
        Bins.from_dict({**document, **damage}, Grid(0, 9))
