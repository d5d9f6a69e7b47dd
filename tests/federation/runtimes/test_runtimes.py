"""Every runtime keeps the contract; a new one is a line here."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.runtimes.secure import SecureRuntime
from fedsynth.federation.secure.rules import Rules
from tests.federation.runtimes.contract import (
    Build,
    check_runtime,
    takes_memory_for_an_answer_and_not_for_all,
)


def secure(owners, private=None):
    """All but one of so many owners are enough."""
    return SecureRuntime(owners, Rules(len(owners), max(2, len(owners) - 1), 0), private)


RUNTIMES: dict[str, Build] = {"local": LocalRuntime, "secure": secure}


@check_runtime
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime(runtime, check, tmp_path: Path):
    if runtime == "secure" and check is takes_memory_for_an_answer_and_not_for_all:
        pytest.skip("at most 100 owners, whose answers wait for each other")
    check(RUNTIMES[runtime], tmp_path)
