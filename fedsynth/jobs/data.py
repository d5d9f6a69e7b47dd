"""A job's data: read, held out by seed, given to their owners."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.data.images import Images, read_images
from fedsynth.data.tables import read_table
from fedsynth.errors import DataError
from fedsynth.federation.simulation.partitions import partition
from fedsynth.jobs.config import DATA_VARIABLE, Config, expand_path
from fedsynth.schema import ImageSchema, Schema, load_schema

Rows = pd.DataFrame | Images
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JobData:
    """A job's data.

    Attributes:
        owners: the rows to learn from, by owner.
        train: the same rows, all together.
        test: rows that the fit never sees; None where nothing is held out.
        held_out: the same rows by owner, empty for an owner without; where owners are simulated, or
            the rows came without one, all under "holdout".
        public: rows that anybody may see, for methods that label them; None without.
    """

    schema: Schema | ImageSchema
    owners: dict[str, Rows]
    train: Rows
    test: Rows | None
    held_out: dict[str, Rows]
    public: Rows | None = None


def prepare(config: Config, base: Path) -> JobData:
    """Read a job's data, hold rows out, and give the others to their owners.

    Args:
        base: the folder that the job's paths are relative to.

    Raises:
        ConfigError: keys that do not go together with the data.
        DataError: data that are absent, damaged or too few.
    """
    schema = read_schema(config, base)
    public = _read_public(config, schema, base)
    if config.sites.paths is not None:
        return replace(_read_files(config, schema, base, config.sites.paths), public=public)
    data, test_images = _read_rows(config, schema, base)
    test: Rows | None = test_images
    kept = np.arange(len(data))
    rest: Indices | None = None
    if test is None and config.holdout:
        kept, rest = _split(len(data), config.holdout, config.seed)
        test = _take(data, rest)
    train = _take(data, kept)
    owners = _divide(config, schema, base, train, kept, len(data))
    held_out: dict[str, Rows] = {} if test is None else {"holdout": test}
    if test is not None and rest is not None:
        held_out = _divide_held_out(config, schema, base, test, rest, len(data), owners)
    column = config.sites.column if config.sites.path is None else None
    return JobData(
        schema,
        owners,
        _drop_column(train, column, schema),
        None if test is None else _drop_column(test, column, schema),
        held_out,
        public,
    )


def _read_public(config: Config, schema: Schema | ImageSchema, base: Path) -> Rows | None:
    """Public rows, of a table with or without its target."""
    if config.public is None:
        return None
    path = _find_file(config.public.path, base, None, "public.path")
    if isinstance(schema, Schema):
        return read_table(path)
    key = config.public.key
    return read_images(path, schema.model_copy(update={"target": None}), (key, key))


def read_schema(config: Config, base: Path) -> Schema | ImageSchema:
    """The job's schema, from its file or by a built-in data set's name."""
    if config.schema_ is None:
        assert config.data.builtin is not None
        return builtin_schema(config.data.builtin)
    path = expand_path(config.schema_, base)
    if not path.is_file() and not path.suffix:
        return builtin_schema(config.schema_)
    return load_schema(path)


def _read_rows(
    config: Config, schema: Schema | ImageSchema, base: Path
) -> tuple[Rows, Images | None]:
    """The job's rows, and the test images where its file holds some."""
    data = config.data
    if data.builtin is not None:
        return load_builtin(data.builtin), None
    assert data.path is not None
    path = _find_file(data.path, base, data.source)
    if isinstance(schema, Schema):
        return read_table(path, schema), None
    test = None if data.test_keys is None else read_images(path, schema, data.test_keys)
    return read_images(path, schema, data.keys), test


def _find_file(text: str, base: Path, source: str | None, key: str = "data.path") -> Path:
    path = expand_path(text, base)
    if path.is_file():
        return path
    raise DataError(
        f"{path}: no such file. "
        + (f"{source.rstrip('. ')}. " if source else "")
        + f"Put it there, or set {DATA_VARIABLE} to the folder of your data sets, or name the "
        f"file by --set {key}=..."
    )


def _split(rows: int, holdout: float, seed: int) -> tuple[Indices, Indices]:
    """Positions of the rows to learn from and of those held out, in a random order."""
    order = np.random.default_rng(seed).permutation(rows)
    cut = int((1 - holdout) * rows)
    if cut == 0:
        raise DataError(f"{rows} rows are too few to hold out {holdout:g} of them; set holdout: 0")
    return order[:cut], order[cut:]


