"""Columns that a table lacks and its others tell: the total of a sum, or one of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Datetime
from fedsynth.schema.constraints import Sum, number_of
from fedsynth.schema.frames import with_columns
from fedsynth.schema.moments import moments, zoned_moments
from fedsynth.schema.ordering import lead
from fedsynth.schema.rounding import decimals_of

if TYPE_CHECKING:
    import pandas as pd

    from fedsynth.schema.table import Schema


def complete(frame: pd.DataFrame, schema: Schema, names: Iterable[str]) -> pd.DataFrame:
    """The table with those of these columns that it lacks and a sum tells: days between two dates.

    A cell is missing where another of the sum is, and may be out of its column's bounds, as others.
    """
    wanted = {name for name in names if name not in frame}
    for one in (one for one in schema.constraints if isinstance(one, Sum)):
        absent = [name for name in one.names() if name not in frame]
        if len(absent) == 1 and wanted.issuperset(absent):
            frame = with_columns(frame, {absent[0]: _work_out(frame, schema, one, absent[0])})
    return frame


def _work_out(frame: pd.DataFrame, schema: Schema, one: Sum, name: str) -> pd.Series:
    import pandas as pd

    columns = {known: number_of(schema.column(known)) for known in one.names()}
    read = {
        known: read_cells(frame[known], columns[known], schema.missing_values).values
        for known in columns
        if known != name
    }
    more = lead(columns[one.total], [columns[part] for part in one.parts])
    rest = np.sum([read[part] for part in one.parts if part != name], axis=0) + more
    values = rest if name == one.total else read[one.total] - rest
    column = columns[name]
    if isinstance(column, Datetime):
        # What is out of bounds is so by a unit: dates have an end.
        values = np.clip(values, column.low - column.unit, column.high + column.unit)
        found = (moments if column.zone is None else zoned_moments)(values, column)
    else:
        # Decimal numbers are not exact.
        found = pd.Series(np.round(values, decimals_of(column)) + 0.0)
    return found.set_axis(frame.index)
