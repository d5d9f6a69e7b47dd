"""How many releases a budget allows, remembered: the exact bound takes seconds."""

from __future__ import annotations

from collections.abc import Callable

from fedsynth.privacy.terms import Terms

Counts = dict[Terms, int]


class Limits:
    """The most releases under some terms that fit beside all others.

    Args:
        fits: whether a number of releases of each terms fits the budget; of more, never sooner.
    """

    def __init__(self, fits: Callable[[Counts], bool]) -> None:
        self._fits = fits
        self._found: dict[tuple[frozenset[tuple[Terms, int]], Terms], int] = {}

    def of(self, made: Counts, terms: Terms, wanted: int) -> int:
        """Releases under ``terms`` that fit beside the others made, those made included.

        Whatever is wanted first: a refusal must not stand for what was never weighed.
        """
        others = {t: n for t, n in made.items() if t != terms}
        key = (frozenset(others.items()), terms)
        if key not in self._found:
            self._found[key] = self._most(others, terms, made.get(terms, 0), wanted)
        return self._found[key]

    def _most(self, others: Counts, terms: Terms, made: int, wanted: int) -> int:
        low, high = made, wanted
        # A cap on participations can make more rounds free: then the search ends here.
        while high < 2**30 and self._fits({**others, terms: high}):
            low, high = high, 2 * high - made
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._fits({**others, terms: middle})
            low, high = (middle, high) if fits else (low, middle)
        return low
