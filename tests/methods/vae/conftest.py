"""What all tests of the VAE share."""

from __future__ import annotations

import pytest

from fedsynth.models import matching


@pytest.fixture(autouse=True, scope="package")
def few_draws():
    """A decoder is matched to its tables over an eighth of the draws, which takes half of a small
    fit; how near it comes has tests of its own (`tests/models/test_matching.py`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_DRAWS", 512)
        yield
