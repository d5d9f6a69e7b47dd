"""The marginals that AIM may ask for, and what each would bring."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from fedsynth.marginals import Clique, Domain
from fedsynth.methods.marginal.settings import AIMSettings
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

# Counts that a question may have: 128 MB an answer.
_MOST_COUNTS = 2**24


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
