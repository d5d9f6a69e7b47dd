"""Terms as the second accountant's charges, for tests of either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fedsynth.privacy.sampling import FixedSize
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.verify.charges import Charge


def charge_of(terms: Terms) -> Charge:
    """What terms say, taken at their word: by no rule of who is charged."""
    kind, rate = terms.sampling.kind, terms.sampling.rate
    if isinstance(terms.sampling, FixedSize):
        rate = terms.sampling.size / terms.sampling.population
    kind = "everyone" if (kind, rate) == ("poisson", 1) else kind
    return Charge(terms.mechanism, terms.noise_multiplier, terms.alpha, kind, rate)


def charges_of(counts: Mapping[Terms, int]) -> dict[Charge, int]:
    """Counts of terms, those that cost alike together."""
    found: Counter[Charge] = Counter()
    for terms, count in counts.items():
        found[charge_of(terms)] += count
    return dict(found)
