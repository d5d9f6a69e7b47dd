"""The accountant under test answers for itself."""

from __future__ import annotations

import pytest

from fedsynth.privacy import losses


@pytest.fixture(autouse=True)
def _unknown_costs(monkeypatch):
    monkeypatch.setattr(losses, "epsilon", losses.epsilon.__wrapped__)
