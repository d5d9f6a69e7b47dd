"""Every row ends inside the ball, whatever its form, and moves the sum by at most the clip."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fedsynth.errors import PrivacyError
from fedsynth.privacy.rows.clipping import Norm, Rows, clip_and_sum, factors
from fedsynth.privacy.rows.counting import IndicatorRows, MarginalRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.rows.parts import clip_parts

NORMS = st.sampled_from(["l2", "l1"])
CLIPS = st.floats(1e-6, 1e6)
ADVERSARIAL = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e38, 1e-45, 1e-40, 0.0, 1.0, -1.0, 1e-3]


def rows32(rows: int | None = None) -> st.SearchStrategy[np.ndarray]:
    values = st.one_of(st.sampled_from(ADVERSARIAL), st.floats(-1e3, 1e3, width=32))
    shape = array_shapes(min_dims=2, max_dims=2, max_side=6)
    if rows is not None:
        shape = st.integers(1, 6).map(lambda d: (rows, d))
    return arrays(np.float32, shape, elements=values.map(lambda v: float(np.float32(v))))


def size(vector: np.ndarray, norm: Norm) -> float:
    """The norm, scaled first so that nothing overflows."""
    top = float(np.abs(vector).max(initial=0))
    if top == 0:
        return 0.0
    return top * float(np.linalg.norm(vector / top, 2 if norm == "l2" else 1))


@given(rows32(rows=1), CLIPS, NORMS)
def test_no_single_row_leaves_the_ball(values: np.ndarray, clip: float, norm: Norm):
    total = clip_and_sum(DenseRows(values), clip, norm)
    assert np.isfinite(total).all()
    assert size(total, norm) <= clip


@given(rows32(), CLIPS, NORMS, st.data())
def test_adding_or_removing_a_row_moves_the_sum_by_at_most_the_clip(
    values: np.ndarray, clip: float, norm: Norm, data: st.DataObject
):
    gone = data.draw(st.integers(0, len(values) - 1))
    whole = clip_and_sum(DenseRows(values), clip, norm)
    rest = clip_and_sum(DenseRows(np.delete(values, gone, axis=0)), clip, norm)
    assert size(whole - rest, norm) <= clip


def test_float32_rounding_of_the_other_rows_does_not_widen_the_ball():
    rng = np.random.default_rng(0)
    # All rows along one direction: the largest sum, hence the coarsest rounding.
    values = np.abs(rng.normal(size=(5000, 8))).astype(np.float32)
    whole = clip_and_sum(DenseRows(values), 1.0)
    for gone in (0, 17, 2048, 4999):
        rest = clip_and_sum(DenseRows(np.delete(values, gone, axis=0)), 1.0)
        assert np.linalg.norm(whole - rest) <= 1.0
    left = values[:, :3]
    whole = clip_and_sum(FactoredRows([(left, values)]), 1.0)
    rest = clip_and_sum(FactoredRows([(left[1:], values[1:])]), 1.0)
    assert np.linalg.norm(whole - rest) <= 1.0


def test_a_weight_too_small_for_float32_keeps_the_row_in_the_ball():
    values = np.full((1, 10_000), 3e38, np.float32)
    total = clip_and_sum(DenseRows(values), 1e-3)
    assert np.linalg.norm(total) == pytest.approx(1e-3, rel=1e-5)
    assert np.linalg.norm(total) <= 1e-3


@given(rows32(), CLIPS, NORMS)
def test_the_sum_equals_a_loop_over_rows(values: np.ndarray, clip: float, norm: Norm):
    expected = np.zeros(values.shape[1])
    for row in values.astype(np.float64):
        if np.isfinite(row).all():
            expected += row * min(1.0, clip / size(row, norm) if row.any() else 1.0)
    result = clip_and_sum(DenseRows(values), clip, norm)
    np.testing.assert_allclose(result, expected, rtol=3e-6, atol=3e-6 * clip * len(values))


def test_a_row_that_is_not_finite_counts_as_zero_and_spoils_no_other():
    values = np.array([[np.nan, 1], [3.0, 4.0], [np.inf, 0], [1, -np.inf]], np.float32)
    clipped = clip_and_sum(DenseRows(values), 5.0)
    np.testing.assert_allclose(clipped, [3, 4], rtol=2e-6)


def test_rows_inside_the_ball_stay_as_they_are():
    values = np.array([[0.3, -0.4], [0.0, 0.0]])
    result = clip_and_sum(DenseRows(values), 1.0)
    np.testing.assert_array_equal(result, [0.3, -0.4])


@pytest.mark.parametrize(
    "rows",
    [
        DenseRows(np.zeros((0, 4), np.float32)),
        FactoredRows([(np.zeros((0, 2)), np.zeros((0, 2)))]),
        IndicatorRows(np.zeros((0, 3), np.int64), 4),
    ],
)
def test_no_rows_at_all_sum_to_zero(rows: Rows):
    result = clip_and_sum(rows, 1.0)
    np.testing.assert_array_equal(result, np.zeros(4))


@given(
    rows=st.integers(1, 5),
    widths=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3),
    clip=st.floats(1e-3, 1e3),
    norm=NORMS,
    seed=st.integers(0, 2**32 - 1),
    gap=st.integers(0, 3),
)
def test_factored_rows_equal_dense_rows(
    rows: int, widths: list, clip: float, norm: Norm, seed: int, gap: int
):
    rng = np.random.default_rng(seed)
    layers, starts, blocks, end = [], [], [], gap
    for out, into in widths:
        left, right = (rng.normal(size=(rows, k)).astype(np.float32) * 3 for k in (out, into))
        layers.append((left, right))
        starts.append(end)
        product = np.einsum("io,ij->ioj", left.astype(float), right).reshape(rows, -1)
        blocks.append((end, product))
        end += out * into + gap
    dense = np.zeros((rows, end))
    for start, product in blocks:
        dense[:, start : start + product.shape[1]] = product
    factored = FactoredRows(layers, starts, end)
    assert (len(factored), factored.dim) == dense.shape
    np.testing.assert_allclose(factored.norms(norm), DenseRows(dense).norms(norm), rtol=1e-6)
    ours = clip_and_sum(factored, clip, norm)
    np.testing.assert_allclose(
        ours, clip_and_sum(DenseRows(dense), clip, norm), rtol=1e-5, atol=1e-6 * clip
    )


@given(
    left=arrays(np.float32, (2, 3), elements=st.sampled_from(ADVERSARIAL).map(np.float32)),
    right=arrays(np.float32, (2, 2), elements=st.sampled_from(ADVERSARIAL).map(np.float32)),
    clip=CLIPS,
    norm=NORMS,
)
def test_no_factored_row_leaves_the_ball(
    left: np.ndarray, right: np.ndarray, clip: float, norm: Norm
):
    both = clip_and_sum(FactoredRows([(left, right)]), clip, norm)
    one = clip_and_sum(FactoredRows([(left[:1], right[:1])]), clip, norm)
    assert np.isfinite(both).all()
    assert size(both - one, norm) <= clip


def test_blocks_of_a_factored_row_that_overlap_or_stick_out_are_refused():
    layer = (np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(PrivacyError, match="overlap"):
        FactoredRows([layer, layer], [0, 3])
    with pytest.raises(PrivacyError, match="width"):
        FactoredRows([layer], [1], 4)


@given(
    rows=st.integers(1, 6),
    ones=st.integers(1, 4),
    more=st.integers(0, 5),
    clip=st.floats(0.1, 10),
    norm=NORMS,
    seed=st.integers(0, 2**32 - 1),
)
def test_indicator_rows_equal_dense_rows(
    rows: int, ones: int, more: int, clip: float, norm: Norm, seed: int
):
    rng = np.random.default_rng(seed)
    dim = ones + more
    positions = np.array([rng.permutation(dim)[:ones] for _ in range(rows)])
    dense = np.zeros((rows, dim))
    np.put_along_axis(dense, positions, 1.0, axis=1)
    indicator = IndicatorRows(positions, dim)
    np.testing.assert_allclose(indicator.norms(norm), DenseRows(dense).norms(norm))
    np.testing.assert_allclose(
        clip_and_sum(indicator, clip, norm),
        clip_and_sum(DenseRows(dense), clip, norm),
    )


@pytest.mark.parametrize("positions", [[[0, 1], [2, 2]], [[2, 0, 2]]])
def test_a_position_that_counts_twice_in_a_row_is_refused(positions: list):
    with pytest.raises(PrivacyError, match="repeat"):
        IndicatorRows(np.array(positions), 3)


@pytest.mark.parametrize("positions", [[[-1, 0]], [[0, 3]]])
def test_a_position_outside_the_row_is_refused(positions: list):
    with pytest.raises(PrivacyError, match="outside"):
        IndicatorRows(np.array(positions), 3)


@example(values=np.array([[np.nan, np.nan, 3e38]], np.float32), clip=0.0625)
@given(
    values=arrays(
        np.float32,
        st.tuples(st.integers(1, 4), st.sampled_from([3, 6, 9])),
        elements=st.one_of(st.sampled_from(ADVERSARIAL), st.floats(-100, 100, width=32)).map(
            lambda v: float(np.float32(v))
        ),
    ),
    clip=st.floats(1e-3, 1e3),
)
def test_a_part_per_class_is_clipped_to_its_share_and_the_whole_to_the_clip(
    values: np.ndarray, clip: float
):
    clipped = clip_parts(values, 3, clip)
    assert clipped.shape == values.shape
    for row in clipped.astype(np.float64):
        assert all(size(part, "l2") <= clip / np.sqrt(3) for part in np.split(row, 3))
        assert size(row, "l2") <= clip
        # So that the clip of the whole row, last at the door, changes nothing.
        np.testing.assert_allclose(factors(DenseRows(row[None]), clip), 1, rtol=2e-6)


def test_a_part_inside_its_share_stays_as_it_is_beside_one_that_is_not():
    values = np.array([[0.1, 0.2, 30.0, 40.0]])
    clipped = clip_parts(values, 2, np.sqrt(2))
    np.testing.assert_allclose(clipped, [[0.1, 0.2, 0.6, 0.8]], rtol=2e-6)


@st.composite
def marginal_rows(draw: st.DrawFn) -> MarginalRows:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    columns = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=3).map(sorted)
    cliques = draw(st.lists(columns.map(tuple), min_size=1, max_size=5))
    weights = draw(
        st.none() | st.lists(st.floats(0.1, 3), min_size=len(cliques), max_size=len(cliques))
    )
    rows = draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = np.column_stack([rng.integers(0, s, rows) for s in sizes]).astype(np.int32)
    return MarginalRows(codes, sizes, cliques, weights)


def written_out(rows: MarginalRows) -> np.ndarray:
    """The rows as vectors, one table after another, cell by cell."""
    dense = np.zeros((len(rows), rows.dim))
    for i, code in enumerate(rows.codes):
        start = 0
        for clique, weight in zip(rows.cliques, rows.table_weights, strict=True):
            shape = tuple(rows.sizes[c] for c in clique)
            dense[i, start + int(np.ravel_multi_index(code[list(clique)], shape))] += weight
            start += int(np.prod(shape, dtype=int))
    return dense


@given(marginal_rows(), st.booleans(), st.integers(0, 2**32), NORMS, st.floats(0.01, 10))
def test_marginal_rows_are_their_vectors(
    rows: MarginalRows, even: bool, seed: int, norm: Norm, clip: float
):
    dense = DenseRows(written_out(rows))
    assert dense.dim == rows.dim
    np.testing.assert_allclose(rows.norms(norm), dense.norms(norm), rtol=1e-12)
    rng = np.random.default_rng(seed)
    weights = np.full(len(rows), 0.7) if even else rng.choice([0.0, 0.3, 1.0], len(rows))
    np.testing.assert_allclose(
        rows.weighted_sum(weights), dense.weighted_sum(weights), rtol=1e-12, atol=1e-12
    )
    clipped, wanted = (clip_and_sum(kind, clip, norm) for kind in (rows, dense))
    np.testing.assert_allclose(clipped, wanted, rtol=1e-9, atol=1e-12)
    starts = np.cumsum([0, *(np.prod([rows.sizes[c] for c in k], dtype=int) for k in rows.cliques)])
    assert rows.starts == starts[:-1].tolist()


@pytest.mark.parametrize(
    ("codes", "cliques", "weights", "said"),
    [
        ([[0, 2]], [(0,)], None, "sizes"),
        ([[-1, 0]], [(0,)], None, "sizes"),
        ([[0, 0, 0]], [(0,)], None, "sizes"),
        ([[0, 0]], [(0, 2)], None, "columns 0 to 1"),
        ([[0, 0]], [(-1,)], None, "columns 0 to 1"),
        ([[0, 0]], [(0,)], [0.0], "positive"),
        ([[0, 0]], [(0,)], [-1.0], "positive"),
        ([[0, 0]], [(0,)], [np.nan], "positive"),
        ([[0, 0]], [(0,), (1,)], [1.0], "positive"),
    ],
)
def test_marginal_rows_whose_norm_would_be_wrong_are_refused(codes, cliques, weights, said):
    with pytest.raises(PrivacyError, match=said):
        MarginalRows(np.array(codes), (2, 2), cliques, weights)


def test_marginal_rows_take_no_memory_for_the_vectors_that_they_stand_for():
    rng = np.random.default_rng(0)
    sizes = [20] * 12
    cliques = [(a, b, c) for a in range(12) for b in range(a) for c in range(b)][:200]
    rows = MarginalRows(rng.integers(0, 20, (50_000, 12)).astype(np.int32), sizes, cliques)
    tracemalloc.start()
    total = clip_and_sum(rows, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 50,000 rows of 1.6 million numbers would be 640 GB.
    assert peak < 100e6
    np.testing.assert_allclose(
        total.sum(), 50_000 * len(cliques) / np.sqrt(len(cliques)), rtol=1e-5
    )
