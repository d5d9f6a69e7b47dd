"""Rows of a table from a generator by class: conditions, shares of the classes, constraints.

For generators that can draw given the target's class and nothing else. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import restore
from fedsynth.errors import ConfigError
from fedsynth.methods.sampling.labels import label_shares
from fedsynth.methods.sampling.mending import Rows, Rules, mend
from fedsynth.schema import Boolean, Categorical, Schema
from fedsynth.schema.conditions import Condition, condition_on, demand_modelled
from fedsynth.schema.constraints import Never, tie
from fedsynth.schema.rounding import round_to_grid

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]
Draw = Callable[[Labels | None, int, np.random.Generator], Columns]
"""From the target's codes [n] (None without classes), n and random draws to columns as
`Conformed.columns`; the target's own may be left out where codes are given."""

# Draws for each row wanted, or in all, after which conditions count as too rare.
_DRAWS, _LEAST_DRAWS = 200, 200_000
_BATCH = 100_000


@dataclass(frozen=True)
class Conditioning:
    """What drawn rows are conditioned on.

    Attributes:
        shares: of the target's classes [classes]; empty where there are none.
        fixed: whether the shares hold among the drawn rows whatever else is asked; else they are
            those before conditions on other columns.
        conditions: on columns that the generator does not draw by.
    """

    shares: Floats
    fixed: bool
    conditions: Mapping[str, Condition]

    @staticmethod
    def of(
        schema: Schema,
        frequencies: Floats,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
    ) -> Conditioning:
        """Raises ConfigError for conditions or shares that make no sense under the schema."""
        names = [column.name for column in schema.modelled]
        conditions = {}
        for name, value in (where or {}).items():
            demand_modelled(name, schema.columns, names)
            conditions[name] = condition_on(schema.column(name), value)
        columns = {column.name: column for column in schema.modelled}
        for constraint in schema.rules:
            if isinstance(constraint, Never) and constraint.excludes(conditions, columns):
                raise ConfigError(
                    f"no row can meet these conditions: by a constraint of the schema, "
                    f"{', '.join(constraint.names())} are never {constraint.words()} at once"
                )
        if not len(frequencies):
            if proportions:
                raise ConfigError("proportions need a target of categories beside other columns")
            return Conditioning(frequencies, False, conditions)
        target = conditions.pop(str(schema.target), None)
        if proportions and target is not None:
            raise ConfigError("give either proportions or a condition on the target, not both")
        shares = label_shares(schema, proportions) if proportions else frequencies
        if target is not None:
            allowed = np.isin(np.arange(len(shares)), target.codes)
            # A class that the noise has emptied can be asked for all the same.
            held = np.where(allowed, shares, 0.0)
            shares = held if held.sum() > 0 else allowed.astype(np.float64)
        return Conditioning(shares / shares.sum(), bool(proportions), conditions)

    def labels(self, rows: int, rng: np.random.Generator) -> Labels | None:
        """Codes [rows] of the target."""
        if not len(self.shares):
            return None
        return rng.choice(len(self.shares), size=rows, p=self.shares).astype(np.int64)


