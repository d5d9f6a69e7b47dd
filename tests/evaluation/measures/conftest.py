"""SDMetrics' scores are the matter here: of every column."""

from __future__ import annotations

import pytest

from fedsynth.evaluation.measures import fidelity, quality
from tests.running import EVERY_COLUMN


@pytest.fixture(autouse=True)
def _every_column(monkeypatch):
    for module in (fidelity, quality):
        monkeypatch.setattr(module, "MOST_COLUMNS", EVERY_COLUMN)
