"""How far a model's counts may be off, by what is known of the noise and by how they fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.marginals import Clique, Measurement, Model, estimate_marginal

_WELL, _ROUGHLY = 0.1, 0.5
"""Error of a count, as a share of what a cell holds on average, up to which it may be used."""


def bound_errors(
    counts: NDArray[np.float64], measured: Measurement, level: float
) -> NDArray[np.float64]:
    """By how much each of a model's counts may be off, with probability `level` each.

    The truth lies within the noise of what was measured, and the model may lie elsewhere.
    """
    reach = NormalDist().inv_cdf(0.5 + level / 2)
    return np.asarray(np.abs(counts - measured.values) + reach * np.asarray(measured.deviations))


def tabulate_errors(
    model: Model,
    measurements: Sequence[Measurement],
    names: Sequence[str],
    tables: Sequence[Clique] | None,
    level: float,
) -> pd.DataFrame:
    """See :meth:`fedsynth.methods.marginal.graphical.GraphicalSynthesizer.errors`.

    tables: columns of each table; None for all columns and all pairs that were measured.
    """
    if tables is None:
        pairs = {pair for one in measurements for pair in combinations(one.clique, 2)}
        tables = [*((k,) for k in range(len(names))), *sorted(pairs)]
    rows = []
    for clique in tables:
        cells = model.domain.cells(clique)
        found = estimate_marginal(measurements, clique)
        held = model.total / cells
        row: dict[str, object] = {"columns": ", ".join(names[k] for k in clique)}
        row |= {"cells": cells, "records": held}
        if found is None:
            rows.append(row | {"error": np.nan, "worst": np.nan, "use": "not measured"})
            continue
        off = bound_errors(model.marginal(clique) * model.total, found, level)
        error = float(off.mean())
        use = "well" if error <= _WELL * held else "roughly"
        use = use if error <= _ROUGHLY * held else "hardly"
        rows.append(row | {"error": error, "worst": float(off.max()), "use": use})
    return pd.DataFrame(rows, columns=["columns", "cells", "records", "error", "worst", "use"])