def draw_table(
    schema: Schema,
    frequencies: Floats,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    seed: int | None,
    draw: Draw,
) -> pd.DataFrame:
    """A table of the schema's columns.

    Conditions on the target are exact. Rows that break a condition on another column are drawn
    again, class included, so that the rest follows the generator's own conditional distribution.
    Rows that break the schema's constraints are mended (:mod:`fedsynth.methods.sampling.mending`).

    Args:
        frequencies: of the target's classes [classes]; empty for a generator without classes.
        rows: how many, at least 1.
        where: conditions by column's name: a value, a list of values, or a range.
        proportions: shares of the target's classes, by value.
        seed: makes the draw repeatable.
        draw: see :data:`Draw`.

    Raises:
        ConfigError: senseless conditions, or such as hardly a drawn row meets.
    """
    rng = np.random.default_rng(seed)
    conditioning = Conditioning.of(schema, frequencies, where, proportions)
    labels = conditioning.labels(rows, rng)
    columns = _draw(schema, draw, labels, rows, rng)
    pending = np.flatnonzero(~_meets(conditioning, columns))
    left, most = max(_DRAWS * rows, _LEAST_DRAWS), 1
    while len(pending):
        if left <= 0:
            raise ConfigError(
                f"{rows - len(pending)} of {rows} rows after {max(_DRAWS * rows, _LEAST_DRAWS):,} "
                "draws: hardly a row that this model draws meets the conditions; ask for fewer "
                "rows, or use a method that conditions exactly, such as aim"
            )
        # Few at first, for most conditions are met soon.
        most *= 4
        tries = max(1, min(most, min(_BATCH, left) // len(pending)))
        count = tries * len(pending)
        kept = (
            np.repeat(labels[pending], tries) if conditioning.fixed and labels is not None else None
        )
        candidates = _draw(
            schema, draw, conditioning.labels(count, rng) if kept is None else kept, count, rng
        )
        good = _meets(conditioning, candidates).reshape(len(pending), tries)
        at = pending[good.any(axis=1)]
        chosen = (np.arange(len(pending)) * tries + good.argmax(axis=1))[good.any(axis=1)]
        for name, values in columns.items():
            values[at] = candidates[name][chosen]
        if labels is not None:
            labels[at] = columns[str(schema.target)][at]
        pending, left = pending[~good.any(axis=1)], left - count
    if schema.rules:
        _mend(schema, conditioning, draw, columns, labels, rng)
    return restore(columns, schema, rng)


def _mend(
    schema: Schema,
    conditioning: Conditioning,
    draw: Draw,
    columns: dict[str, NDArray[Any]],
    labels: Labels | None,
    rng: np.random.Generator,
) -> None:
    """Have columns [rows] keep the schema's constraints, in place."""
    rows = len(next(iter(columns.values())))

    def kinds(own: Columns) -> Labels:
        if labels is None:
            return np.zeros(len(next(iter(own.values()))), np.int64)
        return own[str(schema.target)]

    def more(at: NDArray[np.intp]) -> Rows:
        fresh = _draw(schema, draw, None if labels is None else labels[at], len(at), rng)
        return Rows(fresh, kinds(fresh)).take(np.flatnonzero(_meets(conditioning, fresh)))

    ties = tie(schema.rules)
    rules = Rules(
        [names for names, _ in ties],
        lambda own: [schema.broken(own, constraints) for _, constraints in ties],
        lambda name, cells: cells < 0 if cells.dtype.kind == "i" else np.isnan(cells),
    )
    fixed = conditioning.fixed or len(np.flatnonzero(conditioning.shares)) == 1
    left = mend(Rows(columns, kinds(columns)), rules, more, rng, strict=fixed)
    if left.any():
        raise ConfigError(
            f"{rows - int(left.sum())} of {rows} rows: hardly a row that this model draws meets "
            "the conditions and the schema's constraints; ask for fewer rows, or use a method "
            "that conditions exactly, such as aim"
        )


def _draw(
    schema: Schema, draw: Draw, labels: Labels | None, rows: int, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Columns [rows] of values that the schema allows."""
    cells = dict(draw(labels, rows, rng))
    if labels is not None:
        cells.setdefault(str(schema.target), labels)
    return {
        column.name: np.array(cells[column.name], np.int64)
        if isinstance(column, Categorical | Boolean)
        else round_to_grid(np.asarray(cells[column.name], np.float64), column)
        for column in schema.modelled
    }


def _meets(conditioning: Conditioning, columns: Columns) -> NDArray[np.bool_]:
    """Which rows [n] meet all conditions."""
    met = np.ones(len(next(iter(columns.values()))), bool)
    for name, condition in conditioning.conditions.items():
        met &= condition.holds(columns[name])
    return met
