"""Rows side by side and rows of products: their norms and sums are those of rows written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.stacking import SecondMomentRows, StackedRows, triangle


def written_out(values, blocks, count):
    """Products of one record at a time: the definition."""
    width = values.shape[1]
    size = width * (width + 1) // 2
    rows = np.zeros((len(values), count * size))
    for record, (own, block) in enumerate(zip(values, blocks, strict=True)):
        place = block * size
        for i in range(width):
            for j in range(i, width):
                rows[record, place] = own[i] * own[j] * (1.0 if i == j else 2**0.5)
                place += 1
    return rows


def random_stack(seed, rows=7, width=4, count=3):
    rng = np.random.default_rng(seed)
    values, blocks = rng.normal(size=(rows, width)), rng.integers(0, count, rows)
    positions = np.stack([rng.integers(0, 5, rows), rng.integers(5, 9, rows)], axis=1)
    moments, counts = SecondMomentRows(values, blocks, count), IndicatorRows(positions, 9)
    ones = np.zeros((rows, 9))
    np.put_along_axis(ones, positions, 1.0, axis=1)
    return moments, counts, written_out(values, blocks, count), ones


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 8), st.integers(1, 5), st.integers(1, 4))
def test_products_have_the_norms_and_sums_of_rows_written_out(seed, rows, width, count):
    moments, _, plain, _ = random_stack(seed, rows, width, count)
    dense = DenseRows(plain)
    assert moments.dim == dense.dim == count * triangle(width) and len(moments) == rows
    for norm in ("l1", "l2"):
        np.testing.assert_allclose(moments.norms(norm), dense.norms(norm), rtol=1e-12)
    weights = np.random.default_rng(seed).random(rows) * (np.arange(rows) % 3 > 0)
    np.testing.assert_allclose(
        moments.weighted_sum(weights), dense.weighted_sum(weights), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_forms_side_by_side_are_one_row(norm):
    moments, counts, plain, ones = random_stack(0)
    stacked = StackedRows([counts, moments], [0.3, 1.7])
    dense = DenseRows(np.concatenate([0.3 * ones, 1.7 * plain], axis=1))
    assert stacked.dim == dense.dim and len(stacked) == len(dense)
    np.testing.assert_allclose(stacked.norms(norm), dense.norms(norm), rtol=1e-12)
    ours, theirs = clip_and_sum(stacked, 1.5, norm), clip_and_sum(dense, 1.5, norm)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_squared_norm_of_the_values_bounds_what_a_record_moves(norm):
    moments, counts, *_ = random_stack(1)
    stacked = StackedRows([counts, moments], [0.5, 2.0])
    with_all, without = np.ones(7), np.r_[0.0, np.ones(6)]
    moved = clip_and_sum(stacked, 1.0, norm)
    fewer = StackedRows(
        [
            IndicatorRows(counts.positions[1:], 9),
            SecondMomentRows(moments.values[1:], moments.blocks[1:], 3),
        ],
        [0.5, 2.0],
    )
    difference = moved - clip_and_sum(fewer, 1.0, norm)
    assert np.linalg.norm(difference, 1 if norm == "l1" else 2) <= 1.0
    assert not np.allclose(stacked.weighted_sum(with_all), stacked.weighted_sum(without))


def test_a_record_that_is_not_finite_counts_as_none():
    values = np.array([[1.0, np.inf], [np.nan, 1.0], [1.0, 2.0], [1e200, 1e200]])
    moments = SecondMomentRows(values, np.zeros(4, int), 1)
    stacked = StackedRows([IndicatorRows(np.zeros((4, 1), int), 1), moments], [1.0, 1.0])
    for norm in ("l1", "l2"):
        total = clip_and_sum(stacked, 100.0, norm)
        np.testing.assert_allclose(total, [1.0, 1.0, 2 * 2**0.5, 4.0])


def test_forms_that_do_not_fit_are_refused():
    one, two = DenseRows(np.zeros((1, 2))), DenseRows(np.zeros((2, 2)))
    for parts, weights in (
        ([], []),
        ([one, two], [1.0, 1.0]),
        ([one], [1.0, 1.0]),
        ([one], [0.0]),
        ([one], [-1.0]),
        ([one], [float("nan")]),
    ):
        with pytest.raises(PrivacyError):
            StackedRows(parts, weights)
    with pytest.raises(PrivacyError):
        SecondMomentRows(np.zeros((2, 2)), np.array([0, 3]), 3)
    with pytest.raises(PrivacyError):
        SecondMomentRows(np.zeros((2, 2)), np.array([-1, 0]), 3)
    with pytest.raises(PrivacyError):
        SecondMomentRows(np.zeros((2, 2)), np.array([0]), 3)
