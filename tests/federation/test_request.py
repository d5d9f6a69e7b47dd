"""What a request says is checked where it arrives."""

from __future__ import annotations

import math

import pytest

from fedsynth.errors import FederationError
from fedsynth.federation.request import number, whole


@pytest.mark.parametrize("value", [None, "3", True, math.nan, math.inf, [3], {}])
def test_a_setting_that_is_no_number_is_refused_by_name(value):
    for read in (number, whole):
        with pytest.raises(FederationError, match="setting steps is no number"):
            read({"steps": value}, "steps")


def test_numbers_come_back_and_half_of_one_is_not_whole():
    assert (number({"rate": 1}, "rate"), whole({"steps": 3.0}, "steps")) == (1.0, 3)
    with pytest.raises(FederationError, match="setting steps is no whole number"):
        whole({"steps": 2.5}, "steps")
    with pytest.raises(FederationError, match="setting steps is no number"):
        number({}, "steps")
