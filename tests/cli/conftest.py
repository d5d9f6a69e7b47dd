"""What the tests of all commands share."""

from __future__ import annotations

import pytest

from fedsynth.evaluation.measures import agreement, utility
from fedsynth.evaluation.models import classifiers, regressors


@pytest.fixture(autouse=True, scope="module")
def small_models():
    """Neither how well models learn nor how surely they are ranked is the matter here."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (classifiers, regressors):
            patch.setattr(module, "TREES", 4)
        patch.setattr(utility, "STANDARD", 2)
        patch.setattr(utility, "SETTINGS", utility.SETTINGS[:2])
        patch.setattr(agreement, "_ROUNDS", 5)
        yield
