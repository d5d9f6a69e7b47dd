"""An owner's table in the words of the schema that owners agreed on, where it has its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.agreed import suggestion
from fedsynth.data.translation import Translation
from fedsynth.errors import ConfigError, DataError, SchemaError
from fedsynth.schema import Schema
from fedsynth.schema.cells import missing_text, read_cells, texts_of
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
    text_of,
)
from fedsynth.schema.frames import with_columns
from fedsynth.schema.spelling import write_texts


def names_there(translation: Translation, schema: Schema) -> list[str]:
    """What the table calls the schema's columns."""
    theirs = {ours: own for own, ours in (translation.rename or {}).items()}
    return [theirs.get(column.name, column.name) for column in schema.observed]


def place_columns(
    columns: Iterable[Any], translation: Translation, where: str
) -> tuple[list[int], list[Any]]:
    """Which of a table's columns are read, by their places, and their names by the schema.

    Raises:
        DataError: it lacks what is to be dropped or renamed, or would have two of one name.
    """
    present = list(columns)
    known, renamed = [str(name) for name in present], translation.rename or {}
    for key, named in (("drop", translation.drop or ()), ("rename", renamed)):
        for theirs in named:
            if theirs not in known:
                near = suggestion(theirs, known)
                raise DataError(f"{where}: has no column {theirs!r} to `{key}`{near}")
    if both := sorted({*renamed} & {*(translation.drop or ())}):
        raise DataError(f"{where}: {both[0]!r} stands in `drop` and in `rename`: take one out")
    places = [k for k, name in enumerate(known) if name not in (translation.drop or ())]
    names = [renamed.get(known[k], present[k]) for k in places]
    for ours in renamed.values():
        if names.count(ours) > 1:
            raise DataError(f"{where}: `rename` makes two columns of the name {ours!r}")
    return places, names


def written_there(translation: Translation, schema: Schema) -> dict[str, Modelled | Identifier]:
    """The schema's columns by name, with the notations of the table.

    Raises:
        ConfigError: a format of a column that is not there or has none, or that cannot be read.
    """
    there: dict[str, Modelled | Identifier] = {column.name: column for column in schema.columns}
    for name, pattern in (translation.formats or {}).items():
        there[name] = write_as(_find(schema, name, "formats"), pattern)
    return there


def write_as(column: Modelled, pattern: str) -> Modelled:
    """A column of the same cells in another notation.

    Raises:
        ConfigError: it is of neither dates nor numbers, or the pattern of something else.
    """
    if not isinstance(column, Datetime | Integer | Continuous):
        raise ConfigError(
            f"`formats` are of dates and numbers, and {column.name!r} is {column.kind}"
        )
    try:
        if isinstance(column, Datetime):
            kept = {key: getattr(column, key) for key in ("lower", "upper", "resolution", "zone")}
            return Datetime(name=column.name, format=pattern, **kept)
        # Cells are read before they are held against bounds and decimals, which are the column's.
        there = Continuous(name=column.name, lower=-1e15, upper=1e15, decimals=0, format=pattern)
    except SchemaError as error:
        raise ConfigError(f"`formats`: {error}") from None
    if there.seconds != column.seconds:
        units = [
            "numbers" if one is None else f"durations of {one:g} s"
            for one in (there.seconds, column.seconds)
        ]
        raise ConfigError(
            f"`formats`: {pattern!r} is of {units[0]}, and column {column.name!r} of {units[1]}"
        )
    return there


def translate_cells(frame: pd.DataFrame, translation: Translation, schema: Schema) -> pd.DataFrame:
    """The cells of a table, whose columns are renamed already, in the schema's words.

    Raises:
        ConfigError: values or formats that the schema cannot have, or of a column that it has not.
    """
    recoded: dict[str, pd.Series] = {}
    for name, words in (translation.recode or {}).items():
        column = _find(schema, name, "recode")
        _demand_values(column, words, schema.missing_values)
        if name in frame:
            gap = missing_text(column, schema.missing_values)
            cells = {theirs: gap if ours is None else ours for theirs, ours in words.items()}
            recoded[name] = recode(frame[name], cells)
    frame = with_columns(frame, recoded)
    respelled = {}
    for name, pattern in (translation.formats or {}).items():
        column = _find(schema, name, "formats")
        there = write_as(column, pattern)
        if name in frame:
            respelled[name] = respell(frame[name], column, there, schema.missing_values)
    return with_columns(frame, respelled)


def _find(schema: Schema, name: str, key: str) -> Modelled:
    known = {column.name: column for column in schema.observed}
    if name not in known:
        near = suggestion(name, known)
        raise ConfigError(f"`{key}` goes by the schema's names, and none is {name!r}{near}")
    return known[name]


def _demand_values(
    column: Modelled, words: Mapping[str, str | None], missing_values: Sequence[str]
) -> None:
    """Raises ConfigError for a value that the column cannot have."""
    given = [ours for ours in words.values() if ours is not None]
    cells = read_cells(pd.Series(given, dtype=object), column, missing_values)
    for ours, unreadable in zip(given, cells.unreadable, strict=True):
        if unreadable:
            near = ""
            if isinstance(column, Categorical | Boolean):
                near = suggestion(ours, map(text_of, column.categories))
            raise ConfigError(f"`recode`: column {column.name!r} has no value {ours!r}{near}")


def recode(series: pd.Series, cells: Mapping[str, object]) -> pd.Series:
    """Other cells in the place of those that have these texts."""
    texts = texts_of(series)
    return series.astype(object).where(~texts.isin(list(cells)), texts.map(cells))


def respell(
    series: pd.Series, column: Modelled, there: Modelled, missing_values: Sequence[str]
) -> pd.Series:
    """Cells that the notation of `there` reads, as that of `column` has them: numbers as numbers,
    which every notation reads; dates as texts. Others stay as they are."""
    cells = read_cells(series, there, missing_values)
    read = ~(cells.missing | cells.unreadable)
    values = cells.values[read].astype(np.float64)
    spelled = series.astype(object).copy()
    spelled[read] = write_texts(values, column) if isinstance(column, Datetime) else values
    return spelled
