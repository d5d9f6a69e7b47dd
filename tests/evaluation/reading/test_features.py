"""Vectors of rows: what distances they give, and the search for the nearest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

import fedsynth.evaluation.reading.features as module
from fedsynth.evaluation.reading.features import Features, nearest, width
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Categorical, Continuous, Integer, Schema
from tests.evaluation.compared_people import people


def distance(rows: Rows, features: Features) -> np.ndarray:
    vectors = features.matrix(rows).astype(float)
    return np.linalg.norm(vectors[:, None] - vectors, axis=2)


def test_different_categories_gaps_among_them_are_at_distance_one():
    schema = Schema(columns=(Categorical(name="c", values=("a", "b", "c"), missing=True),))
    rows = read_rows(pd.DataFrame({"c": ["a", "b", "c", "other", None]}), schema, "rows")
    np.testing.assert_allclose(distance(rows, Features.of(rows)), 1 - np.eye(5), atol=1e-7)


def test_rare_categories_share_a_coordinate():
    names = tuple(f"v{i}" for i in range(80))
    schema = Schema(columns=(Categorical(name="c", values=names),))
    rows = read_rows(pd.DataFrame({"c": [*names[:70] * 2, *names]}), schema, "rows")
    found = distance(rows.take(np.arange(140, 220)), Features.of(rows))
    common, rare = found[:64, :64], found[64:, 64:]
    np.testing.assert_allclose(common, 1 - np.eye(64), atol=1e-7)
    assert rare.max() == 0
    np.testing.assert_allclose(found[:64, 64:], 1, atol=1e-7)


def test_numbers_are_scaled_by_the_middle_range_clipped_and_gaps_lie_at_the_median():
    schema = Schema(columns=(Continuous(name="x", lower=0, upper=100, decimals=1, missing=True),))
    learned = read_rows(pd.DataFrame({"x": np.arange(101.0)}), schema, "rows")
    others = read_rows(pd.DataFrame({"x": [50, 95, 5, 1e9, -1e9, None]}), schema, "rows")
    found = Features.of(learned).matrix(others)
    # Quantiles .05, .5, .95 of 0, 1, .., 100 are 5, 50, 95.
    np.testing.assert_allclose(found, [[0, 0], [0.5, 0], [-0.5, 0], [3, 0], [-3, 0], [0, 1]])


@pytest.mark.parametrize(("values", "scale"), [([0] * 99 + [8], 8), ([4] * 100, 1)])
def test_spikes_are_scaled_by_the_whole_range_or_not_at_all(values, scale):
    schema = Schema(columns=(Integer(name="i", lower=0, upper=9),))
    rows = read_rows(pd.DataFrame({"i": values}), schema, "rows")
    assert Features.of(rows).scales.tolist() == [scale]


def test_columns_are_left_out_by_name_and_of_none_nothing_is_left():
    rows = people(30)
    whole = Features.of(rows).matrix(rows)
    fewer = Features.of(rows, without=("x", "flag")).matrix(rows)
    assert fewer.shape[1] == whole.shape[1] - 2 - 5
    none = Features.of(rows, without=rows.names).matrix(rows)
    assert none.shape == (30, 0)


def test_vectors_are_finite_for_gaps_and_values_never_seen():
    empty = people(25, x=None, count=None, colour=None, day=None)
    odd = people(25, x=np.inf, count=-1e12, colour="pink", day="9999-01-01", flag="?")
    for learned in (people(25), empty, odd):
        for other in (people(25, 1), empty, odd):
            assert np.isfinite(Features.of(learned).matrix(other)).all()


@settings(max_examples=40, deadline=None)
@given(
    q=st.integers(1, 30),
    n=st.integers(1, 40),
    p=st.integers(1, 6),
    k=st.integers(1, 8),
    seed=st.integers(0, 999),
)
def test_nearest_equals_scikit_learns(q, n, p, k, seed):
    rng = np.random.default_rng(seed)
    # Few values, hence many ties and equal rows.
    among = rng.integers(0, 3, (n, p)).astype(np.float32)
    queries = rng.normal(size=(q, p)).astype(np.float32)
    queries[0] = among[-1]
    distances, places = nearest(queries, among, k)
    exact = NearestNeighbors(n_neighbors=min(k, n), algorithm="brute").fit(among.astype(float))
    np.testing.assert_allclose(distances, exact.kneighbors(queries.astype(float))[0], atol=1e-6)
    found = np.linalg.norm(queries[:, None].astype(float) - among[places], axis=2)
    np.testing.assert_allclose(found, distances)
    assert all(len(set(row)) == len(row) for row in places.tolist())
    assert distances[0, 0] == 0


def test_a_copy_in_a_crowd_is_found_at_distance_zero():
    rng = np.random.default_rng(0)
    among = rng.normal(size=(20_000, 1)).astype(np.float32)
    queries = among[rng.permutation(20_000)[:150]]
    distances, places = nearest(queries, among, 2)
    assert (distances[:, 0] == 0).all()
    np.testing.assert_array_equal(among[places[:, 0]], queries)
    exact = NearestNeighbors(n_neighbors=2).fit(among.astype(float))
    np.testing.assert_allclose(distances, exact.kneighbors(queries.astype(float))[0], atol=1e-9)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    queries, among = (rng.normal(size=(n, 5)).astype(np.float32) for n in (50, 40))
    at_once = nearest(queries, among, 3)
    monkeypatch.setattr(module, "_CELLS", 7 * 40)
    for whole, parts in zip(at_once, nearest(queries, among, 3), strict=True):
        np.testing.assert_allclose(whole, parts)


def test_renaming_and_reordering_categories_changes_no_distance():
    frame = pd.DataFrame({"c": list("aabbbcc")})
    first = Schema(columns=(Categorical(name="c", values=("a", "b", "c")),))
    second = Schema(columns=(Categorical(name="c", values=("Z", "X", "Y")),))
    renamed = frame.replace({"a": "X", "b": "Y", "c": "Z"})
    one, two = read_rows(frame, first, "rows"), read_rows(renamed, second, "rows")
    np.testing.assert_allclose(distance(one, Features.of(one)), distance(two, Features.of(two)))


def test_the_width_of_vectors_is_known_beforehand():
    columns = (
        Categorical(name="many", values=tuple(range(100))),
        Categorical(name="few", values=("a", "b")),
        Integer(name="count", lower=0, upper=9),
    )
    schema = Schema(columns=columns)
    frame = pd.DataFrame({"many": range(100), "few": ["a", "b"] * 50, "count": [1, 2] * 50})
    rows = read_rows(frame, schema, "rows")
    # 64 and the rest, three codes and the rest, a number; each with a gap.
    assert width(rows) == 66 + 5 + 2 == Features.of(rows).matrix(rows).shape[1]
    assert width(rows, 8) == 66 + 5 + 8