def _divide(
    config: Config,
    schema: Schema | ImageSchema,
    base: Path,
    train: Rows,
    kept: Indices,
    rows: int,
) -> dict[str, Rows]:
    sites = config.sites
    if sites.path is not None and sites.column is not None:
        named = _read_column(_find_file(sites.path, base, config.data.source), sites.column)
        if len(named) != rows:
            raise DataError(f"{sites.path}: {len(named)} values for {rows} rows of data")
        return _partition(train, None, "column", schema=schema, column=named[kept])
    if sites.column is not None:
        return _partition(train, None, "column", schema=schema, column=sites.column)
    scheme = sites.scheme or ""
    return _partition(
        train, sites.clients, scheme, schema=schema, seed=config.seed, **sites.options
    )


def _divide_held_out(
    config: Config,
    schema: Schema | ImageSchema,
    base: Path,
    test: Rows,
    rest: Indices,
    rows: int,
    owners: Iterable[str],
) -> dict[str, Rows]:
    """Held-out rows by owner, of every owner; together where owners are simulated.

    Dealing rows out again would let one row decide whose the others are.
    """
    if config.sites.column is None:
        return {"holdout": test}
    by_owner = _divide(config, schema, base, test, rest, rows)
    column = config.sites.column if config.sites.path is None else None
    empty = _drop_column(_take(test, rest[:0]), column, schema)
    return {name: by_owner.get(name, empty) for name in sorted({*owners, *by_owner})}


def _partition(train: Rows, clients: int | None, scheme: str, **options: Any) -> dict[str, Rows]:
    if isinstance(train, Images):
        return dict(partition(train, clients, scheme, **options))
    return dict(partition(train, clients, scheme, **options))


def _read_column(path: Path, name: str) -> NDArray[np.generic]:
    """One column of a table, or one array of a .npz file."""
    if path.suffix != ".npz":
        frame = read_table(path)
        if name not in frame:
            raise DataError(f"{path}: has no column {name!r}; it has {', '.join(map(str, frame))}")
        return frame[name].to_numpy()
    try:
        with np.load(path, allow_pickle=False) as archive:
            if name not in archive:
                raise DataError(f"{path}: has no array {name!r}; it has {', '.join(archive)}")
            array: NDArray[np.generic] = archive[name]
            return array
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        raise DataError(f"{path}: is damaged, or no .npz file of plain arrays") from None


def _read_files(
    config: Config, schema: Schema | ImageSchema, base: Path, paths: dict[str, str]
) -> JobData:
    """One file for each owner; the same share of each is held out."""
    owners: dict[str, Rows] = {}
    held_out: dict[str, Rows] = {}
    for name, text in paths.items():
        path = _find_file(text, base, config.data.source)
        rows: Rows
        if isinstance(schema, Schema):
            rows = read_table(path, schema)
        else:
            rows = read_images(path, schema, config.data.keys)
        if config.holdout:
            # An owner of one row keeps it, and is named all the same.
            alone = np.arange(1), np.empty(0, np.int64)
            parts = alone if len(rows) == 1 else _split(len(rows), config.holdout, config.seed)
            held_out[name] = _take(rows, parts[1])
            rows = _take(rows, parts[0])
        owners[name] = rows
    test = _concatenate(list(held_out.values())) if any(map(len, held_out.values())) else None
    return JobData(schema, owners, _concatenate(list(owners.values())), test, held_out)


def _take(rows: Rows, positions: Indices) -> Rows:
    if isinstance(rows, Images):
        return rows.take(positions)
    return rows.iloc[positions].reset_index(drop=True)


def _drop_column(rows: Rows, column: str | None, schema: Schema | ImageSchema) -> Rows:
    """Without a column that only names the owner, as the owners' own rows are."""
    if isinstance(rows, Images) or isinstance(schema, ImageSchema) or column is None:
        return rows
    declared = {c.name for c in schema.columns}
    return rows if column in declared else rows.drop(columns=column)


def _concatenate(parts: list[Rows]) -> Rows:
    tables = [part for part in parts if isinstance(part, pd.DataFrame)]
    if tables:
        return pd.concat(tables, ignore_index=True)
    images = [part for part in parts if isinstance(part, Images)]
    labels = [part.labels for part in images if part.labels is not None]
    pixels = np.concatenate([part.pixels for part in images])
    return Images(pixels, np.concatenate(labels) if labels else None)
