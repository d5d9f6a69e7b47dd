"""Whatever goes wrong between machines, nothing is paid twice, lost in silence, or told."""

from __future__ import annotations

import pytest

from tests.network.faults import FAULTS
from tests.network.world import world


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_accounts_are_what_was_said_and_no_row_is_anywhere(name, tmp_path):
    with world(tmp_path) as made:
        assert FAULTS[name](made)
