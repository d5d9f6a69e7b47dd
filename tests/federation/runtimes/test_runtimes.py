"""Every runtime keeps the contract; a new one is a line here."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsynth.federation.runtimes.local import LocalRuntime
from tests.federation.runtimes.contract import Build, check_runtime

RUNTIMES: dict[str, Build] = {
    "local": LocalRuntime,
}


@check_runtime
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime(runtime, check, tmp_path: Path):
    check(RUNTIMES[runtime], tmp_path)
