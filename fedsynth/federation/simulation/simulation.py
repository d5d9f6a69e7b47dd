"""Owners' data in this process as a federation: for trying, for studies, and for tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, ValuesView
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedsynth.agreed import shown, suggestion
from fedsynth.data.conforming import Conformed, conform, demand_columns
from fedsynth.data.images import Images, check_images, demand_image_persons, demand_rows
from fedsynth.data.persons import demand_persons
from fedsynth.errors import Caution, ConfigError, DataError, Figures, warn_of
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import Floor
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.simulation.persons import remark_persons, remark_varying
from fedsynth.federation.simulation.repeats import demand_same, key_of, keys_of, recall
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.columns import Boolean, Categorical

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules

Owned = pd.DataFrame | Images
Owners = Mapping[str, Owned] | Sequence[Owned] | Owned
"""Where a table is meant, one of polars, PyArrow or DuckDB will do: see `demand_frame`."""
AnySchema = Schema | ImageSchema
Prepare = Callable[[Any, AnySchema, str], Any]
"""From an owner's data, the schema and the owner's name to what its client's tasks understand."""

ROWS = "rows.json"
"""What owners keep of a job's rows, beside their private vectors."""
_MOST_TOLD = 10
"""Owners whose cells outside the schema are told one by one."""


