"""Invented persons: as many rows as were asked, in shares that were released, beside like cells."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.methods.sampling.persons import deal_sizes, draw_sizes

SHARES = st.lists(st.integers(0, 20), min_size=1, max_size=12).filter(sum)


@given(SHARES, st.integers(1, 3000), st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_sizes_have_the_released_shares_and_the_rows_that_were_asked(weights, rows, seed):
    shares = np.array(weights) / sum(weights)
    sizes = draw_sizes(shares, rows, np.random.default_rng(seed))
    assert sizes.sum() == rows
    assert sizes.min() >= 1
    # But for one, nobody has a number of rows that no person has.
    odd = ~np.isin(sizes, np.flatnonzero(shares) + 1)
    assert odd.sum() <= 1
    # Multiples of the golden ratio fall into an interval as often as its length says, but for some
    # (2 + log2 n is more than has been seen), and one was cut.
    counts = np.bincount(sizes, minlength=len(shares) + 1)[1:]
    assert (np.abs(counts - len(sizes) * shares) <= 4 + np.log2(len(sizes))).all()


def test_a_person_that_is_cut_may_be_any():
    shares = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    places = {
        int(np.argmin(draw_sizes(shares, 23, np.random.default_rng(seed)))) for seed in range(60)
    }
    assert places == {0, 1, 2, 3, 4}


def test_persons_of_like_cells_have_all_sizes_in_equal_shares():
    rng = np.random.default_rng(0)
    sizes = draw_sizes(np.array([0.5, 0.0, 0.5]), 4_000, rng)
    cells = rng.integers(0, [2, 5], (len(sizes), 2))
    dealt = deal_sizes(sizes, cells, rng)
    assert sorted(dealt) == sorted(sizes)
    for first, second in np.unique(cells, axis=0):
        own = dealt[(cells == [first, second]).all(axis=1)]
        # A deal at random would be off by 7 (a standard deviation) in each of ten.
        assert abs((own == 1).sum() - len(own) / 2) <= 4


def test_sizes_are_dealt_where_nothing_is_of_a_person():
    rng = np.random.default_rng(0)
    sizes = draw_sizes(np.array([0.5, 0.5]), 30, rng)
    dealt = deal_sizes(sizes, np.zeros((len(sizes), 0), np.int64), rng)
    assert sorted(dealt) == sorted(sizes)
    assert dealt.tolist() != sizes.tolist()
