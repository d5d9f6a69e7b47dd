"""The marginals that AIM may ask for, and what each would bring."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import Clique, Domain, Measurement
from fedsynth.methods.marginal.settings import AIMSettings
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

# Counts below so many deviations of the noise weigh alike in a candidate's score.
_FLOOR = 2.0
# Counts that a question may have: 128 MB an answer.
_MOST_COUNTS = 2**24

Array = NDArray[np.float64]


def workload_of(schema: Schema, settings: AIMSettings, domain: Domain) -> list[Clique]:
    """The marginals that matter, none larger than a model may be."""
    workload, everything = settings.workload, range(len(domain))
    names = [column.name for column in schema.modelled]
    target = None if schema.target_column is None else target_index(schema)
    if isinstance(workload, tuple):
        sets = [tuple(sorted(names.index(name) for name in some)) for some in workload]
    else:
        sets = list(itertools.combinations(everything, 2))
        if workload == "triples":
            sets += itertools.combinations(everything, 3)
        elif workload == "target-triples" and target is not None:
            sets += [tuple(sorted((*pair, target))) for pair in sets if target not in pair]
    alone = sum(domain.sizes)
    limit = settings.max_cells - alone
    fitting = [c for c in dict.fromkeys(sets) if domain.cells(c) <= limit]
    if sum(map(domain.cells, maximal(fitting))) > _MOST_COUNTS:
        fitting = [c for c in fitting if len(c) < 3]
    return fitting


def maximal(cliques: Sequence[Clique]) -> list[Clique]:
    """Those that lie within no other: their sums tell of the others too."""
    inside = {
        part
        for clique in cliques
        for size in range(1, len(clique))
        for part in itertools.combinations(clique, size)
    }
    return [clique for clique in cliques if clique not in inside]


def gain(
    m: Measurement, expected: Array, drawn: float, fine: float | Array, sure: float = 1.0
) -> float:
    """How much nearer the model would come to a marginal by measuring it, in records.

    The distance is estimated from the coarse sum m: squared errors, each less its expected noise
    and divided by about what the cell holds, bound the L1 distance (Cauchy-Schwarz). One deviation
    of that estimate is taken off, or large tables would win by their noise alone; and so is what
    measuring brings in noise, at most a cell's own count.

    Args:
        expected: the model's counts, estimated from rows that stand for ``drawn`` records each.
        fine: deviation of the noise that measuring would bring.
        sure: deviations by which squared errors must exceed their noise's to count at all.
    """
    noise = m.deviations**2 + expected * drawn
    weights = 1 / (expected + _FLOOR * m.deviations + 1.0)
    excess = float((weights * ((m.values - expected) ** 2 - noise)).sum())
    deviation = math.sqrt(2 * float(((weights * noise) ** 2).sum()))
    excess = excess - deviation if excess > sure * deviation else 0.0
    distance = math.sqrt(max(excess, 0.0) * float(expected.sum()))
    return distance - float(np.minimum(math.sqrt(2 / math.pi) * fine, expected).sum())
