"""Answers as whole numbers, against integers of any length."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.grid import Grid, grid_of
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from tests.federation.vectors import Vectors, terms

NOISES = {
    "gaussian": {},
    "laplace": {"mechanism": "laplace", "norm": "l1"},
    "stable": {"mechanism": "stable", "norm": "l1", "alpha": 1.0},
}


def request(dim=3, most_records=None, **changes) -> Request:
    own = {"unit": "record", "trust": "distributed", "survivors": 3, **changes}
    return Request(Vectors.name, terms(**own), dim, most_records=most_records)


def signed(number: int, bits: int) -> int:
    """Modulo 2**bits, around zero."""
    return (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


@given(
    st.sampled_from(sorted(NOISES)),
    st.floats(1e-3, 1e6),
    st.floats(1e-6, 1e6),
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=6),
    st.integers(0, 2**31),
)
def test_answers_are_whole_numbers_of_a_public_grid_and_their_sum_is_exact(
    noise, multiplier, clip, sums, seed
):
    """Each answer is its whole number of steps and nothing beside; the sum of residues is that of
    the whole numbers, made a number again by one product."""
    asked = request(1, clip=clip, noise_multiplier=multiplier, **NOISES[noise])
    grid, source = grid_of(asked, len(sums)), NoiseSource(seed)
    answers = [asked.terms.client_noised(np.array([one * clip]), source) for one in sums]
    steps = [round(Fraction(float(one[0])) / Fraction(grid.step)) for one in answers]
    for whole, values in zip(steps, answers, strict=True):
        assert float(whole) * grid.step == values[0]
        assert int(grid.encode(values)[0]) == whole % 2**64
    total = sum((grid.encode(one) for one in answers), np.zeros(1, grid.kind))
    assert grid.decode(total)[0] == float(signed(sum(steps), 64)) * grid.step


@given(
    st.floats(1e-2, 1e3),
    st.integers(1, 10**5),
    st.integers(2, 20),
    st.integers(1, 50),
    st.integers(0, 2**31),
)
def test_numbers_of_32_bits_never_wrap_where_a_cap_allows_them(
    multiplier, most, clients, dim, seed
):
    """At the cap itself, with noise at the end of its table: the words choose the last slots."""
    asked = request(dim, most, noise_multiplier=multiplier, survivors=clients)
    grid = grid_of(asked, clients)
    assert grid.kind in ("<u4", "<u8")
    assert (grid.kind == "<u4") == (clients * grid.end < 2.0**31)
    wide = Grid(grid.step, "<u8", grid.end)
    source, sign = NoiseSource(seed), 1 if seed % 2 else -1
    most_of_all = np.full(dim, sign * most / math.sqrt(dim))
    answers = [asked.terms.client_noised(most_of_all, source) for _ in range(clients)]
    assert max(np.abs(one).max() for one in answers) <= grid.end * grid.step * (1 + 1e-12)
    totals = [
        sum((own.encode(a) for a in answers), np.zeros(dim, own.kind)) for own in (grid, wide)
    ]
    np.testing.assert_array_equal(grid.decode(totals[0]), wide.decode(totals[1]))


def test_a_grid_says_nothing_of_rows_and_follows_from_public_terms():
    """Of the same request it is the same, and it needs nothing else."""
    known = {grid_of(request(dim, 100), 5) for dim in (3, 3)}
    assert len(known) == 1
    assert grid_of(request(3), 5).kind == "<u8"
    # A cap for each client, and one unit a client, both let 32 bits do; more clients do not.
    assert grid_of(request(3, 100), 5).kind == grid_of(request(3, unit="client"), 5).kind == "<u4"
    assert grid_of(request(3, 10**9), 5).kind == "<u8"


def test_answers_without_noise_are_rounded_to_a_fine_grid_of_the_clip():
    asked = request(3, noise_multiplier=0.0, clip=100.0)
    grid = grid_of(asked, 3)
    values = np.array([1.0, -3.0, 1 / 3])
    found = grid.decode(grid.encode(values))
    np.testing.assert_array_equal(found[:2], values[:2])
    assert found[2] == pytest.approx(1 / 3, abs=100 * 2.0**-30)


@pytest.mark.parametrize(
    "steps", [2.0**63, -(2.0**63), 2.0**64, 1.5 * 2.0**64, -(2.0**90), 2.0**53]
)
def test_numbers_beyond_64_bits_wrap_as_whole_numbers_do(steps):
    grid = Grid(0.25, "<u8", math.inf)
    assert int(grid.encode(np.array([steps * 0.25]))[0]) == int(steps) % 2**64


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_answer_that_is_no_number_is_not_added(value):
    with pytest.raises(PrivacyError, match="not finite"):
        grid_of(request(), 3).encode(np.array([0.0, value, 0.0]))
