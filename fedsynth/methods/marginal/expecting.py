"""The size and the noise of a graphical model's tables before any is asked.

Numbers are taken to have as many codes as bins are wanted, evenly over the column's range; the real
bins hang on the noisy histogram. Noise is exact for such codes: that of sums of independent cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.nominal import nominal_encoding
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

EVEN = (
    "Columns of numbers are taken to be even over their range. Real bins, which set frequent "
    "values apart, mostly have less noise."
)
FITTED = (
    "Errors are of the noisy tables that are asked. The rows come from a model that is fitted to "
    "all of them: AIM's median pair, on four tables at epsilon 1, was off by a third of what "
    "stands here for pairs asked coarsely, and the worst by up to three times that."
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
    """

    label: str
    number: float
    cliques: Sequence[Clique]
    what: str
    total: int
    by_size: bool = False

    def deviations(self, domain: Domain, scale: float) -> dict[Clique, float]:
        """Of the noise in a cell of each, if it is asked, beside others as they are on average.

        Args:
            scale: of the noise of a message.
        """
        sizes = {c: domain.cells(c) ** (1 / 3) if self.by_size else 1.0 for c in self.cliques}
        whole = scale * math.sqrt(self.number * _mean(size**2 for size in sizes.values()))
        return {clique: whole / size for clique, size in sizes.items()}


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
    sizes = {HISTOGRAM.name: float(layout.dim)}
    errors = _column_errors(encoding, terms.summed_scale(plan.clients))
    tables: list[ExpectedError] = []
    target = None if schema.target_column is None else target_index(schema)
    known: dict[str, list[dict[Clique, float]]] = {}
    for one in asked_of(domain):
        scale = plan.terms(one.label).summed_scale(plan.clients)
        sizes[one.label] = one.number * _mean(map(domain.cells, one.cliques))
        for what, found in _deviations(domain, one, scale, target).items():
            known.setdefault(what, []).append(found)
            tables.append(_error(f"{what}, {one.what}", domain, found))
    for what, several in known.items():
        if len(several) > 1:
            both = {c: sum(s[c] ** -2 for s in several if c in s) ** -0.5 for c in several[0]}
            tables.append(_error(f"{what}, both together", domain, both))
    tables.sort(key=lambda error: (error.what.split(",")[0], -error.error))
    numbers = any(one is not None for one in encoding.bins)
    return Expected(sizes, (*errors, *tables), (EVEN, FITTED) if numbers else (FITTED,))


def _column_errors(encoding: TableEncoding, sigma: float) -> list[ExpectedError]:
    """Of the histogram: what all its levels and columns together tell of a code."""
    zeros = np.zeros(HistogramLayout.of(encoding.schema).dim)
    kinds: dict[str, list[float]] = {}
    sizes: dict[str, list[int]] = {}
    for own, bins in zip(tally(encoding, zeros, sigma), encoding.bins, strict=True):
        kind = "columns of categories" if bins is None else "columns of numbers, in even bins"
        kinds.setdefault(kind, []).append(MAGNITUDE * _mean(own.deviations))
        sizes.setdefault(kind, []).append(len(own.deviations))
    return [ExpectedError(kind, _mean(kinds[kind]), _mean(sizes[kind])) for kind in sorted(kinds)]


def _deviations(
    domain: Domain, one: Asked, scale: float, target: int | None
) -> dict[str, dict[Clique, float]]:
    """Of every pair and triple within a message's tables: by kind, then by its columns."""
    holding: dict[Clique, list[float]] = {}
    for whole, deviation in one.deviations(domain, scale).items():
        for width in (2, 3):
            for part in itertools.combinations(whole, width):
                summed = domain.cells(whole) / domain.cells(part)
                holding.setdefault(part, []).append(deviation * summed**0.5)
    # Of those that hold a part, so many are asked on average; a part that is known, at least once.
    asked = min(1.0, one.total / len(one.cliques))
    found: dict[str, dict[Clique, float]] = {}
    for part, several in holding.items():
        what = {2: "pairs", 3: "triples"}[len(part)] + " with the target" * (target in part)
        certain = _mean(x**-2 for x in several) * max(1.0, asked * len(several))
        found.setdefault(what, {})[part] = certain**-0.5
    return found


def _error(what: str, domain: Domain, deviations: dict[Clique, float]) -> ExpectedError:
    """The mean over all such tables."""
    error = MAGNITUDE * _mean(deviations.values())
    return ExpectedError(what, error, _mean(map(domain.cells, deviations)))


def _mean(values: Iterable[float]) -> float:
    several = list(values)
    return float(sum(several)) / len(several)
