"""A person's rows are added up, and what is clipped is the norm of their sum, in every form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import clip_and_sum, clip_blocks
from fedsynth.privacy.rows.counting import IndicatorRows, MarginalRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.rows.joining import JoinedRows
from fedsynth.privacy.rows.stacking import SecondMomentRows, StackedRows


def forms(rng: np.random.Generator, rows: int):
    """Rows of every form, small enough for persons to agree in some."""
    codes = rng.integers(0, [2, 3, 4], (rows, 3))
    places = np.stack([rng.integers(0, 3, rows), rng.integers(3, 5, rows)], axis=1)
    layers = [
        (rng.normal(size=(rows, a)).astype(np.float32), rng.normal(size=(rows, b)))
        for a, b in ((1, 2), (4, 5))
    ]
    moments = SecondMomentRows(rng.normal(size=(rows, 3)), rng.integers(0, 2, rows), 2)
    counts = IndicatorRows(places, 5)
    tables = [(0,), (0, 1), (2, 1)]
    return {
        "dense": DenseRows(rng.normal(size=(rows, 6)).astype(np.float32)),
        "indicator": counts,
        "marginal": MarginalRows(codes, (2, 3, 4), tables, [0.5, 1.0, 0.3]),
        "factored": FactoredRows(layers, [3, 7], 30),
        "moments": moments,
        "stacked": StackedRows([counts, moments], [0.4, 1.3]),
    }


FORMS = [*forms(np.random.default_rng(0), 1)]


def write_out(rows) -> np.ndarray:
    """[records, dim], by the sum of each row alone, which `joined_squares` does not use."""
    return np.array([rows.weighted_sum(one) for one in np.eye(len(rows))])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**31), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_the_norm_of_a_persons_sum_is_that_of_its_rows_written_out_and_added(form, seed, sizes):
    rng = np.random.default_rng(seed)
    rows = forms(rng, sum(sizes))[form]
    starts = np.cumsum([0, *sizes[:-1]])
    weights = rng.random(sum(sizes))
    sums = np.add.reduceat(write_out(rows) * weights[:, None], starts)
    joined = JoinedRows(rows, starts, weights)
    assert len(joined) == len(sizes) and joined.dim == rows.dim
    norms = np.linalg.norm(sums, axis=1)
    np.testing.assert_allclose(joined.norms("l2"), norms, rtol=1e-5, atol=1e-5)
    # Never less than it, and in L1 no less either.
    assert (joined.norms("l2") >= norms * (1 - 1e-12)).all()
    assert (joined.norms("l1") >= np.abs(sums).sum(axis=1) * (1 - 1e-6)).all()
    each = rng.random(len(sizes))
    np.testing.assert_allclose(joined.weighted_sum(each), each @ sums, rtol=1e-6, atol=1e-6)


def test_rows_that_are_short_together_are_not_taken_for_longer_ones():
    """Else they would be scaled down, and nothing would say so."""
    rows, starts = DenseRows(np.array([[0.3, 0.4], [-0.3, 0.1], [0.003, 0.004]])), np.array([0, 2])
    joined = JoinedRows(rows, starts, np.ones(3))
    np.testing.assert_allclose(joined.norms("l2"), [0.5, 0.005], rtol=1e-5)
    np.testing.assert_allclose(clip_and_sum(joined, 0.6, "l2"), [0.003, 0.504], rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_person_of_a_thousand_rows_moves_a_sum_by_the_clip_at_most(form, norm):
    rng = np.random.default_rng(3)
    sizes = np.array([3, 1000, 2])
    rows, starts = forms(rng, sizes.sum())[form], np.array([0, 3, 1003])
    for weights in (np.ones(1005), np.repeat(1 / sizes, sizes)):
        with_all = JoinedRows(rows, starts, weights)
        for clip in (0.5, 3.0):
            moved = [clip_and_sum(with_all, clip, norm)]
            # Without anybody else: a person's part does not hang on others.
            alone = np.where(np.repeat([0, 1, 0], sizes), weights, 0.0)
            only = JoinedRows(rows, starts, alone)
            moved.append(clip_and_sum(only, clip, norm))
            order = 1 if norm == "l1" else 2
            assert np.linalg.norm(moved[1], order) <= clip
            rest = JoinedRows(rows, starts, np.where(alone > 0, 0.0, weights))
            np.testing.assert_allclose(
                moved[0] - moved[1], clip_and_sum(rest, clip, norm), rtol=1e-9, atol=1e-9
            )


def test_rows_written_out_in_blocks_are_cut_between_persons():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 40, 60)
    sizes[7] = 700
    values, starts = rng.normal(size=(sizes.sum(), 3)), np.cumsum([0, *sizes[:-1]])
    sums = np.add.reduceat(values, starts)
    joined = JoinedRows(DenseRows(values), starts, np.ones(len(values)))
    np.testing.assert_allclose(joined.norms("l2"), np.linalg.norm(sums, axis=1), rtol=1e-5)


def test_rows_that_cancel_each_other_are_held_longer_than_rounding_makes_them():
    # 2**60 - 2**60 + 1: in floating point the squared norm of the products is lost altogether.
    left = np.array([[2.0**60], [-(2.0**60)], [1.0]])
    rows = FactoredRows([(left, np.ones((3, 7)))])
    joined = JoinedRows(rows, np.array([0]), np.ones(3))
    assert np.linalg.norm(clip_and_sum(joined, 1.0)) <= 1.0
    assert joined.norms("l2")[0] >= np.sqrt(7.0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_a_person_with_a_number_that_is_none_counts_for_nothing_and_no_other_does(form, wrong):
    values = np.array([[1.0, 0.0], [wrong, 1.0], [0.5, 0.0]])
    rows = DenseRows(values) if form == "dense" else FactoredRows([(values, np.ones((3, 1)))])
    joined = JoinedRows(rows, np.array([0, 2]), np.ones(3))
    np.testing.assert_allclose(clip_and_sum(joined, 2.0), [0.5, 0.0], rtol=1e-5)


def test_a_choice_is_moved_by_the_clip_at_most_in_every_block():
    codes = np.repeat([[0, 1], [1, 2]], [500, 2], axis=0)
    rows = MarginalRows(codes, (2, 3), [(0,), (0, 1)])
    blocks = np.array([0, 2])
    for weights, most in ((np.repeat([1 / 500, 1 / 2], [500, 2]), 1.0), (np.ones(502), 3.0)):
        joined = JoinedRows(rows, np.array([0, 500]), weights)
        total = clip_blocks(joined, blocks, most)
        for block in np.split(total, [2]):
            np.testing.assert_allclose(
                block.sum(), min(most, 500 * weights[0]) + 2 * weights[-1], 1e-5
            )


@pytest.mark.parametrize(
    ("starts", "weights"),
    [([1], [1, 1]), ([0, 0], [1, 1]), ([0, 2], [1, 1]), ([], [1, 1]), ([0], [1]), ([0], [1, -1])],
)
def test_persons_that_are_none_are_refused(starts, weights):
    with pytest.raises(PrivacyError, match="person"):
        JoinedRows(DenseRows(np.ones((2, 1))), np.array(starts, np.int64), np.array(weights, float))


def test_a_form_that_does_not_know_the_norm_of_sums_is_refused():
    class Unknowing:
        dim = 1

        def __len__(self):
            return 1

        def norms(self, norm):
            return np.ones(1)

    with pytest.raises(PrivacyError, match="not known"):
        JoinedRows(Unknowing(), np.array([0]), np.ones(1)).norms("l2")


def test_nobody_adds_up_to_nothing():
    joined = JoinedRows(DenseRows(np.zeros((0, 3))), np.zeros(0, np.int64), np.zeros(0))
    assert clip_and_sum(joined, 1.0).tolist() == [0, 0, 0] and len(joined) == 0
