"""Exchanging a group's row for any other moves the clipped sum by at most the clip."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.rows.exchanging import clip_exchanged, exchange, nonnegative, row_bound

NORMS = st.sampled_from(["l2", "l1"])
CLIPS = st.floats(1e-6, 1e6)
HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e160, 1e-300, -1.0, 0.0, 1.0, 5e-324]
VALUES = st.one_of(st.sampled_from(HOSTILE), st.floats(-10, 1e3))


def rows(count: int, dim: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, (count, dim), elements=VALUES)


def size(vector: np.ndarray, norm: Norm) -> float:
    """The norm, scaled first so that nothing overflows."""
    top = float(np.abs(vector).max(initial=0))
    return 0.0 if top == 0 else top * float(np.linalg.norm(vector / top, 2 if norm == "l2" else 1))


@given(st.data(), st.integers(1, 5), st.integers(1, 6), CLIPS, NORMS)
def test_exchanging_a_row_moves_the_sum_by_at_most_the_clip(data, count, dim, clip, norm):
    one = data.draw(rows(count, dim))
    other = one.copy()
    other[data.draw(st.integers(0, count - 1))] = data.draw(rows(1, dim))[0]
    moved = clip_exchanged(one, clip, norm) - clip_exchanged(other, clip, norm)
    assert np.isfinite(moved).all()
    assert size(moved, norm) <= clip


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_bound_is_reached_and_so_no_clip_is_wasted(norm):
    a, b = np.array([[5.0, 0.0]]), np.array([[0.0, 7.0]])
    moved = clip_exchanged(a, 3.0, norm) - clip_exchanged(b, 3.0, norm)
    assert size(moved, norm) == pytest.approx(3.0, rel=1e-5)
    assert size(moved, norm) <= 3.0


def test_with_negative_entries_the_bound_would_break():
    # Why negative entries count as 0: opposite rows in the same ball lie its diameter apart.
    a = np.array([1.0, 1.0]) * row_bound(1.0) / math.sqrt(2)
    assert np.linalg.norm(a - -a) > 1.0
    moved = clip_exchanged(a[None], 1.0) - clip_exchanged(-a[None], 1.0)
    assert np.linalg.norm(moved) <= 1.0


@pytest.mark.parametrize(("norm", "length"), [("l2", math.sqrt(4)), ("l1", 4.0)])
def test_honest_votes_pass_unchanged(norm, length):
    # One vote on each of four questions: one-hot, so of norm sqrt(4), or 4 in L1.
    votes = np.eye(3)[[0, 2, 2, 1]].reshape(1, -1)
    clip = length * exchange(norm) * (1 + 1e-5)
    assert np.array_equal(clip_exchanged(votes, clip, norm), votes[0])


def test_negative_entries_and_rows_that_are_not_finite_count_as_zeros():
    given_rows = np.array([[1.0, -2.0], [np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0]])
    assert nonnegative(given_rows).values.tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]


def test_no_rows_sum_to_zeros():
    assert clip_exchanged(np.zeros((0, 3)), 1.0).tolist() == [0, 0, 0]
