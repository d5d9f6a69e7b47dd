"""Rows that break the schema's constraints, mended: a decoder knows nothing of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.constraints import is_impossible
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.methods.sampling.mending import Columns, Rows, Rules, mend
from fedsynth.schema.constraints import tie
from fedsynth.schema.target import conditions, target_index

Codes = NDArray[np.int64]


def mend_codes(
    encoding: TableEncoding,
    codes: Codes,
    draw: Callable[[NDArray[np.intp]], Codes],
    rng: np.random.Generator,
    *,
    fixed: bool,
) -> Codes:
    """Codes [n, d] of rows that meet the schema's constraints. Post-processing.

    Args:
        encoding: of the codes.
        codes: as drawn first.
        draw: codes for these rows, drawn again.
        rng: a generator.
        fixed: whether no row may change its class.

    Raises:
        ConfigError: no drawn row of some class meets them.
    """
    schema = encoding.schema
    names = [column.name for column in schema.modelled]
    missing = {
        column.name: size - 1
        for column, size in zip(schema.modelled, encoding.sizes, strict=True)
        if column.missing
    }
    place = target_index(schema) if conditions(schema) else None

    def rows(own: NDArray[Any]) -> Rows:
        kinds = np.zeros(len(own), np.int64) if place is None else own[:, place].astype(np.int64)
        return Rows({name: own[:, k].copy() for k, name in enumerate(names)}, kinds)

    def broken(own: Columns) -> list[NDArray[np.bool_]]:
        table = np.column_stack([own[name] for name in names])
        return [is_impossible(encoding, table, constraints) for _, constraints in ties]

    ties = tie(schema.rules)
    rules = Rules(
        [tied for tied, _ in ties],
        broken,
        lambda name, cells: cells == missing.get(name, -1),
    )
    result = rows(codes)
    left = mend(result, rules, lambda at: rows(draw(at)), rng, strict=fixed)
    if left.any():
        raise ConfigError(
            "no row that this model draws meets the schema's constraints"
            + (" and the condition on its target" if fixed else "")
            + "; ask for more rows, or fit a method that keeps to constraints, such as aim"
        )
    return np.column_stack([result.columns[name] for name in names])
