"""A job's data: read, held out by seed, given to their owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.data.images import ARCHIVE_FAULTS, Images, read_array, read_images
from fedsynth.data.persons import people_of, split_people
from fedsynth.errors import Caution, ConfigError, DataError, warn_of
from fedsynth.federation.simulation.partitions import partition
from fedsynth.federation.simulation.rows import Rows as CutRows
from fedsynth.federation.simulation.schemes import Column
from fedsynth.files import demand_unpacked
from fedsynth.jobs.config import Config
from fedsynth.jobs.inputs import Data, Origin, Sites, expand_path, origin_of
from fedsynth.jobs.reading import find_file, find_images, read_origin
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema, load_schema

Rows = pd.DataFrame | Images
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JobData:
    """A job's data.

    Attributes:
        owners: the rows to learn from, by owner.
        train: the same rows, all together.
        test: rows that the fit never sees, perhaps none; None where the job holds nothing out.
        held_out: the same rows by owner, empty for an owner without; where owners are simulated, or
            the rows came without one, all under "holdout".
        public: rows that anybody may see, for methods that label them; None without.
        owners_provenance: "private-data" where the rows themselves tell which owners there are.
    """

    schema: Schema | ImageSchema
    owners: dict[str, Rows]
    train: Rows
    test: Rows | None
    held_out: dict[str, Rows]
    public: Rows | None = None
    owners_provenance: str = "declared"


def prepare(config: Config, base: Path, caution: Caution = warn_of) -> JobData:
    """Read a job's data, hold rows out, and give the others to their owners.

    Args:
        base: the folder that the job's paths are relative to.
        caution: called with what was guessed of how a file is written, an owner's with its name.

    Raises:
        ConfigError: keys that do not go together with the data.
        DataError: data that are absent, damaged or too few.
    """
    sites = sites_of(config)
    schema = read_schema(config, base)
    public = read_public(config, schema, base, caution)
    if sites.paths is not None:
        return replace(_read_files(config, schema, base, caution), public=public)
    data, test_images = _read_rows(config, schema, base, caution)
    column = None
    if sites.column is not None:
        column = _read_owners(config, schema, base, data, caution)
    data = _drop_column(data, sites, schema)
    test: Rows | None = test_images
    kept, rest = np.arange(len(data)), np.empty(0, np.int64)
    if test is None and config.holdout:
        kept, rest = split_rows(data, schema, "the data", config.holdout, config.seed)
        if not len(rest):
            raise DataError(f"too few rows to hold out {config.holdout:g} of them; set holdout: 0")
        test = take_rows(data, rest)
    train = take_rows(data, kept)
    held_out: dict[str, Rows] = {} if test is None else {"holdout": test}
    if column is None:
        scheme, options = sites.scheme or "", sites.options
        owners = _partition(
            train, sites.clients, scheme, schema=schema, seed=config.seed, **options
        )
    else:
        owners = column.divide(train, kept)
        if test is not None and len(rest):
            # Of simulated owners nobody's: dealt out again, one row would decide whose others are.
            held_out = column.divide(test, rest)
    provenance = "declared" if column is None else column.provenance
    return JobData(schema, owners, train, test, held_out, public, provenance)


def sites_of(config: Config) -> Sites:
    """Whose rows are whose. Raises ConfigError for a job whose owners are on their own machines."""
    if config.sites is None:
        raise ConfigError(
            "this job's rows are with their owners (`runtime: stream`), and none are here: "
            "`fedsynth serve` runs it, and each owner joins"
        )
    return config.sites


def without_rows(config: Config, base: Path, caution: Caution = warn_of) -> JobData:
    """What a server has of a job over a network: schema and public rows."""
    schema = read_schema(config, base)
    public = read_public(config, schema, base, caution)
    return JobData(schema, {}, pd.DataFrame(), None, {}, public)


def read_public(
    config: Config, schema: Schema | ImageSchema, base: Path, caution: Caution
) -> Rows | None:
    """Public rows, of a table with or without its target."""
    if config.public is None:
        return None
    if isinstance(schema, Schema):
        return read_origin(config.public, None, base, caution, key="public.path")
    path = find_images(config.public, schema, base, key="public.path")
    key = config.public.key
    return read_images(path, schema.model_copy(update={"target": None, "person": None}), (key, key))


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
    config: Config, schema: Schema | ImageSchema, base: Path, caution: Caution
) -> tuple[Rows, Images | None]:
    """The job's rows, and the test images where its file holds some."""
    data = config.data
    if data.builtin is not None:
        return load_builtin(data.builtin), None
    if isinstance(schema, Schema):
        return read_origin(data, schema, base, caution, source=data.source), None
    path = find_images(data, schema, base, source=data.source)
    test = None if data.test_keys is None else read_images(path, schema, data.test_keys)
    return read_images(path, schema, data.keys), test


