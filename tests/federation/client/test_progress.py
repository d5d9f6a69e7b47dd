"""Progress of simulated clients."""

from __future__ import annotations

from fedsynth.federation.client.progress import advance, watch


def test_whoever_watches_is_told_and_nobody_else():
    outer, inner = [], []
    advance(5)
    with watch(outer.append):
        advance()
        with watch(inner.append):
            advance(3)
        advance(2)
    advance(7)
    assert (outer, inner) == ([1, 2], [3])
