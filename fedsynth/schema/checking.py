"""What in a table its schema does not allow: every value, with counts, and column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.cells import Cells, Rule, read_cells, read_keys
from fedsynth.schema.cells import violations as mask_violations
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Modelled,
    Numeric,
)
from fedsynth.schema.completing import complete
from fedsynth.schema.constraints import CONSTRAINTS, rule_of
from fedsynth.schema.frames import demand_frame, is_foreign
from fedsynth.schema.table import Schema

TableRule = Literal["absent", "extra", "repeated", "never", "ordered", "equal", "sum", "determines"]
"""A column that the table lacks or the schema does not know; an identifier in several rows; a
constraint that rows break."""


@dataclass(frozen=True)
class Violation:
    """One value (as text; None for a whole column or a missing cell) that breaks a rule.

    Of a constraint, `column` lists its columns and `value` says what they are to be, or never are.
    `count` is the exact number of private rows it stands in: for the owner's eyes only.
    """

    column: str
    rule: Rule | TableRule
    value: str | None
    count: int


@dataclass(frozen=True)
class ColumnCheck:
    """One column of a table beside what its schema allows; private, as violations are.

    Attributes:
        allowed: what the schema says, as text.
        found: lowest and highest of the numbers or dates, or how many different declared values.
        outside: cells that break a rule; None for an identifier other than the person's, and for a
            column that the table lacks or the schema does not know.
        share: of the column's cells, in [0, 1].
        examples: the most frequent values outside, each with its count.
        fault: what is wrong with the whole column, if anything.
    """

    column: str
    allowed: str | None
    found: str | None
    outside: int | None
    share: float | None
    examples: tuple[tuple[str, int], ...] = ()
    fault: TableRule | None = None


_EXAMPLES = 3


def check_columns(
    frame: pd.DataFrame, schema: Schema, violations: Sequence[Violation]
) -> list[ColumnCheck]:
    """Every column in a line: the schema's in order, then those that it does not know.

    Args:
        violations: of `check`, for the same table and schema.
    """
    absent = {violation.column for violation in violations if violation.rule == "absent"}
    lines = []
    for column in schema.columns:
        if column.name in absent or column.name not in frame:
            fault: TableRule | None = "absent" if column.name in absent else None
            lines.append(ColumnCheck(column.name, _allowed(column), None, None, None, (), fault))
            continue
        broken = [violation for violation in violations if violation.column == column.name]
        values = [one for one in broken if one.rule not in ("extra", *CONSTRAINTS)]
        examples = tuple(
            ("(missing)" if violation.value is None else violation.value, violation.count)
            for violation in sorted(values, key=lambda violation: -violation.count)[:_EXAMPLES]
        )
        if column.name == schema.person:
            gaps = sum(violation.count for violation in broken)
            keys = read_keys(frame[column.name], schema.missing_values)[1]
            share, persons = gaps / max(1, len(frame)), f"{len(keys):,} persons"
            lines.append(ColumnCheck(column.name, "person", persons, gaps, share, examples))
            continue
        if isinstance(column, Identifier):
            repeated: TableRule | None = "repeated" if examples else None
            lines.append(
                ColumnCheck(column.name, "identifier", None, None, None, examples, repeated)
            )
            continue
        series = frame.iloc[:, list(frame.columns).index(column.name)]
        cells = read_cells(series, column, schema.missing_values)
        outside = sum(int(mask.sum()) for mask in mask_violations(cells, column).values())
        share = outside / max(1, len(frame))
        found = _found(cells, column)
        lines.append(ColumnCheck(column.name, _allowed(column), found, outside, share, examples))
    extra = dict.fromkeys(violation.column for violation in violations if violation.rule == "extra")
    return lines + [ColumnCheck(name, None, None, None, None, (), "extra") for name in extra]


def _allowed(column: Modelled | Identifier) -> str:
    if isinstance(column, Identifier):
        return "identifier"
    if isinstance(column, Boolean):
        allowed = "true, false"
    elif isinstance(column, Categorical):
        allowed = f"{len(column.values)} value{'s' if len(column.values) > 1 else ''}"
        allowed += "" if column.other is None else f", else {column.other}"
    elif isinstance(column, Datetime):
        allowed = f"{_moment(column.lower, column)} to {_moment(column.upper, column)}"
        allowed += "" if column.zone is None else f" in {column.zone}"
    else:
        allowed = f"{column.lower} to {column.upper}"
        allowed += "" if column.format is None else f" as {column.format}"
    if not isinstance(column, Categorical | Boolean) and column.step is not None:
        allowed += f" in steps of {column.step}"
    return f"{allowed}, missing" if column.missing else allowed


def _found(cells: Cells, column: Modelled) -> str | None:
    if isinstance(column, Categorical | Boolean):
        codes = np.unique(cells.values[cells.values >= 0])
        return f"{len(codes)} of {len(column.categories)}"
    known = cells.values[~np.isnan(cells.values)]
    if not len(known):
        return None
    return f"{_spell(known.min(), column)} to {_spell(known.max(), column)}"


def _spell(value: float, column: Numeric) -> str:
    return column.spell_at(value) if isinstance(column, Datetime) else f"{value:.15g}"


def _moment(moment: datetime, column: Datetime) -> str:
    return str(moment.date()) if column.calendar else str(moment)


def check(frame: pd.DataFrame, schema: Schema) -> list[Violation]:
    """List every value outside the schema, by the schema's columns, the most frequent first.

    An empty list means that `conform` will change nothing but rounding. `repeated` is a warning for
    the unit of privacy: rows of one person are protected one by one, not together; of the schema's
    `person` repeats are what it is for, and gaps are refused. Rows that break a constraint stay as
    they are, but no synthetic row will be like them.
    """
    if is_foreign(frame):
        frame = demand_frame(frame, "table")
    frame = complete(frame, schema, [column.name for column in schema.observed])
    names = [str(name) for name in frame.columns]
    violations: list[Violation] = []
    read: dict[str, Cells] = {}
    for column in schema.columns:
        if column.name not in names:
            if not isinstance(column, Identifier) or column.name == schema.person:
                violations.append(Violation(column.name, "absent", None, len(frame)))
            continue
        series = frame.iloc[:, names.index(column.name)]
        if column.name == schema.person:
            if gaps := int((read_keys(series, schema.missing_values)[0] < 0).sum()):
                violations.append(Violation(column.name, "missing", None, gaps))
            continue
        if isinstance(column, Identifier):
            violations += _count_values(series[series.duplicated() & series.notna()], "repeated")
            continue
        cells = read[column.name] = read_cells(series, column, schema.missing_values)
        for rule, mask in mask_violations(cells, column).items():
            if rule == "missing" and mask.any():
                violations.append(Violation(column.name, rule, None, int(mask.sum())))
            elif mask.any():
                violations += _count_values(series[mask], rule)
    violations += _check_constraints(read, schema)
    declared = {column.name for column in schema.columns}
    violations += [
        Violation(name, "extra", None, len(frame))
        for place, name in enumerate(names)
        if name not in declared or name in names[:place]
    ]
    return violations


def _check_constraints(read: Mapping[str, Cells], schema: Schema) -> list[Violation]:
    """Each constraint that rows break, by the cells that can be read."""
    columns = {column.name: column for column in schema.columns}
    values = {name: _round(cells, columns[name]) for name, cells in read.items()}
    violations = []
    for constraint in schema.constraints:
        names = constraint.names()
        if not all(name in read for name in names):
            continue
        broken = constraint.broken(values, columns)
        for name in names:
            broken = broken & ~read[name].unreadable
        if broken.any():
            rule: TableRule = rule_of(constraint)
            count = int(broken.sum())
            violations.append(Violation(", ".join(names), rule, constraint.words(), count))
    return violations


def _round(cells: Cells, column: Modelled | Identifier) -> NDArray[Any]:
    return np.round(cells.values, column.decimals if isinstance(column, Continuous) else 0)


def _count_values(values: pd.Series, rule: Rule | TableRule) -> list[Violation]:
    counts = values.astype(str).value_counts()
    return [
        Violation(str(values.name), rule, str(value), int(count)) for value, count in counts.items()
    ]
