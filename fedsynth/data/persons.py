"""Whose each row is, where a schema names a person: which rows have the same key, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import DataError
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.cells import read_keys


def keys_of_persons(frame: pd.DataFrame, schema: Schema, where: str) -> pd.Series | None:
    """The person's key in each row [n], as text: 1, 1.0 and " 1" are one.

    None where the schema names no person, or the table lacks that column.

    Raises:
        DataError: a row without a key: it may be of somebody who has others, and would then be
            protected apart from them; or a cell that is a list or the like.
    """
    if schema.person is None or schema.person not in frame:
        return None
    codes, keys = read_keys(frame[schema.person], schema.missing_values)
    if (codes < 0).any():
        raise DataError(
            f"{where}: there are rows without a person: column {schema.person!r} has gaps. Whose "
            f"they are is not known, so they cannot be protected together with the person's "
            f"others: fill the gaps, or leave these rows out"
        )
    return pd.Series(np.array(keys, dtype=object)[codes], index=frame.index, dtype=object)


def persons_of(frame: pd.DataFrame, schema: Schema, where: str) -> NDArray[np.int64] | None:
    """Whose each row [n] is: numbers from 0 in the order of first appearance.

    None and errors as of `keys_of_persons`.
    """
    keys = keys_of_persons(frame, schema, where)
    return None if keys is None else number(keys.to_numpy())


def demand_persons(frame: pd.DataFrame, schema: Schema, where: str) -> None:
    """Raises DataError for a table that lacks the column that its schema names for the person."""
    if schema.person is not None and schema.person not in frame:
        raise DataError(
            f"{where}: lacks the column {schema.person!r}, which says whose a row is (the "
            f"schema's `person`). It has {', '.join(map(repr, list(frame.columns)[:10]))}"
        )


def number(persons: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers [n] from 0 in the order of first appearance, of any keys [n] without gaps."""
    return np.asarray(pd.factorize(persons)[0], dtype=np.int64)


def people_of(
    rows: pd.DataFrame | Images, schema: Schema | ImageSchema, where: str
) -> NDArray[np.int64]:
    """As `persons_of`, of images too; where persons are not told apart each row [n] is somebody's
    own."""
    persons = None
    if isinstance(rows, Images):
        if schema.person is not None and rows.persons is not None:
            persons = number(rows.persons)
    elif isinstance(schema, Schema):
        persons = persons_of(rows, schema, where)
    return np.arange(len(rows)) if persons is None else persons


def shuffle_people(
    people: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the rows [n], one person's behind each other and persons in random order, and the
    persons' places in that order [n], rising from 0.

    Args:
        people: whose each row is, numbers from 0 without gaps.
    """
    order = rng.permutation(int(people.max(initial=-1)) + 1)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    places = np.argsort(ranks[people], kind="stable")
    return places, ranks[people][places]


def split_people(
    people: NDArray[np.int64], first: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the rows of so many random persons, and those of all others' rows."""
    places, ranks = shuffle_people(people, rng)
    cut = int(np.searchsorted(ranks, first))
    return places[:cut], places[cut:]


def describe_persons(persons: NDArray[np.int64]) -> str:
    """How many rows [n > 0] the persons have, for the owner's eyes."""
    counts = np.unique(persons, return_counts=True)[1]
    if counts.max() == 1:
        return "no person has two rows, so that a person is a row"
    return (
        f"{len(counts):,} persons have {len(persons):,} rows, {np.median(counts):g} each in the "
        f"median and {counts.max():,} at most"
    )
