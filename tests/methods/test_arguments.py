"""What users give a synthesizer is made sure of before anything is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.agreed import demand_whole
from fedsynth.errors import ConfigError
from fedsynth.methods.arguments import demand_draw


@pytest.mark.parametrize("rows", [0, -3, 10.5, "7", None, True, np.float64(3), np.int64(0)])
def test_a_whole_number_of_at_least_one_row_is_drawn(rows):
    with pytest.raises(ConfigError, match="rows must be a whole number of at least 1"):
        demand_draw(rows, None, None, None)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", False])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number of at least 0"):
        demand_draw(1, None, None, seed)


def test_numpy_s_whole_numbers_are_some_too():
    demand_draw(np.int32(1), {}, {}, np.uint64(0))
    demand_draw(7, None, None, 2**80)
    found = demand_whole("rows", np.int32(7), 1)
    assert found == 7 and type(found) is int
