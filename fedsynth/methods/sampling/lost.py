"""What rows lack that records may have, by rows that a fitted method draws."""

from __future__ import annotations

import pandas as pd

from fedsynth.encoding.histogram import grid_of
from fedsynth.schema import Boolean, Categorical, Modelled, Schema
from fedsynth.views import listed

_SEVERAL = 4
"""Values of a category from which on it is told that most are missing."""


def lost_remarks(drawn: pd.DataFrame, schema: Schema) -> tuple[str, ...]:
    """Columns that might vary and do not, and categories of which most values never come up, in
    sentences. A function of what is released: a fit that told little of a column is told of."""
    constant, poor = list[str](), list[str]()
    for column in schema.modelled:
        cells = drawn[column.name]
        if _may_vary(column) and cells.nunique(dropna=False) == 1:
            constant.append(column.name)
        elif isinstance(column, Categorical) and (values := len(column.values)) >= _SEVERAL:
            absent = values - int(pd.Series(column.values).isin(cells.unique()).sum())
            poor += [f"{column.name} ({absent} of {values})"] if 2 * absent > values else []
    rows = f"{len(drawn):,} rows that were drawn"
    told = []
    if constant:
        told.append(
            f"{listed(constant)}: one value alone in {rows}, whatever records have: within this "
            "budget the noise hides the others, if there are any"
        )
    if poor:
        told.append(
            f"most values of these columns never come up in {rows}, whatever records have: "
            f"{listed(poor)}"
        )
    return tuple(told)


def _may_vary(column: Modelled) -> bool:
    if isinstance(column, Categorical | Boolean):
        return len(column.categories) + column.missing > 1
    return grid_of(column).units + column.missing > 1
