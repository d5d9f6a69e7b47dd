from __future__ import annotations

import pytest
from hypothesis import settings

# Machines differ; no test has a time limit.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A runtime that breaks the contract is told by what, as in tests themselves.
pytest.register_assert_rewrite("tests.federation.runtimes.contract")
