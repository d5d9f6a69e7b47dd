"""The rows of a query to a database, through SQLAlchemy; nothing that a driver says is passed on.

A driver's words may quote cells, and an address may hold a password: errors tell neither.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from fedsynth.data.values import type_column
from fedsynth.demands import demand_path
from fedsynth.errors import ConfigError, DataError

EXAMPLE = "postgresql+psycopg://reader:${PASSWORD}@host/clinic"
_READS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:SELECT|WITH|VALUES|FROM)\b", re.I | re.S)
_IN_FILES = ("sqlite", "duckdb")


def read_query(url: str, query: str) -> pd.DataFrame:
    """The rows that a query gives. It must be a SELECT, and nothing is committed.

    Raises:
        ConfigError: an address that SQLAlchemy does not understand.
        DataError: no connection, a query that fails or gives no columns, or cells that are no
            values; SQLAlchemy or the database's driver is not installed.
    """
    engine, where = _open(url)
    try:
        names, rows = _ask(engine, query, where)
    finally:
        engine.dispose()
    for place, name in enumerate(names):
        if not name.strip():
            raise DataError(f"{where}: column {place + 1} of the query has no name: give it by AS")
        if name in names[:place]:
            raise DataError(f"{where}: the query gives two columns {name!r}: name one by AS")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    for name, values in columns.items():
        if any(isinstance(one, bytes | memoryview | list | dict) for one in values):
            raise DataError(
                f"{where}: column {name!r} holds no single values: CAST it in the query"
            )
    typed = {name: type_column(values) for name, values in columns.items()}
    return pd.DataFrame(typed, columns=pd.Index(names, dtype=object))


def _open(url: str) -> tuple[Any, str]:
    """An engine, and how to call the database in messages."""
    try:
        from sqlalchemy import create_engine
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import NoSuchModuleError
        from sqlalchemy.pool import NullPool
    except ImportError:
        raise DataError(
            "databases are read through SQLAlchemy, which is not installed: pip install "
            "'fedsynth[sql]'"
        ) from None
    try:
        address = make_url(url)
    except Exception:
        raise ConfigError(f"`url` is no address of a database, such as {EXAMPLE}") from None
    kind = address.get_backend_name()
    # Of others a part of a password may be where the name is looked for.
    where = f"{kind} database" + (f" {address.database}" if kind in _IN_FILES else "")
    if kind in _IN_FILES and not _is_there(address.database):
        # A driver would make an empty one.
        raise DataError(f"{where}: no such file; check the path")
    try:
        return create_engine(address, poolclass=NullPool, hide_parameters=True), where
    except (ImportError, NoSuchModuleError):
        raise DataError(
            f"{where}: Python has no driver of {address.drivername}: install one, and name it, as "
            f"in {EXAMPLE}"
        ) from None
    except Exception as error:
        raise ConfigError(
            f"{where}: the address has something that its driver does not know "
            f"({type(error).__name__})"
        ) from None


def _is_there(database: str | None) -> bool:
    if database in (None, "", ":memory:"):
        return True
    return demand_path("url", database).is_file()


def _ask(engine: Any, query: str, where: str) -> tuple[list[str], list[Any]]:
    step = "cannot be reached: check address, account and password"
    try:
        # Some databases commit at once what makes or drops a table, so that is not even asked.
        if _READS.match(query) is None:
            raise DataError(f"{where}: the query must be a SELECT: nothing was asked")
        # Nothing is committed. And no parameters are filled in: a colon or a percent sign is one.
        with engine.connect() as connection:
            step = "cannot answer the query: try it in the database's own client"
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA query_only = ON")
            asked = connection.execution_options(no_parameters=True).exec_driver_sql(query)
            if not asked.returns_rows:
                raise DataError(f"{where}: the query gives no rows: it must be a SELECT")
            return list(map(str, asked.keys())), list(asked.fetchall())
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{where}: {step} ({type(error).__name__})") from None