def split_rows(
    rows: Rows, schema: Schema | ImageSchema, where: str, holdout: float, seed: int
) -> tuple[Indices, Indices]:
    """Positions of the rows to learn from and of those held out, in a random order.

    Persons are held out where the schema names them: all of somebody's rows or none. A single row
    (a single person's) is learned from.

    Raises:
        DataError: a row of nobody; `where` names the table.
    """
    people = people_of(rows, schema, where)
    count = int(people.max(initial=-1)) + 1
    cut = max(min(count, 1), int((1 - holdout) * count))
    return split_people(people, cut, np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class _Owners:
    """What a column says of rows: the owner of each, and which owners there are.

    Attributes:
        provenance: "declared", or "private-data" where the names were read off the rows.
    """

    values: pd.Series
    names: Sequence[object]
    provenance: str

    def divide(self, rows: Rows, positions: Indices) -> dict[str, Rows]:
        """Rows that stood at these positions, by owner; empty for an owner without."""
        options = {"column": self.values.iloc[positions], "names": self.names}
        return _partition(rows, None, "column", **options)


def _read_owners(
    config: Config, schema: Schema | ImageSchema, base: Path, data: Rows, caution: Caution
) -> _Owners:
    sites = sites_of(config)
    name = sites.column or ""
    names: Sequence[object] | None = sites.declared
    if sites.path is None:
        values = CutRows(data).column(name)
        names = _values_of(schema, name) if names is None else names
    else:
        origin, source = origin_of(sites.path), config.data.source
        if origin.path is not None and Path(origin.path).suffix == ".npz":
            array = _read_array(find_file(origin.path, base, source), name)
        else:
            frame = read_origin(origin, None, base, caution, source=source)
            where = origin.path or "the query of `sites.path`"
            if name not in frame:
                listed = ", ".join(map(str, frame))
                raise DataError(f"{where}: has no column {name!r}; it has {listed}")
            array = frame[name].to_numpy()
        values = pd.Series(array, name=name)
        if len(values) != len(data):
            raise DataError(f"sites.path: {len(values)} values for {len(data)} rows of data")
    # Of all rows, so that a name that only a held-out row has is an owner's too, or refused.
    _, found = Column(values, names).groups(CutRows(data))
    return _Owners(values, found, "private-data" if names is None else "declared")


def count_clients(config: Config, schema: Schema | ImageSchema) -> int | None:
    """How many clients a job has by what is declared; None where only rows would tell."""
    if config.federation.owners is not None:
        return len(config.federation.owners)
    sites = sites_of(config)
    if sites.clients is not None:
        return sites.clients
    names = sites.declared if sites.paths is None else tuple(sites.paths)
    if names is None and sites.column is not None and sites.path is None:
        found = _values_of(schema, sites.column)
        names = None if found is None else tuple(map(str, found))
    return None if names is None else len(names)


def _values_of(schema: Schema | ImageSchema, name: str) -> Sequence[object] | None:
    """What a schema declares a column to hold; None for any but a column of categories."""
    if isinstance(schema, ImageSchema) or schema.provenance != "declared":
        return None
    column = next((c for c in schema.columns if c.name == name), None)
    return column.categories if isinstance(column, Boolean | Categorical) else None


def _partition(train: Rows, clients: int | None, scheme: str, **options: Any) -> dict[str, Rows]:
    if isinstance(train, Images):
        return dict(partition(train, clients, scheme, **options))
    return dict(partition(train, clients, scheme, **options))


def _read_array(path: Path, name: str) -> NDArray[np.generic]:
    """One array of a .npz file."""
    demand_unpacked(path, DataError)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if name not in archive:
                raise DataError(f"{path}: has no array {name!r}; it has {', '.join(archive)}")
            return read_array(archive, name)
    except ARCHIVE_FAULTS:
        raise DataError(f"{path}: is damaged, or no .npz file of plain arrays") from None


def _read_files(
    config: Config, schema: Schema | ImageSchema, base: Path, caution: Caution
) -> JobData:
    """One file or query for each owner; the same share of each is held out.

    Whether a file holds rows, or enough of them to hold some out, ends nothing: all would see it.
    """
    owners: dict[str, Rows] = {}
    held_out: dict[str, Rows] = {}
    for name, given in (sites_of(config).paths or {}).items():
        rows = read_owner(name, origin_of(given), config.data, schema, base, caution)
        if config.holdout:
            kept, rest = split_rows(rows, schema, name, config.holdout, config.seed)
            held_out[name] = take_rows(rows, rest)
            rows = take_rows(rows, kept)
        owners[name] = rows
    test = _concatenate(list(held_out.values())) if held_out else None
    return JobData(schema, owners, _concatenate(list(owners.values())), test, held_out)


def read_owner(
    name: str,
    origin: Origin,
    data: Data,
    schema: Schema | ImageSchema,
    base: Path,
    caution: Caution,
) -> Rows:
    """An owner's rows, perhaps none. Raises as :func:`read_origin`."""
    if isinstance(schema, ImageSchema):
        path = find_images(origin, schema, base, source=data.source)
        return read_images(path, schema, data.keys, empty=True)

    def caution_owner(sentence: str) -> None:
        caution(f"for the eyes of {name} alone: {sentence}")

    return read_origin(
        origin, schema, base, caution_owner, source=data.source, beside=data, empty=True
    )


def take_rows(rows: Rows, positions: Indices) -> Rows:
    """Rows at positions, numbered anew."""
    if isinstance(rows, Images):
        return rows.take(positions)
    return rows.iloc[positions].reset_index(drop=True)


def _drop_column(rows: Rows, sites: Sites, schema: Schema | ImageSchema) -> Rows:
    """Without a column that only names the owner."""
    if isinstance(rows, Images) or isinstance(schema, ImageSchema) or sites.path is not None:
        return rows
    declared = {c.name for c in schema.columns}
    return rows if sites.column in {None, *declared} else rows.drop(columns=sites.column)


def _concatenate(parts: list[Rows]) -> Rows:
    tables = [part for part in parts if isinstance(part, pd.DataFrame)]
    if tables:
        return pd.concat(tables, ignore_index=True)
    images = [part for part in parts if isinstance(part, Images)]
    labels = [part.labels for part in images if part.labels is not None]
    pixels = np.concatenate([part.pixels for part in images])
    # An owner's keys are its own: of all owners together nobody's.
    return Images(pixels, np.concatenate(labels) if labels else None)
