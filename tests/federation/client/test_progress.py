"""Progress of simulated clients."""

from __future__ import annotations

from fedsynth.federation.client.progress import advanced, watched


def test_whoever_watches_is_told_and_nobody_else():
    outer, inner = [], []
    advanced(5)
    with watched(outer.append):
        advanced()
        with watched(inner.append):
            advanced(3)
        advanced(2)
    advanced(7)
    assert (outer, inner) == ([1, 2], [3])
