"""What in a table its schema does not allow: every value, with counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from fedsynth.schema.cells import Rule, read_cells, violations
from fedsynth.schema.columns import Identifier
from fedsynth.schema.table import Schema

TableRule = Literal["absent", "extra", "repeated"]
"""A column that the table lacks or the schema does not know; an identifier in several rows."""


@dataclass(frozen=True)
class Finding:
    """One value (as text; None for a whole column or a missing cell) that breaks a rule.

    `count` is the exact number of private rows it stands in: for the owner's eyes only.
    """

    column: str
    rule: Rule | TableRule
    value: str | None
    count: int


def check(frame: pd.DataFrame, schema: Schema) -> list[Finding]:
    """List every value outside the schema, by the schema's columns, the most frequent first.

    An empty list means that `conform` will change nothing but rounding. `repeated` is a warning for
    the unit of privacy: rows of one person are protected one by one, not together.
    """
    names = [str(name) for name in frame.columns]
    findings: list[Finding] = []
    for column in schema.columns:
        if column.name not in names:
            if not isinstance(column, Identifier):
                findings.append(Finding(column.name, "absent", None, len(frame)))
            continue
        series = frame.iloc[:, names.index(column.name)]
        if isinstance(column, Identifier):
            findings += _count(series[series.duplicated() & series.notna()], "repeated")
            continue
        cells = read_cells(series, column, schema.missing_values)
        for rule, mask in violations(cells, column).items():
            if rule == "missing" and mask.any():
                findings.append(Finding(column.name, rule, None, int(mask.sum())))
            elif mask.any():
                findings += _count(series[mask], rule)
    declared = {column.name for column in schema.columns}
    findings += [
        Finding(name, "extra", None, len(frame))
        for place, name in enumerate(names)
        if name not in declared or name in names[:place]
    ]
    return findings


def _count(values: pd.Series, rule: Rule | TableRule) -> list[Finding]:
    counts = values.astype(str).value_counts()
    return [
        Finding(str(values.name), rule, str(value), int(count)) for value, count in counts.items()
    ]
