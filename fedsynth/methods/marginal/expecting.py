"""The size and the noise of a graphical model's tables before any is asked.

Numbers are taken to have as many codes as bins are wanted, where a normal column has them; the real
bins hang on the noisy histogram. Noise is exact for such codes: that of sums of independent cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.nominal import document_bytes, nominal_encoding
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tallies import tally
from fedsynth.marginals import Clique, Domain
from fedsynth.methods.marginal.measurer import finest_bins
from fedsynth.queries.counting import deviation_of
from fedsynth.queries.expected import Expected, ExpectedError
from fedsynth.queries.plan import Plan
from fedsynth.queries.tasks.counting import HISTOGRAM
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

# Of a normal variable: its mean magnitude over its deviation.
MAGNITUDE = math.sqrt(2 / math.pi)

# How much longer finer bins are in writing, for as many codes: they cut wherever the others do.
_FINER = 2.5

NOMINAL = (
    "Columns of numbers are taken to be normal, a thirtieth of their range wide: real ones fill "
    "their bounds as little. Their range is that from numbers close above the lower bound to such "
    "that are even over both, since the rows decide how bins are cut. Rare categories share a "
    "code, which can make a column of them a sixth worse. Pairs with the target are summed over "
    "other columns' codes, and better where those have fewer: up to a quarter, on four tables."
)
FITTED = (
    "Errors are of the noisy tables that are asked. The rows come from a model that is fitted to "
    "all of them: AIM's median pair, on four tables at epsilon 1, was off by a third of what "
    "stands here for pairs asked coarsely, and the worst by up to three and a half times that."
)
CHOSEN = (
    "Which tables are asked again, and how many, AIM decides by what the coarse ones show: at "
    "the least one in a message, which has little noise then, and where nothing new stands above "
    "its noise, small tables of the model once more."
)


@dataclass(frozen=True)
class Asked:
    """Tables that messages of ``label`` ask, before it is known which.

    Attributes:
        number: of tables in a message on average, which share its noise.
        cliques: those among which they are; all of them where there are so many.
        what: "asked coarsely", ..
        total: tables in all messages of the label together.
        by_size: whether a table's noise goes with the inverse of the third root of its cells.
        small_first: whether how likely a table is asked goes with the inverse of its cells.
        alone: the share of a message's squared weights that columns by themselves have beside.
        together: how many of the tables hold a pair with the target, if any does.
        share: of the label's messages that ask so.
        fewest, most: tables that a message may ask, where it hangs on what was released before; the
            most are such with the target. Both 0 where it does not.
    """

    label: str
    number: float
    cliques: Sequence[Clique]
    what: str
    total: int
    by_size: bool = False
    small_first: bool = False
    alone: float = 0.0
    together: float = 0
    share: float = 1.0
    fewest: float = 0
    most: float = 0

    def chances(self, domain: Domain) -> dict[Clique, float]:
        """How likely each is asked in some message."""
        weights = {c: 1.0 / domain.cells(c) if self.small_first else 1.0 for c in self.cliques}
        if self.total >= len(weights):
            return dict.fromkeys(weights, 1.0)
        share = self.total / sum(weights.values())
        return {clique: min(1.0, share * weight) for clique, weight in weights.items()}

    def deviations(self, domain: Domain, scale: float) -> dict[Clique, float]:
        """Of the noise in a cell of each, if it is asked, beside others as they are on average.

        Args:
            scale: of the noise of a message.
        """
        sizes = {c: domain.cells(c) ** (1 / 3) if self.by_size else 1.0 for c in self.cliques}
        others = _mean((size**2 for size in sizes.values()), self.chances(domain).values())
        beside = max(0.0, self.number - 1) * others
        own = scale / math.sqrt(1 - self.alone)
        return {c: own * math.sqrt(1 + beside / size**2) for c, size in sizes.items()}


@dataclass(frozen=True)
class _Known:
    """Tables of one kind as one question tells of them: the deviation of a cell's noise, and how
    many tables are asked that hold them, by their columns."""

    deviations: dict[Clique, float]
    asked: dict[Clique, float]

    def error(self, what: str, domain: Domain) -> ExpectedError:
        """The mean over all such tables that are asked."""
        weights = [min(1.0, self.asked[clique]) for clique in self.deviations]
        cells = _mean(map(domain.cells, self.deviations), weights)
        return ExpectedError(what, MAGNITUDE * _mean(self.deviations.values(), weights), cells)


def fitting_pairs(domain: Domain, most: int) -> list[Clique]:
    """Pairs of columns whose tables have at most so many cells."""
    every = itertools.combinations(range(len(domain)), 2)
    return [pair for pair in every if domain.cells(pair) <= most]


def expect_tables(
    schema: Schema,
    bins: int,
    plan: Plan,
    asked_of: Callable[[Domain], Sequence[Asked]],
    records: float = 0.0,
) -> Expected:
    """Sizes of all answers, and the errors of columns, pairs and triples, by question.

    Args:
        asked_of: what is asked of a table of so many codes a column.
        records: by which columns are counted finer, each by itself.
    """
    encoding = nominal_encoding(schema, bins)
    domain, layout = Domain(encoding.sizes), HistogramLayout.of(schema)
    terms = plan.terms(HISTOGRAM.name)
    sizes, arrays = {HISTOGRAM.name: float(layout.dim)}, {HISTOGRAM.name: 0.0}
    sigma = deviation_of(terms, plan.clients)
    finer = nominal_encoding(schema, finest_bins(bins, records, sigma))
    errors = _column_errors(schema, bins, sigma)
    tables: list[ExpectedError] = []
    target = None if schema.target_column is None else target_index(schema)
    known: dict[str, list[_Known]] = {}
    asked = asked_of(domain)
    for one in asked:
        own_terms = plan.terms(one.label)
        scale = deviation_of(own_terms, plan.clients)
        if own_terms.norm == "l1":
            # So many tables alike share a row's L1 norm, where roots of shares are reckoned with.
            scale *= math.sqrt(one.number)
        chances = one.chances(domain)
        cells = one.number * _mean(map(domain.cells, one.cliques), chances.values())
        # Of a table its columns, their number and a weight, of eight bytes each.
        width = _mean((len(clique) for clique in one.cliques), chances.values())
        wide = 8 * one.number * (width + 2)
        if one.alone:
            cells += sum(finer.sizes)
            wide += 8 * 3 * len(domain)
        sizes[one.label] = sizes.get(one.label, 0.0) + one.share * cells
        arrays[one.label] = arrays.get(one.label, 0.0) + one.share * wide
        parts = _parts(domain, one, scale, target)
        fewer, more = (
            _parts(domain, replace(one, number=number), scale, target) if number else parts
            for number in (one.fewest, one.most)
        )
        for what, found in parts.items():
            known.setdefault(what, []).append(found)
            own = found.error(f"{what}, {one.what}", domain)
            if one.fewest:
                least = fewer[what].error(what, domain).error
                most = (more if "target" in what else parts)[what].error(what, domain).error
                own = replace(own, least=least, most=most)
            tables.append(own)
    for what, several in known.items():
        if len(several) > 1:
            last = several[-1]
            both = {
                c: _combine([s.deviations[c] for s in several if c in s.deviations])
                for c in last.deviations
            }
            tables.append(_Known(both, last.asked).error(f"{what}, both together", domain))
    tables.sort(key=lambda error: (error.what.split(",")[0], -error.error))
    numbers = any(one is not None for one in encoding.bins)
    notes = (NOMINAL, FITTED) if numbers else (FITTED,)
    announced = document_bytes(encoding)
    if any(one.fewest for one in asked):
        notes = (*notes, CHOSEN)
    if any(one.alone for one in asked):
        announced += numbers * _FINER * document_bytes(finer)
    return Expected(sizes, arrays, announced, (*errors, *tables), notes)


def range_over(several: Sequence[Expected], note: str) -> Expected:
    """The first, with the range of its errors over all of them."""
    errors = []
    for error in several[0].errors:
        same = [one for other in several for one in other.errors if one.what == error.what]
        least = min(one.error if one.least is None else one.least for one in same)
        most = max(one.error if one.most is None else one.most for one in same)
        if least < error.error or most > error.error:
            error = replace(error, least=least, most=most)
        errors.append(error)
    return replace(several[0], errors=tuple(errors), notes=(*several[0].notes, note))


@lru_cache(32)
def _column_errors(schema: Schema, bins: int, sigma: float) -> tuple[ExpectedError, ...]:
    """Of the histogram: what all its levels and columns together tell of a code. Of numbers with
    the range over their shapes, by which their bins are cut."""
    narrow, low, even, usual = (
        _column_noise(nominal_encoding(schema, bins, shape), sigma)
        for shape in ("narrow", "low", "even", "usual")
    )
    errors = []
    for kind in sorted(narrow):
        error, cells = narrow[kind][0], usual[kind][1]
        others = [shape[kind][0] for shape in (narrow, low, even, usual)]
        found = ExpectedError(kind, error, cells)
        if min(others) < max(others):
            found = replace(found, least=min(others), most=max(others))
        errors.append(found)
    return tuple(errors)


def _column_noise(encoding: TableEncoding, sigma: float) -> dict[str, tuple[float, float]]:
    """The mean error and number of codes of columns, by kind."""
    zeros = np.zeros(HistogramLayout.of(encoding.schema).dim)
    errors: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    for own, bins in zip(tally(encoding, zeros, sigma), encoding.bins, strict=True):
        kind = "columns of categories" if bins is None else "columns of numbers"
        errors.setdefault(kind, []).append(MAGNITUDE * _mean(own.deviations))
        sizes.setdefault(kind, []).append(len(own.deviations))
    return {kind: (_mean(errors[kind]), _mean(sizes[kind])) for kind in errors}


def _parts(domain: Domain, one: Asked, scale: float, target: int | None) -> dict[str, _Known]:
    """Every pair and triple within a message's tables, by kind."""
    chances = one.chances(domain)
    certain: dict[Clique, float] = {}
    asked: dict[Clique, float] = {}
    # In scales, which may be 0.
    for whole, deviation in one.deviations(domain, 1.0).items():
        for width in (2, 3):
            for part in itertools.combinations(whole, width):
                summed = domain.cells(whole) / domain.cells(part)
                # Inverse variances add up.
                own = chances[whole] / (deviation**2 * summed)
                certain[part] = certain.get(part, 0.0) + own
                asked[part] = asked.get(part, 0.0) + chances[whole]
    found: dict[str, _Known] = {}
    for part, number in asked.items():
        what = {2: "pairs", 3: "triples"}[len(part)] + " with the target" * (target in part)
        kind = found.setdefault(what, _Known({}, {}))
        # A part that is known at all is in one table at least.
        held = one.together if one.together and len(part) == 2 and target in part else 1.0
        kind.deviations[part] = scale * (certain[part] * max(1.0, held / number)) ** -0.5
        kind.asked[part] = number
    return found


def _mean(values: Iterable[float], weights: Iterable[float] | None = None) -> float:
    several = list(values)
    shares = [1.0] * len(several) if weights is None else list(weights)
    whole = sum(value * share for value, share in zip(several, shares, strict=True))
    return float(whole / sum(shares))


def _combine(deviations: Sequence[float]) -> float:
    """The standard deviation of the best mean of measurements with these."""
    if min(deviations) == 0:
        return 0.0
    return 1.0 / math.sqrt(math.fsum(one**-2 for one in deviations))
