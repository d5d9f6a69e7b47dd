"""Owners' data in this process as a federation: for trying, for studies, and for tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.agreed import suggestion
from fedsynth.data.conforming import Conformed, conform, demand_columns
from fedsynth.data.images import Images, check_images
from fedsynth.errors import ConfigError, DataError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import Floor
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.columns import Boolean, Categorical

Owned = pd.DataFrame | Images
Owners = Mapping[str, Owned] | Sequence[Owned] | Owned
AnySchema = Schema | ImageSchema
Prepare = Callable[[Any, AnySchema, str], Any]
"""From an owner's data, the schema and the owner's name to what its client's tasks understand."""


class Simulation(Federation):
    """One client an owner, each with its rows prepared under the schema.

    Args:
        owners: tables or image sets by owner's name, or a list of them, or a single one.
        schema: what the parties agreed on.
        prepare: what makes of an owner's data what tasks understand.

    Raises:
        DataError: no owner, or rows that the schema does not fit.
    """

    def __init__(self, owners: Owners, schema: AnySchema, prepare: Prepare | None = None) -> None:
        named = by_name(owners)
        make = prepare or prepare_rows
        self._data = {name: make(owned, schema, name) for name, owned in named.items()}
        self._records = {name: len(owned) for name, owned in named.items()}

    def open(
        self,
        coins: NoiseSource,
        ledgers: Mapping[str, Ledger],
        private: Path | None,
        budget: Budget,
        most_records: int | None = None,
    ) -> LocalRuntime:
        """Whoever simulates is every owner: the job's unit and trust are their floor, and its
        ledger, in this process, has counted every round before they could."""
        for name, records in self._records.items():
            if most_records is not None and records > most_records:
                # Drawing as many from it would not do: where one record leaves, another comes in,
                # and that moves a sum by twice the clip.
                raise DataError(
                    f"{name} has more than {most_records} records, the most that was agreed "
                    "(most_records): agree on more, leave this owner out, or have it hand in a "
                    "part that does not depend on the others' rows. Nothing was asked"
                )
        for name in ledgers:
            if name not in self._data:
                raise ConfigError(f"a ledger was given for {name!r}{suggestion(name, self._data)}")
        floor = Floor(budget=replace(budget, epsilon=math.inf), cohort=len(self._data))
        clients = [
            Client(name, data, self._records[name], ledgers.get(name), coins, floor)
            for name, data in self._data.items()
        ]
        return LocalRuntime(clients, private)


def by_name(owners: Owners) -> dict[str, Owned]:
    """Owners' data by name; those of a list get numbers for names.

    Raises:
        DataError: there are none.
    """
    if isinstance(owners, pd.DataFrame | Images):
        owners = [owners]
    if not isinstance(owners, Mapping):
        owners = {f"client-{i:0{len(str(len(owners)))}d}": o for i, o in enumerate(owners)}
    if not owners:
        raise DataError("no owner of data was given: pass at least one table")
    return {str(name): owned for name, owned in owners.items()}


def prepare_rows(owned: Owned, schema: AnySchema, name: str) -> Conformed | Images:
    """An owner's rows in the schema's arrays.

    Raises:
        DataError: they are not of the schema's kind, or do not fit it.
    """
    if isinstance(schema, ImageSchema):
        if not isinstance(owned, Images):
            raise DataError(f"{name}: the schema describes images, but this owner has a table")
        return check_images(owned, schema, name)
    if isinstance(owned, Images):
        raise DataError(f"{name}: the schema describes a table, but this owner has images")
    if len(owned):
        return conform(owned, schema, where=name)
    # An owner without rows answers like any other: only the noise tells. Nor is it let off what
    # one row would be held to.
    demand_columns(owned, schema, name)
    empty: dict[str, Any] = {
        c.name: np.zeros(0, np.int64 if isinstance(c, Categorical | Boolean) else np.float64)
        for c in schema.modelled
    }
    return Conformed(empty, dict.fromkeys(empty, 0), 0)
