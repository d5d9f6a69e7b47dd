"""What is expected of tables before any is asked, against hand-worked cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from fedsynth.encoding.nominal import nominal_encoding
from fedsynth.marginals import Domain
from fedsynth.methods.marginal.expecting import Asked
from fedsynth.schema import Continuous, Schema

# Third roots of the cells of the three pairs: 2, 4 and 8.
DOMAIN = Domain((2, 4, 128))
PAIRS = [(0, 1), (0, 2), (1, 2)]


def test_a_table_that_is_asked_alone_has_the_noise_of_its_message():
    alone = Asked("fine", 1, PAIRS, "asked", 1, by_size=True, small_first=True)
    assert alone.deviations(DOMAIN, 3.0) == dict.fromkeys(PAIRS, 3.0)


def test_small_tables_are_asked_first_and_stand_beside_small_ones():
    cells = np.array([8, 256, 512])
    some = Asked("fine", 2, PAIRS, "asked", 1, by_size=True, small_first=True)
    chances = np.array([some.chances(DOMAIN)[pair] for pair in PAIRS])
    assert chances == pytest.approx(1 / cells / (1 / cells).sum())
    beside = (chances * cells ** (2 / 3)).sum()
    by_hand = [5 * math.sqrt(1 + beside / c ** (2 / 3)) for c in cells]
    assert list(some.deviations(DOMAIN, 5.0).values()) == pytest.approx(by_hand)


def test_what_is_asked_of_all_tables_is_asked_of_each():
    every = Asked("coarse", 3, PAIRS, "asked", 3, small_first=True)
    assert every.chances(DOMAIN) == dict.fromkeys(PAIRS, 1.0)
    assert every.deviations(DOMAIN, 2.0) == pytest.approx(dict.fromkeys(PAIRS, 2 * math.sqrt(3)))


def test_a_number_is_reckoned_with_as_normal_within_its_bounds():
    """Bins are its quantiles: of 20 of equal weight, ends are those of the normal distribution."""
    schema = Schema(columns=[Continuous(name="x", lower=0.0, upper=1000.0, decimals=2)])
    (bins,) = nominal_encoding(schema, 20).bins
    starts = bins.grid.values(bins.starts[1:])
    quantiles = norm.ppf(np.arange(1, 20) / 20, 400, 1000 / 12)
    inside = starts[(starts > quantiles[0] - 10) & (starts < quantiles[-1] + 10)]
    gaps = [np.abs(inside - quantile).min() for quantile in quantiles]
    assert max(gaps) < 10
