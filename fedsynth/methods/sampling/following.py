"""Conditions on columns that follow from others: asked of these, or met by drawing again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from fedsynth.errors import ConfigError
from fedsynth.schema import Identifier, ImageSchema, Schema
from fedsynth.schema.cells import read_cells
from fedsynth.schema.conditions import condition_on
from fedsynth.schema.spelling import draw_identifiers

# Draws for each row wanted, or in all, after which a condition counts as too rare.
_DRAWS, _LEAST_DRAWS, _BATCH = 200, 100_000, 20_000


def route(
    schema: Schema | ImageSchema,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None = None,
) -> tuple[Mapping[str, Any] | None, dict[str, Any]]:
    """Conditions on modelled columns, and those on totals and settled ones, which no model knows.

    Raises:
        ConfigError: two on columns that are equal; proportions beside one on a total.
    """
    if not where or isinstance(schema, ImageSchema) or not schema.derivations:
        return where, {}
    followed = {one.name: one for one in schema.derivations}
    direct: dict[str, Any] = {}
    totals: dict[str, Any] = {}
    for name, given in where.items():
        at = name
        while at in followed and followed[at].same:
            at = followed[at].sources[0]
        if at in direct or at in totals:
            raise ConfigError(f"conditions on {name!r} and on a column that equals it: give one")
        (totals if at in followed else direct)[at] = given
    for name, given in totals.items():
        condition_on(schema.column(name), given)
        if proportions:
            raise ConfigError(
                f"{followed[name].words}: a condition on it would change the proportions of the "
                "target: give one of them"
            )
    return direct, totals


def sources_of(schema: Schema, columns: Sequence[str]) -> list[str]:
    """The modelled columns that equal these.

    Raises:
        ConfigError: one is a total or settled by another, or two are equal.
    """
    followed = {one.name: one for one in schema.derivations}
    sources = []
    for name in columns:
        at = name
        while at in followed:
            if not followed[at].same:
                raise ConfigError(f"{followed[at].words}, and is not counted itself: ask of these")
            at = followed[at].sources[0]
        sources.append(at)
    if len(set(sources)) < len(sources):
        raise ConfigError("two of the columns are equal, by the schema: name one of them")
    return sources


class Draw(Protocol):
    """So many rows, by a seed."""

    def __call__(self, rows: int, *, seed: int | None) -> Any: ...


def draw_following(
    schema: Schema | ImageSchema,
    totals: Mapping[str, Any],
    rows: int,
    seed: int | None,
    draw: Draw,
) -> pd.DataFrame:
    """Rows of which each meets the conditions on totals and settled columns.

    Raises:
        ConfigError: hardly a row does.
    """
    assert isinstance(schema, Schema)
    rng = np.random.default_rng(seed)
    conditions = {name: condition_on(schema.column(name), given) for name, given in totals.items()}
    kept: list[pd.DataFrame] = []
    found, left = 0, max(_DRAWS * rows, _LEAST_DRAWS)
    while found < rows:
        if left <= 0:
            raise ConfigError(
                f"{found} of {rows} rows after {max(_DRAWS * rows, _LEAST_DRAWS):,} draws: hardly "
                f"a row that this model draws meets the condition on {', '.join(totals)}"
            )
        # About as many as are wanting, by what was found so far.
        tried = max(_DRAWS * rows, _LEAST_DRAWS) - left
        rate = max(found, 1) / tried if tried else 0.5
        count = int(min((rows - found) / rate * 1.2 + 10, _BATCH, left))
        drawn = draw(count, seed=int(rng.integers(2**62)))
        met = np.ones(count, bool)
        for name, condition in conditions.items():
            cells = read_cells(drawn[name], condition.column, schema.missing_values)
            met &= condition.holds(cells.values)
        kept.append(drawn[met])
        found, left = found + int(met.sum()), left - count
    table = pd.concat(kept, ignore_index=True).head(rows)
    for column in schema.columns:
        if isinstance(column, Identifier):
            table[column.name] = draw_identifiers(column, rows, rng)
    return table
