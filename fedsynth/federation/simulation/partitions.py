"""Cuts of one table or image set among simulated clients.

Every row goes to exactly one client and keeps its index. Where the schema names a person all of its
rows go to one client, by its first row, unless a column says whose they are. A client that receives
no row is one all the same: which clients there are may not hang on a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import demand_whole, suggestion
from fedsynth.data.images import Images
from fedsynth.data.persons import people_of
from fedsynth.demands import demand_kind
from fedsynth.errors import ConfigError, DataError
from fedsynth.federation.simulation.rows import Data, Rows, add_noise
from fedsynth.federation.simulation.schemes import (
    Column,
    Dirichlet,
    Geometric,
    KMeans,
    Labels,
    Noise,
    Owners,
    Quantity,
    Scheme,
    Uniform,
)
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.frames import demand_frame

SCHEMES: dict[str, Callable[..., Scheme | Column]] = {
    "uniform": Uniform,
    "kmeans": KMeans,
    "geometric": Geometric,
    "dirichlet": Dirichlet,
    "quantity": Quantity,
    "labels": Labels,
    "noise": Noise,
    "column": Column,
}


def partition(
    data: Data,
    clients: int | None,
    scheme: str,
    *,
    schema: Schema | ImageSchema | None = None,
    target: str | None = None,
    seed: int = 0,
    **options: object,
) -> dict[str, Data]:
    """The rows of each client by name, in the clients' order; a client may have none.

    Args:
        data: a table or images with at least one row for each client.
        clients: how many; for the scheme `column`, None or the number of its values.
        scheme: uniform, kmeans, geometric (a), dirichlet (beta, minimum), quantity (beta, minimum),
            labels (per_client), noise (sigma) or column (column, names): the classes of
            `schemes`. A column without `names` tells by its clients' names that each has a row,
            which no epsilon covers: declare them, or fit with owners_provenance="private-data".
        schema: names the target, the person, the identifiers kmeans leaves out, and the bounds that
            noise keeps. A column that only names the client (absent from the schema) is dropped.
        target: the column with the labels, for tables without a schema.
        seed: the same seed and data give the same cut.

    Raises:
        ConfigError: an unknown scheme or option, or one that does not fit the data.
        DataError: too few rows or persons, a row of nobody, or a column that is absent, has gaps or
            names an undeclared client.
    """
    if not isinstance(data, Images):
        data = demand_frame(data, "table")
    rows = Rows(data, schema, target)
    rule = _scheme(scheme, options)
    if isinstance(rule, Column):
        owners, names = rule.groups(rows)
        if clients is not None and demand_whole("clients", clients, 1) != len(names):
            raise ConfigError(
                f"the column names {len(names)} clients, not {clients}; leave clients out"
            )
        return _split(_drop_column(data, rule.column, schema), owners, names)
    dealt, people, what = rows, np.arange(len(rows)), "rows"
    if _names_persons(data, schema):
        assert schema is not None
        people, what = people_of(data, schema, "table"), "persons"
        dealt = Rows(_take(data, np.unique(people, return_index=True)[1]), schema, target)
    count = _client_count(clients, scheme, len(dealt), what)
    rng = np.random.default_rng(demand_whole("seed", seed, 0))
    owners = rule.owners(dealt, count, rng)[people]
    if isinstance(rule, Noise):
        data = add_noise(data, rows, rule.spread(owners, count), rng)
    digits = max(2, len(str(count - 1)))
    return _split(data, owners, tuple(f"client-{k:0{digits}d}" for k in range(count)))


def _names_persons(data: Data, schema: Schema | ImageSchema | None) -> bool:
    """Whether it is told whose each row is."""
    if schema is None or schema.person is None:
        return False
    return data.persons is not None if isinstance(data, Images) else schema.person in data


def _scheme(name: str, options: dict[str, object]) -> Scheme | Column:
    demand_kind("scheme", name, str, f"one of {', '.join(SCHEMES)}")
    if name not in SCHEMES:
        raise ConfigError(f"there is no partition scheme {name!r}{suggestion(name, SCHEMES)}")
    known = list(signature(SCHEMES[name]).parameters)
    for option in options:
        if option not in known:
            hint = suggestion(option, known) if known else "; it takes none"
            raise ConfigError(f"{name} has no option {option!r}{hint}")
    if name == "column" and "column" not in options:
        raise ConfigError("column: say which, column=...")
    return SCHEMES[name](**options)


def _client_count(clients: int | None, scheme: str, dealt: int, what: str) -> int:
    if clients is None:
        raise ConfigError(f"{scheme}: say among how many clients, clients=...")
    count = demand_whole("clients", clients, 1)
    if count > dealt:
        raise DataError(
            f"{dealt} {what} cannot be cut among {count} clients; ask for {dealt} at most"
        )
    return count


def _drop_column(data: Data, column: object, schema: Schema | ImageSchema | None) -> Data:
    """Drops the column that names the client where the schema does not know it."""
    if not (isinstance(data, pd.DataFrame) and isinstance(schema, Schema)):
        return data
    if not isinstance(column, str) or column in {c.name for c in schema.columns}:
        return data
    return data.drop(columns=column)


def _split(data: Data, owners: Owners, names: Sequence[str]) -> dict[str, Data]:
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(len(names) + 1))
    return {
        name: _take(data, order[begin:end])
        for name, begin, end in zip(names, starts[:-1], starts[1:], strict=True)
    }


def _take(data: Data, members: NDArray[np.int64]) -> Data:
    return data.iloc[members] if isinstance(data, pd.DataFrame) else data.take(members)