class Simulation(Federation):
    """One client an owner, each with its rows prepared under the schema.

    Args:
        owners: tables or image sets by owner's name, or a list of them, or a single one.
        schema: what the parties agreed on.
        prepare: what makes of an owner's data what tasks understand.

    Raises:
        DataError: no owner, or rows that the schema does not fit.
    """

    secures = "simulated"

    def __init__(self, owners: Owners, schema: AnySchema, prepare: Prepare | None = None) -> None:
        named = by_name(owners)
        make = prepare or prepare_rows
        self._data = {name: make(owned, schema, name) for name, owned in named.items()}
        self._records = {
            name: made.rows if isinstance(made, Conformed) else len(made)
            for name, made in self._data.items()
        }
        frames = {n: owned for n, owned in named.items() if isinstance(owned, pd.DataFrame)}
        self._remarks = [*remark_persons(frames, schema)] if isinstance(schema, Schema) else []
        if isinstance(schema, Schema):
            conformed = {n: one for n, one in self._data.items() if isinstance(one, Conformed)}
            self._remarks += remark_varying(conformed, schema)
        self._keys = {name: key_of(owned) for name, owned in named.items()}
        self._accounted: frozenset[str] = frozenset()
        self._private: Path | None = None

    def open(
        self,
        coins: NoiseSource,
        ledgers: Mapping[str, Ledger],
        private: Path | None,
        budget: Budget,
        most_records: int | None = None,
        outside: float = 1.0,
        caution: Caution = warn_of,
        deadline: float | None = None,
        secure: Callable[[int], Rules] | None = None,
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
        self._accounted, self._private = frozenset(ledgers), private
        rules = None if secure is None else secure(len(self._data))
        floor = Floor(
            budget=replace(budget, epsilon=math.inf),
            cohort=len(self._data),
            secure=rules is not None,
        )
        clients = self.clients(coins, ledgers, floor, outside, caution)
        if rules is None:
            return LocalRuntime(clients, private, deadline)
        from fedsynth.federation.runtimes.secure import SecureRuntime

        return SecureRuntime(clients, rules, private, deadline)

    def clients(
        self,
        coins: NoiseSource,
        ledgers: Mapping[str, Ledger],
        floor: Floor,
        outside: float,
        caution: Caution,
    ) -> list[Client]:
        """The owners as clients; arguments as of :meth:`open`.

        Raises:
            DataError: more of a column is outside the schema than a share ``outside``.
        """
        self._look_outside(outside, caution)
        for remark in self._remarks:
            caution(remark)
        return [
            Client(name, data, self._records[name], ledgers.get(name), coins, floor)
            for name, data in self._data.items()
        ]

    def demand_same_rows(self, *, begun: bool) -> None:
        if self._private is not None:
            demand_same(self._private / ROWS, self._keys, begun=begun)

    def recall(self, ledger: Ledger) -> tuple[str, ...]:
        """Of owners with ledgers of their own nothing: those account for all jobs."""
        alone = [key for name, key in self._keys.items() if name not in self._accounted]
        told = recall(keys_of(alone), ledger)
        return () if told is None else (told,)

    def _look_outside(self, most: float, caution: Caution) -> None:
        """Tell owners what of their tables the schema does not allow, or refuse where that is more
        than a share ``most`` of a column."""
        conformed = {n: data for n, data in self._data.items() if isinstance(data, Conformed)}
        beyond = {
            name: [column for column, share in data.shares_outside.items() if share > most]
            for name, data in conformed.items()
        }
        if any(beyond.values()):
            # An error may end in a log that is handed on: it tells no share of private rows.
            named = _join(f"{name}: {', '.join(found)}" for name, found in beyond.items() if found)
            raise DataError(
                f"more than {most:.0%} of a column is outside the schema. {named}. "
                "`fedsynth schema check` shows which values: mend the table or the schema, or "
                "say `outside: allow`, and they are clamped, become `other` or missing, or their "
                "rows are left out. Nothing was asked"
            )
        touched = {name: data for name, data in conformed.items() if data.shares_outside}
        if touched:
            told = _join(
                f"{name}: {_shares(data.shares_outside)}"
                + (f" ({data.left_out} rows are left out for it)" if data.left_out else "")
                for name, data in touched.items()
            )
            bare = _join(
                f"{name}: {', '.join(data.shares_outside)}"
                + (" (rows are left out for it)" if data.left_out else "")
                for name, data in touched.items()
            )
            caution(
                Figures(
                    f"outside the schema are, for the owner's eyes alone, of {told}",
                    f"outside the schema are cells of {bare}. `fedsynth schema check` counts them",
                )
            )


def _shares(shares: Mapping[str, float]) -> str:
    most_first = sorted(shares.items(), key=lambda entry: -entry[1])
    return ", ".join(
        f"{name} {share:.0%}" if share >= 0.01 else f"{name} below 1%" for name, share in most_first
    )


def _join(owners: Iterable[str]) -> str:
    named = list(owners)
    more = len(named) - _MOST_TOLD
    return "; ".join(named[:_MOST_TOLD]) + (f"; and {more} owners more" if more > 0 else "")


def by_name(owners: Owners) -> dict[str, Owned]:
    """Owners' data by name; those of a list get numbers for names.

    Raises:
        DataError: there are none, or something that is neither a table nor images.
        ConfigError: names that are none.
    """
    if isinstance(owners, str) or not isinstance(owners, Mapping | Sequence | ValuesView):
        owners = [owners]
    if not isinstance(owners, Mapping):
        owners = {f"client-{i:0{len(str(len(owners)))}d}": o for i, o in enumerate(owners)}
    if not owners:
        raise DataError("no owner of data was given: pass at least one table")
    if wrong := [name for name in owners if not isinstance(name, str | Integral)]:
        raise ConfigError(f"an owner's name must be a text, not {shown(wrong[0])}")
    named = {str(name): demand_rows(owned, str(name)) for name, owned in owners.items()}
    if len(named) < len(owners):
        raise ConfigError("two owners have names that are the same as texts: rename one")
    return named


def prepare_rows(owned: Owned, schema: AnySchema, name: str) -> Conformed | Images:
    """An owner's rows in the schema's arrays.

    Raises:
        DataError: they are not of the schema's kind, or do not fit it.
    """
    if isinstance(schema, ImageSchema):
        if not isinstance(owned, Images):
            raise DataError(f"{name}: the schema describes images, but this owner has a table")
        demand_image_persons(owned, schema, name)
        return check_images(owned, schema, name)
    if isinstance(owned, Images):
        raise DataError(f"{name}: the schema describes a table, but this owner has images")
    demand_persons(owned, schema, name)
    if len(owned):
        return conform(owned, schema, where=name)
    # An owner without rows answers like any other: only the noise tells. Nor is it let off what
    # one row would be held to.
    demand_columns(owned, schema, name)
    empty: dict[str, Any] = {
        c.name: np.zeros(0, np.int64 if isinstance(c, Categorical | Boolean) else np.float64)
        for c in schema.modelled
    }
    nobody = None if schema.person is None else np.zeros(0, np.int64)
    return Conformed(empty, dict.fromkeys(empty, 0), 0, persons=nobody)
