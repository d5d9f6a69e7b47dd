"""Combinations that released counts show to be next to empty, drawn never or hardly ever.

Noise leaves something in every cell of a table that is fitted to counts which cannot be below 0. In
the many cells that no record is in it adds up: of Adult's education and education-num, each of
which settles the other, three rows in a hundred did not go together. What was released tells so:
single cells that lie far below what their columns alone would put there, values of a column that go
with one of another's, and whole tables that are next to empty but for one cell a value. All of it
is post-processing.

What is taken for empty may hold some: at most about two deviations of the noise in its count, by
which the model would be off in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.marginals import (
    Clique,
    Evidence,
    Measurement,
    Model,
    find_empty,
    fit,
    tell_empty,
)
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

_ITERATIONS, _TOLERANCE = 20, 1e-4

Mask = NDArray[np.bool_]


def keep_sense(model: Model, measurer: Measurer) -> Model:
    """The model with structural zeros where what was released shows next to nobody."""
    evidence, target = Evidence(measurer.measurements), _target(measurer.schema)
    pairs = sorted({pair for clique in model.tree.cliques for pair in combinations(clique, 2)})
    zeros = find_empty(evidence, pairs, model.total, target)
    outside = find_outside(model, measurer.measurements, measurer.schema)
    names = [column.name for column in measurer.schema.modelled]
    if outside:
        measurer.remarks.append(
            "rows that drew a combination of values that released counts show next to nobody in "
            "exchange values with others, where such are found: "
            f"{tell_empty(outside, names)}"
        )
    if not zeros:
        return model
    try:
        kept = fit(
            measurer.domain,
            evidence.select(model.tree, pairs),
            total=model.total,
            start=model,
            zeros=[*measurer.zeros, *zeros],
            iterations=_ITERATIONS,
            tolerance=_TOLERANCE,
        )
    except ConfigError:
        # Of several tables that go through each other's cells none may be left.
        return model
    measurer.remarks.append(
        "combinations of values that released counts show next to nobody in are never drawn: "
        f"{tell_empty(zeros, names)}"
    )
    return kept


def find_outside(
    model: Model, measurements: Sequence[Measurement], schema: Schema
) -> list[tuple[Clique, Mask]]:
    """Of the pairs that no clique of the model's tree holds, so that none of its factors can
    forbid them, those with cells next to empty, and these."""
    inside = {pair for clique in model.tree.cliques for pair in combinations(clique, 2)}
    pairs = [pair for pair in combinations(range(len(model.domain)), 2) if pair not in inside]
    return find_empty(Evidence(measurements), pairs, model.total, _target(schema))


def _target(schema: Schema) -> int | None:
    return None if schema.target_column is None else target_index(schema)
