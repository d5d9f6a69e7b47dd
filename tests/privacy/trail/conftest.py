"""The accountant is another folder's matter: here both sides of every comparison ask it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _exact_costs():
    """In place of the exact ones: on the wide mesh, each composition once a run."""
