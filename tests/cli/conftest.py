"""What the tests of all commands share."""

from __future__ import annotations

import pytest

from fedsynth.evaluation.measures import agreement, detection, fidelity, utility
from fedsynth.evaluation.measures.detection import Detection
from fedsynth.evaluation.measures.quality import Quality
from fedsynth.evaluation.models import classifiers, regressors


@pytest.fixture(autouse=True, scope="module")
def small_models():
    """Neither how well models learn nor how surely they are ranked, nor what boosting or SDMetrics
    says of rows, is the matter here."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (classifiers, regressors):
            patch.setattr(module, "TREES", 4)
        patch.setattr(utility, "STANDARD", 2)
        patch.setattr(utility, "SETTINGS", utility.SETTINGS[:2])
        patch.setattr(agreement, "_ROUNDS", 5)
        guessed = Detection("gradient boosting", 0.5, 0.0, 1.0, None, None, None)
        patch.setattr(detection, "_boost", lambda *_: guessed)
        patch.setattr(fidelity, "quality", lambda *_: Quality(*[None] * 5))
        yield
