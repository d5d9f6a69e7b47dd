"""Every method keeps every promise of the contract."""

from __future__ import annotations

import pytest

from fedsynth.registry import SYNTHESIZERS
from tests.methods.contract import check_synthesizer


@pytest.mark.parametrize("name", sorted(SYNTHESIZERS))
def test_every_method_keeps_the_contract(name, tmp_path):
    check_synthesizer(name, tmp_path)
