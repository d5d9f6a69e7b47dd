"""Finer codes of columns: each lies in one coarse code, and corrects what a histogram showed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.refining import Refinement
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Categorical, Integer, Schema

SCHEMA = Schema(
    columns=[
        Integer(name="n", lower=0, upper=999, missing=True),
        Categorical(name="c", values=list("abcdef"), missing=True),
    ]
)


def encodings(coarse=4, fine=24):
    """Of a noiseless histogram, with categories b to f joined, as if sigma were 20."""
    layout = HistogramLayout.of(SCHEMA)
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(500) < 0.1, np.nan, rng.integers(0, 1000, 500).astype(float))
    codes = np.where(rng.random(500) < 0.1, -1, rng.choice(6, 500, p=[0.9, *[0.02] * 5]))
    conformed = {"n": numbers, "c": codes}
    counts = np.zeros(layout.dim)
    for column in layout.columns:
        start = layout.slices[column.name].start
        np.add.at(counts, start + column.positions(conformed[column.name]).ravel(), 1.0)
    wide, narrow = (
        TableEncoding.from_histogram(SCHEMA, counts, 6.0, bins) for bins in (coarse, fine)
    )
    return wide, narrow


def test_every_fine_code_lies_in_its_coarse_one():
    wide, narrow = encodings()
    refined = Refinement.of(wide, narrow)
    values = np.arange(1000.0)
    fine, coarse = refined.finer.bins[0].encode(values), wide.bins[0].encode(values)
    assert refined.finer.bins[0].size >= narrow.bins[0].size > wide.bins[0].size
    np.testing.assert_array_equal(refined.parents[0][fine], coarse)
    # A missing cell stays one.
    assert refined.parents[0][-1] == wide.sizes[0] - 1
    np.testing.assert_array_equal(refined.parents[1], [*wide.bins[1].codes, wide.sizes[1] - 1])
    assert refined.finer.bins[1] is None and refined.finer.sizes[1] == 7


def test_shares_of_fine_codes_sum_to_those_of_the_coarse():
    wide, narrow = encodings()
    refined = Refinement.of(wide, narrow)
    for k in refined.columns:
        sums = np.bincount(refined.parents[k], refined.finer.frequencies[k])
        np.testing.assert_allclose(sums, wide.frequencies[k])


def test_nothing_is_finer_where_bins_are_as_many():
    _, narrow = encodings()
    assert Refinement.of(narrow, narrow).columns == [1]


def test_exact_counts_replace_what_the_histogram_showed():
    wide, narrow = encodings()
    refined = Refinement.of(wide, narrow)
    rng = np.random.default_rng(1)
    for k in refined.columns:
        size = refined.finer.sizes[k]
        counts = rng.integers(1, 50, size).astype(float)
        found = refined.spread(wide, k, counts, np.zeros(size), 6.0)
        assert (found.codes.max(), len(np.unique(found.codes))) == (
            wide.bins[k].codes.max(),
            wide.bins[k].size,
        )
        if k == 1:
            np.testing.assert_allclose(found.weights, counts[:-1])
        else:
            fine = refined.finer.bins[0]
            masses = np.bincount(fine.encode(found.grid.values(found.starts)), found.weights)
            np.testing.assert_allclose(masses, counts[:-1])


def test_counts_that_tell_nothing_change_nothing():
    """Of bins: as far from the histogram as their noise alone would be. Of categories: by inverse
    variance, so that those as noisy as the histogram's meet it halfway."""
    wide, narrow = encodings()
    refined = Refinement.of(wide, narrow)
    known = refined.finer.frequencies[0] * refined.finer.records
    signs = np.where(np.arange(len(known)) % 2, 1.0, -1.0)
    bins = refined.spread(wide, 0, known + 5 * signs, np.full(len(known), 5.0), 6.0)
    values = np.arange(1000.0)
    np.testing.assert_array_equal(bins.encode(values), wide.bins[0].encode(values))
    before = wide.bins[0].cut_at(bins.starts).weights
    np.testing.assert_allclose(bins.weights / bins.weights.sum(), before / before.sum(), atol=1e-9)
    known = refined.finer.frequencies[1] * refined.finer.records
    groups = refined.spread(wide, 1, known + 8.0, np.full(7, 6.0), 6.0)
    np.testing.assert_allclose(groups.weights, known[:-1] + 4.0)


def test_a_document_is_read_back_to_the_bit():
    wide, narrow = encodings()
    refined = Refinement.of(wide, narrow)
    again = Refinement.from_dict(json.loads(json.dumps(refined.to_dict())))
    assert again.columns == refined.columns
    for one, other in zip(again.parents, refined.parents, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(again.finer.frequencies, refined.finer.frequencies, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sigma", [0.0, 1e-9])
def test_a_column_without_anybody_is_still_drawn(sigma):
    wide, narrow = encodings()
    refined = Refinement.of(wide, narrow)
    for k in refined.columns:
        none = np.zeros(refined.finer.sizes[k])
        found = refined.spread(wide, k, none, none + sigma, 1.0)
        assert (np.bincount(found.codes, found.weights) > 0).all()
