"""Figures that are bounds: what is told still holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.plain import round_up


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [
        (4.4817, 3, "4.49"),
        (2.7183, 3, "2.72"),
        (1.5, 4, "1.5"),
        (0.99978, 4, "0.9998"),
        (73.1059, 3, "73.2"),
        # What a floating sum leaves of three.
        (3.0000000000000004, 3, "3"),
        (0.0, 4, "0"),
    ],
)
def test_a_bound_is_rounded_up(value, digits, told):
    assert round_up(value, digits) == told


@given(st.floats(1e-6, 1e9), st.integers(2, 6))
def test_a_bound_holds_and_says_no_more_than_its_digits_must(value, digits):
    told = float(round_up(value, digits))
    assert value * (1 - 1e-11) <= told <= value * (1 + 10 ** (1 - digits))
