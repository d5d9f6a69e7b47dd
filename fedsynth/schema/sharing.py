"""Columns that have one value in all rows of each person of some tables, declared in a draft."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from fedsynth.schema.cells import read_cells, read_keys
from fedsynth.schema.findings import Finding
from fedsynth.schema.persons import count_varying
from fedsynth.schema.table import Schema

_FEWEST = 10
"""Persons in whom a column would differ if its cells were dealt out at random: with fewer, that it
differs in none may be chance."""


def declare_shared(
    schema: Schema, owners: Mapping[str, pd.DataFrame]
) -> tuple[Schema, list[Finding]]:
    """The schema with `of: person` where no person of these tables has two values, and what of it
    is to be looked at: what holds in these rows need not hold in others."""
    if schema.person is None or any(schema.person not in frame for frame in owners.values()):
        return schema, []
    persons = [
        read_keys(frame[schema.person], schema.missing_values)[0] for frame in owners.values()
    ]
    if any((own < 0).any() for own in persons):
        return schema, []
    rng, found = np.random.default_rng(0), []
    for column in schema.observed:
        if any(column.name not in frame for frame in owners.values()):
            continue
        tables = [
            (own, read_cells(frame[column.name], column, schema.missing_values).values)
            for own, frame in zip(persons, owners.values(), strict=True)
        ]
        if any(count_varying(own, cells) for own, cells in tables):
            continue
        if sum(count_varying(own, rng.permutation(cells)) for own, cells in tables) < _FEWEST:
            continue
        schema = schema.edit(column.name, of="person")
        text = (
            "has one value in all rows of a person: declared `of: person`, so that invented "
            "persons have one, too. Take `of` out if it may change"
        )
        found.append(Finding(column.name, "of-person", text))
    return schema, found
