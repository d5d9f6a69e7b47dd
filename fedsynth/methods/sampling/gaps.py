"""A table with gaps to fill: what its cells tell, and the same rows without gaps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.data.conforming import Conformed, conform, restore
from fedsynth.schema import Identifier, Schema
from fedsynth.schema.deriving import fill_back, is_gap, settle


@dataclass(eq=False)
class Known:
    """The cells of one table, by its schema."""

    schema: Schema
    cells: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)

    def read(self, frame: pd.DataFrame) -> Conformed:
        """The table, in which any column may have gaps or be absent, as arrays of the columns.

        A gap that follows from other cells of its row (an equal column, the rest of a total) is
        filled already.

        Raises:
            DataError: a table that the schema does not fit.
        """
        gaps = frame.copy()
        for column in self.schema.observed:
            if column.name not in gaps:
                gaps[column.name] = None
        conformed = conform(gaps, _with_gaps(self.schema), "table to impute")
        self.cells = dict(conformed.columns)
        of = {column.name: column for column in self.schema.columns}
        self.told = fill_back(self.cells, self.schema.derivations, of)
        return replace(conformed, columns=self.told)

    def fill(
        self, frame: pd.DataFrame, drawn: pd.DataFrame, rng: np.random.Generator
    ) -> pd.DataFrame:
        """The table with its gaps filled from whole rows of its schema.

        Parts that were drawn are moved until they sum to a total that the table holds, where they
        can.
        """
        if self.schema.derivations:
            of = {column.name: column for column in self.schema.columns}
            whole = self.schema.derive(conform(drawn, self.schema).columns)
            moved = settle(whole, self.told, self.schema.derivations, of)
            drawn = restore(moved, self.schema, rng)
        filled = frame.copy()
        for column in self.schema.observed:
            absent = is_gap(self.cells[column.name])
            if column.name not in filled:
                filled[column.name] = drawn[column.name].to_numpy()
            elif absent.any():
                values = drawn[column.name].to_numpy()[absent]
                filled[column.name] = filled[column.name].astype(object)
                filled.loc[filled.index[absent], column.name] = values
                filled[column.name] = filled[column.name].infer_objects()
        return filled


def _with_gaps(schema: Schema) -> Schema:
    """The schema of a table in which any cell may be missing, also whose a row is, and none follows
    from others."""
    columns = [
        column if isinstance(column, Identifier) else column.model_copy(update={"missing": True})
        for column in schema.columns
    ]
    changed = {"columns": tuple(columns), "target": None, "person": None}
    return schema.whole.model_copy(update=changed)
