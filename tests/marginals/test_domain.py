"""Columns, cliques and the tables that codes make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.marginals import Domain, count


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**32), st.data())
def test_counts_are_those_of_a_loop(sizes, seed, data):
    domain = Domain(tuple(sizes))
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, 60) for size in sizes], axis=1).astype(np.int32)
    columns = st.sets(st.integers(0, len(sizes) - 1), min_size=1)
    clique = tuple(sorted(data.draw(columns)))
    wanted = np.zeros(domain.shape(clique))
    for row in codes:
        wanted[tuple(row[k] for k in clique)] += 1
    np.testing.assert_array_equal(count(domain, codes, clique), wanted)


def test_domains_and_cliques_that_are_none_are_refused():
    for sizes in ((), (2, 0), (3, -1)):
        with pytest.raises(ConfigError, match="at least one"):
            Domain(sizes)
    domain = Domain((2, 3))
    assert domain.cells((0, 1)) == 6
    for clique in ((), (1, 0), (0, 0), (-1,), (2,)):
        with pytest.raises(ConfigError, match="columns"):
            domain.check(clique)
