"""The size and the noise of a graphical model's tables before any is asked.

Numbers are taken to have as many codes as bins are wanted, where a normal column has them; the real
bins hang on the noisy histogram. Noise is exact for such codes: that of sums of independent cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.nominal import document_bytes, nominal_encoding
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tallies import tally
from fedsynth.marginals import Clique, Domain
from fedsynth.queries.expected import Expected, ExpectedError
from fedsynth.queries.plan import Plan
from fedsynth.queries.tasks.counting import HISTOGRAM
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

# Of a normal variable: its mean magnitude over its deviation.
MAGNITUDE = math.sqrt(2 / math.pi)

NOMINAL = (
    "Columns of numbers are taken to be normal, a twelfth of their range wide: real ones fill "
    "their bounds as little. Over nine tables their mean error was .89 to 1.1 times what stands "
    "here; where noise hides a column's shape altogether, bins are few and wide, and it is up to "
    "twice as much."
)
FITTED = (
    "Errors are of the noisy tables that are asked. The rows come from a model that is fitted to "
    "all of them: AIM's median pair, on four tables at epsilon 1, was off by a third of what "
    "stands here for pairs asked coarsely, and the worst by up to three times that."
)
ADAPTED = (
    "How many records there are AIM knows once the histogram is released: where they are few for "
    "the noise it cuts numbers into fewer bins and asks fewer tables, with more in a cell."
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
    """

    label: str
    number: float
    cliques: Sequence[Clique]
    what: str
    total: int
    by_size: bool = False
    small_first: bool = False
    alone: float = 0.0

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
    schema: Schema, bins: int, plan: Plan, asked_of: Callable[[Domain], Sequence[Asked]]
) -> Expected:
    """Sizes of all answers, and the errors of columns, pairs and triples, by question.

    Args:
        asked_of: what is asked of a table of so many codes a column.
    """
    encoding = nominal_encoding(schema, bins)
    domain, layout = Domain(encoding.sizes), HistogramLayout.of(schema)
    terms = plan.terms(HISTOGRAM.name)
    sizes, arrays = {HISTOGRAM.name: float(layout.dim)}, {HISTOGRAM.name: 0.0}
    errors = _column_errors(encoding, terms.summed_scale(plan.clients))
    tables: list[ExpectedError] = []
    target = None if schema.target_column is None else target_index(schema)
    known: dict[str, list[_Known]] = {}
    asked = asked_of(domain)
    for one in asked:
        scale = plan.terms(one.label).summed_scale(plan.clients)
        chances = one.chances(domain)
        sizes[one.label] = one.number * _mean(map(domain.cells, one.cliques), chances.values())
        # Of a table its columns, their number and a weight, of eight bytes each.
        width = _mean((len(clique) for clique in one.cliques), chances.values())
        arrays[one.label] = 8 * one.number * (width + 2)
        if one.alone:
            sizes[one.label] += sum(domain.sizes)
            arrays[one.label] += 8 * 3 * len(domain)
        for what, found in _parts(domain, one, scale, target).items():
            known.setdefault(what, []).append(found)
            tables.append(found.error(f"{what}, {one.what}", domain))
    for what, several in known.items():
        if len(several) > 1:
            last = several[-1]
            both = {
                c: sum(s.deviations[c] ** -2 for s in several if c in s.deviations) ** -0.5
                for c in last.deviations
            }
            tables.append(_Known(both, last.asked).error(f"{what}, both together", domain))
    tables.sort(key=lambda error: (error.what.split(",")[0], -error.error))
    numbers = any(one is not None for one in encoding.bins)
    notes = (NOMINAL, FITTED) if numbers else (FITTED,)
    announced = document_bytes(encoding)
    if any(one.alone for one in asked):
        notes = (*notes, ADAPTED)
        announced *= 1 + numbers
    return Expected(sizes, arrays, announced, (*errors, *tables), notes)


def _column_errors(encoding: TableEncoding, sigma: float) -> list[ExpectedError]:
    """Of the histogram: what all its levels and columns together tell of a code."""
    zeros = np.zeros(HistogramLayout.of(encoding.schema).dim)
    kinds: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    for own, bins in zip(tally(encoding, zeros, sigma), encoding.bins, strict=True):
        kind = "columns of categories" if bins is None else "columns of numbers"
        kinds.setdefault(kind, []).append(MAGNITUDE * _mean(own.deviations))
        sizes.setdefault(kind, []).append(len(own.deviations))
    return [ExpectedError(kind, _mean(kinds[kind]), _mean(sizes[kind])) for kind in sorted(kinds)]


def _parts(domain: Domain, one: Asked, scale: float, target: int | None) -> dict[str, _Known]:
    """Every pair and triple within a message's tables, by kind."""
    chances = one.chances(domain)
    certain: dict[Clique, float] = {}
    asked: dict[Clique, float] = {}
    for whole, deviation in one.deviations(domain, scale).items():
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
        kind.deviations[part] = (certain[part] * max(1.0, 1 / number)) ** -0.5
        kind.asked[part] = number
    return found


def _mean(values: Iterable[float], weights: Iterable[float] | None = None) -> float:
    several = list(values)
    shares = [1.0] * len(several) if weights is None else list(weights)
    whole = sum(value * share for value, share in zip(several, shares, strict=True))
    return float(whole / sum(shares))
