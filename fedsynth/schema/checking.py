"""What in a table its schema does not allow: every value, with counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.cells import Cells, Rule, read_cells, violations
from fedsynth.schema.columns import Continuous, Identifier, Modelled
from fedsynth.schema.constraints import Never
from fedsynth.schema.table import Schema

TableRule = Literal["absent", "extra", "repeated", "never", "ordered"]
"""A column that the table lacks or the schema does not know; an identifier in several rows; a
constraint that rows break."""


@dataclass(frozen=True)
class Finding:
    """One value (as text; None for a whole column or a missing cell) that breaks a rule.

    Of a constraint, `column` lists its columns and `value` says what they are to be, or never are.
    `count` is the exact number of private rows it stands in: for the owner's eyes only.
    """

    column: str
    rule: Rule | TableRule
    value: str | None
    count: int


def check(frame: pd.DataFrame, schema: Schema) -> list[Finding]:
    """List every value outside the schema, by the schema's columns, the most frequent first.

    An empty list means that `conform` will change nothing but rounding. `repeated` is a warning for
    the unit of privacy: rows of one person are protected one by one, not together. Rows that break
    a constraint stay as they are, but no synthetic row will be like them.
    """
    names = [str(name) for name in frame.columns]
    findings: list[Finding] = []
    read: dict[str, Cells] = {}
    for column in schema.columns:
        if column.name not in names:
            if not isinstance(column, Identifier):
                findings.append(Finding(column.name, "absent", None, len(frame)))
            continue
        series = frame.iloc[:, names.index(column.name)]
        if isinstance(column, Identifier):
            findings += _count_values(series[series.duplicated() & series.notna()], "repeated")
            continue
        cells = read[column.name] = read_cells(series, column, schema.missing_values)
        for rule, mask in violations(cells, column).items():
            if rule == "missing" and mask.any():
                findings.append(Finding(column.name, rule, None, int(mask.sum())))
            elif mask.any():
                findings += _count_values(series[mask], rule)
    findings += _check_constraints(read, schema)
    declared = {column.name for column in schema.columns}
    findings += [
        Finding(name, "extra", None, len(frame))
        for place, name in enumerate(names)
        if name not in declared or name in names[:place]
    ]
    return findings


def _check_constraints(read: Mapping[str, Cells], schema: Schema) -> list[Finding]:
    """Each constraint that rows break, by the cells that can be read."""
    columns = {column.name: column for column in schema.columns}
    values = {name: _round(cells, columns[name]) for name, cells in read.items()}
    findings = []
    for constraint in schema.constraints:
        names = constraint.names()
        if not all(name in read for name in names):
            continue
        broken = constraint.broken(values, columns)
        for name in names:
            broken = broken & ~read[name].unreadable
        if broken.any():
            rule: TableRule = "never" if isinstance(constraint, Never) else "ordered"
            count = int(broken.sum())
            findings.append(Finding(", ".join(names), rule, constraint.words(), count))
    return findings


def _round(cells: Cells, column: Modelled | Identifier) -> NDArray[Any]:
    return np.round(cells.values, column.decimals if isinstance(column, Continuous) else 0)


def _count_values(values: pd.Series, rule: Rule | TableRule) -> list[Finding]:
    counts = values.astype(str).value_counts()
    return [
        Finding(str(values.name), rule, str(value), int(count)) for value, count in counts.items()
    ]
