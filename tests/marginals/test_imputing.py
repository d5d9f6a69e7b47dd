"""Missing cells, checked against the enumeration of every combination."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import DataError
from fedsynth.marginals import Domain, JunctionTree, Model, imputing

DOMAIN = Domain((2, 3, 2, 3, 2))
# A path, a cycle's chord and a column on its own: parts on both sides of a known column.
CLIQUES = [(0, 1), (1, 2), (2, 3), (4,)]


def chain(seed, scale=1.5):
    rng = np.random.default_rng(seed)
    factors = {c: rng.normal(0, scale, DOMAIN.shape(c)) for c in CLIQUES}
    return Model(JunctionTree.of(DOMAIN, factors), factors, 1.0)


def joint_of(model):
    return model.marginal(tuple(range(len(model.domain))))


@given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=5, max_size=5))
@settings(deadline=None, max_examples=20)
def test_every_pattern_of_missing_cells_follows_the_conditional(seed, missing):
    model, rng = chain(seed), np.random.default_rng(seed)
    joint, n = joint_of(model), 4000
    row = np.array([rng.integers(size) for size in DOMAIN.sizes])
    codes = np.tile(np.where(missing, -1, row), (n, 1)).astype(np.int32)
    completed = model.impute(codes, rng)
    assert (completed[codes >= 0] == codes[codes >= 0]).all()
    known = joint[
        tuple(slice(None) if m else slice(k, k + 1) for m, k in zip(missing, row, strict=True))
    ]
    wanted = (known / known.sum()).ravel()
    columns = np.where(missing, completed, 0)
    cells = np.ravel_multi_index(columns.T, known.shape)
    counts = np.bincount(cells, minlength=wanted.size)
    # Six standard deviations and a row, in each of at most 72 cells.
    assert (np.abs(counts - n * wanted) <= 6 * np.sqrt(n * wanted * (1 - wanted)) + 1).all()


def test_rows_of_mixed_patterns_keep_their_own_conditionals():
    model, rng = chain(5), np.random.default_rng(0)
    joint, n = joint_of(model), 60_000
    codes = np.stack([rng.integers(0, size, n) for size in DOMAIN.sizes], axis=1).astype(np.int32)
    codes[rng.random(codes.shape) < 0.5] = -1
    codes[:, 1], codes[:, 0] = -1, np.arange(n) % 2
    completed = model.impute(codes, rng)
    for zero in (0, 1):
        for three in (0, 1, 2):
            rows = (codes[:, 0] == zero) & (codes[:, 2] < 0) & (codes[:, 3] == three)
            wanted = joint.sum(axis=4)[zero, :, :, three]
            wanted = wanted / wanted.sum()
            shares = np.zeros((3, 2))
            np.add.at(shares, tuple(completed[rows][:, 1:3].T), 1 / rows.sum())
            assert np.abs(shares - wanted).max() < 6 * 0.5 / np.sqrt(rows.sum())


def test_draws_are_independent_of_each_other():
    """Unlike a sample's rows: two equal rows agree as often as chance has it."""
    model = chain(2)
    first, second = (
        model.impute(np.full((20_000, 5), -1, np.int32), np.random.default_rng(seed))
        for seed in (0, 1)
    )
    same = float((joint_of(model) ** 2).sum())
    for pair in (first == second, first[1:] == first[:-1]):
        assert np.mean(pair.all(axis=1)) == pytest.approx(same, abs=6 * np.sqrt(same / 20_000))


def test_memory_bounds_the_rows_done_together_and_not_the_result(monkeypatch):
    model, n = chain(3), 9000
    codes = np.full((n, 5), -1, np.int32)
    codes[:, 0], codes[:, 3] = np.arange(n) % 2, np.arange(n) % 3
    monkeypatch.setattr(imputing, "_FLOATS", 12)
    completed = model.impute(codes, np.random.default_rng(0))
    assert (completed[:, [0, 3]] == codes[:, [0, 3]]).all()
    joint = joint_of(model).sum(axis=4)
    for zero in (0, 1):
        for three in (0, 1, 2):
            rows = completed[(codes[:, 0] == zero) & (codes[:, 3] == three)]
            wanted = joint[zero, :, :, three] / joint[zero, :, :, three].sum()
            shares = np.zeros((3, 2))
            np.add.at(shares, tuple(rows[:, 1:3].T), 1 / len(rows))
            assert np.abs(shares - wanted).max() < 6 * 0.5 / np.sqrt(len(rows))


def test_impossible_combinations_are_never_drawn_and_refused_as_known():
    domain = Domain((2, 2, 2))
    factors = {(0, 1, 2): np.zeros((2, 2, 2))}
    factors[0, 1, 2][0, 1] = -np.inf
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    rng = np.random.default_rng(0)
    completed = model.impute(np.full((2000, 3), -1, np.int32), rng)
    assert not ((completed[:, 0] == 0) & (completed[:, 1] == 1)).any()
    known = np.array([[0, 0, -1], [0, -1, 1]], np.int32)
    assert (model.impute(known, rng)[1] == [0, 0, 1]).all()
    with pytest.raises(DataError, match="row 1 "):
        model.impute(np.array([[0, 0, -1], [0, 1, -1]], np.int32), rng)


def test_potentials_far_apart_do_not_underflow():
    domain = Domain((2, 2))
    factors = {(0, 1): np.array([[0.0, 0.0], [-2000.0, -2001.0]])}
    model = Model(JunctionTree.of(domain, factors), factors, 1.0)
    codes = np.tile(np.array([[1, -1]], np.int32), (10_000, 1))
    completed = model.impute(codes, np.random.default_rng(0))
    assert np.mean(completed[:, 1]) == pytest.approx(1 / (1 + np.e), abs=0.03)


@pytest.mark.parametrize("codes", [[[0, 0]], [[0, 0, 0, 0, 2]], [[-2, 0, 0, 0, 0]]])
def test_codes_of_another_table_are_refused(codes):
    with pytest.raises(DataError, match="5 codes"):
        chain(0).impute(np.array(codes, np.int32), np.random.default_rng(0))


def test_no_rows_are_completed_to_no_rows():
    empty = np.zeros((0, 5), np.int32)
    assert chain(0).impute(empty, np.random.default_rng(0)).shape == (0, 5)
