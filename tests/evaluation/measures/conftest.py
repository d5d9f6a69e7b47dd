"""SDMetrics' scores are the matter here: of every column."""

from __future__ import annotations

import pytest

from fedsynth.evaluation.measures import fidelity, quality


@pytest.fixture(autouse=True)
def _every_column(monkeypatch):
    monkeypatch.setattr(quality, "MOST_COLUMNS", fidelity.MOST_COLUMNS)
