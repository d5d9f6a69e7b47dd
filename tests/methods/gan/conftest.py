"""What all tests of GANs share."""

from __future__ import annotations

import pytest

from fedsynth.methods.training import watch


@pytest.fixture(autouse=True, scope="package")
def few_pairs():
    """Generators are looked at in an eighth of the rows, which takes a tenth of a small fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "_PAIRS", 128)
        yield
