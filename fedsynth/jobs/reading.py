"""A job's tables, from the files and databases that its job file names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from fedsynth.data.tables import keys_of, read_sql, read_table
from fedsynth.data.translation import Translation
from fedsynth.errors import Caution, ConfigError, DataError
from fedsynth.jobs.inputs import DATA_VARIABLE, Origin, Own, expand_path, expand_url
from fedsynth.schema import ImageSchema, Schema
from fedsynth.yaml_files import read_yaml


def read_origin(
    origin: Origin,
    schema: Schema | None,
    base: Path,
    caution: Caution,
    *,
    source: str | None = None,
    key: str = "data.path",
    beside: Origin | None = None,
    empty: bool = False,
) -> pd.DataFrame:
    """Read a table.

    Args:
        caution: called with what was guessed of a file.
        source, key: of :func:`find_file`.
        beside: what is said of all files, where this one does not say otherwise.
        empty: whether it may have no rows.

    Raises:
        ConfigError, DataError: the file or the database cannot be read.
    """
    origin, base = follow(origin, base)
    words: dict[str, Any] = origin.translated if isinstance(origin, Translation) else {}
    if origin.url is not None and origin.query is not None:
        return read_sql(expand_url(origin.url, base), origin.query, schema, empty=empty, **words)
    path = find_file(origin.path or "", base, source, key)
    others = {} if beside is None else beside.said
    known = {name: value for name, value in others.items() if name in keys_of(path)}
    return read_table(
        path, schema, empty=empty, caution=caution, **{**known, **origin.said, **words}
    )


def follow(origin: Origin, base: Path) -> tuple[Origin, Path]:
    """Where the table lies and how it is read, as an owner's own file has it that may stand in its
    place: a site file, under `data`, or the same keys alone; and what paths there are relative to.

    Raises:
        ConfigError: the file tells of no table, or of another such file.
        DataError: it is not there.
    """
    if not is_own(origin.path):
        return origin, base
    path = find_file(str(origin.path), base, None)
    for key in origin.said:
        raise ConfigError(f"`{key}` is of a table, and {path} says how one is read: say it there")
    content = read_yaml(path, ConfigError)
    told = content.get("data", content)
    if not isinstance(told, dict) or not {"path", "url"} & set(told):
        needed = "`path`, or `url` and `query`, alone or under `data`"
        raise ConfigError(f"{path}: tells of no table: give {needed}")
    try:
        own = Own(**{str(key): value for key, value in told.items()})
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if is_own(own.path):
        raise ConfigError(f"{path}: `path` is to be the table's: {own.path} is no table")
    return own, path.parent


def is_own(path: str | None) -> bool:
    """Whether it is an owner's file that says how a table is read, and no table."""
    return path is not None and path.lower().endswith((".yaml", ".yml"))


def find_images(
    origin: Origin,
    schema: ImageSchema,
    base: Path,
    *,
    source: str | None = None,
    key: str = "data.path",
) -> Path:
    """A file of images.

    Raises:
        ConfigError: what only a table has is said of it.
        DataError: it is not there.
    """
    if origin.url is not None or origin.said or is_own(origin.path):
        raise ConfigError(
            f"images ({schema.shape[0]} x {schema.shape[1]} by the schema) come from .npz files: "
            "give `path` alone"
        )
    return find_file(origin.path or "", base, source, key)


def find_file(text: str, base: Path, source: str | None, key: str = "data.path") -> Path:
    """A file that a job names.

    Args:
        source: where the data can be had, for the message.
        key: of the job file, to name another by.

    Raises:
        DataError: it is not there.
    """
    path = expand_path(text, base)
    if path.is_file():
        return path
    raise DataError(
        f"{path}: no such file. "
        + (f"{source.rstrip('. ')}. " if source else "")
        + f"Put it there, or set {DATA_VARIABLE} to the folder of your data sets, or name the "
        f"file by --set {key}=..."
    )
