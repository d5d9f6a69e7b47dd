"""Where several owners' tables do not mean the same: units, spellings, types, absent columns.

Nothing is brought into line: a person decides which owner changes its table, or what to declare.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.cells import texts_of
from fedsynth.schema.columns import (
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
    Numeric,
)
from fedsynth.schema.findings import Finding, percent
from fedsynth.schema.reading import Reading

_OWN = 0.2
"""The share of an owner's cells with values that nobody else has, from which it is told."""

_APART, _TAIL = 0.5, 0.01
"""The share of an owner's numbers outside the others' inner range that tells of other units, and
what that range leaves out at either end."""

_SHOWN = 5


def fold_name(name: object) -> str:
    """What names have in common that differ in case, spaces and signs alone."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", str(name)).casefold())


def compare(
    name: str,
    columns: Mapping[str, Modelled | Identifier],
    readings: Mapping[str, Reading],
    absent: Mapping[str, str | None],
) -> Iterator[Finding]:
    """How one column differs between owners, from what each one's rows alone would be drafted as.

    Args:
        columns: the drafted column of each owner that has it; `readings` likewise.
        absent: the owners that lack it, and a column there whose name is nearly the same.
    """
    if absent:
        near = {owner: theirs for owner, theirs in absent.items() if theirs is not None}
        text = f"absent at {join_names(absent)}: add it there, or drop it from the schema"
        if near:
            called = join_names([f"{theirs!r} at {owner}" for owner, theirs in near.items()])
            text += f"; rename what may be it: {called}"
        yield Finding(name, "absent", text)
    empty = [owner for owner, read in readings.items() if read.known.empty]
    filled = [owner for owner in readings if owner not in empty]
    if empty and filled:
        yield Finding(name, "empty", f"holds no value at {join_names(empty)}")
    words = {owner: _word(columns[owner], readings[owner]) for owner in filled}
    if len(set(words.values())) > 1:
        told = "; ".join(
            f"{word} at {join_names([owner for owner in filled if words[owner] == word])}"
            for word in dict.fromkeys(words.values())
        )
        yield Finding(name, "type", f"differs between owners: {told}")
    for owner in filled:
        others = [readings[other] for other in filled if other != owner]
        if not others:
            return
        if all(isinstance(columns[one], Categorical) for one in filled):
            yield from _compare_values(name, owner, readings[owner], others)
        numeric = all(isinstance(columns[one], Numeric) for one in filled)
        if numeric and len({readings[one].meaning for one in filled}) == 1:
            yield from _compare_ranges(name, owner, readings[owner], others)


def _word(column: Modelled | Identifier, read: Reading) -> str:
    """What an owner's column is, where two owners should not differ."""
    if isinstance(column, Datetime):
        zone = "" if column.zone is None else f" in {column.zone}"
        iso = column.format is None or column.format.startswith("%Y-%m-%d")
        return f"dates as {'ISO 8601' if iso else column.format}{zone}"
    if isinstance(column, Integer | Continuous) and column.format is not None:
        return f"{'numbers' if column.seconds is None else 'durations'} as {column.format}"
    if read.meaning in ("boolean", "date"):
        return f"{read.meaning}s"
    written = "texts" if pd.api.types.infer_dtype(read.known) in ("string", "mixed") else "numbers"
    if read.meaning == "number":
        return "numbers" if written == "numbers" else "numbers in texts"
    return written


def _compare_values(
    name: str, owner: str, read: Reading, others: list[Reading]
) -> Iterator[Finding]:
    known = {text for other in others for text in texts_of(other.known).unique()}
    texts = texts_of(read.known)
    own = texts[~texts.isin(known)]
    if len(own) >= _OWN * len(texts):
        share = percent(len(own) / len(texts))
        text = (
            f"{share} of the cells at {owner} have values that no other owner has: if they mean "
            "the same in other words, `recode` them there"
        )
        yield Finding(name, "values", text, tuple(own.value_counts().index[:_SHOWN]))


def _compare_ranges(
    name: str, owner: str, read: Reading, others: list[Reading]
) -> Iterator[Finding]:
    values = _floats(read)
    rest = np.concatenate([_floats(other) for other in others])
    low, high = np.quantile(rest, [_TAIL, 1 - _TAIL])
    apart = ((values < low) | (values > high)).mean()
    if apart <= _APART:
        return
    text = f"{percent(apart)} of the cells at {owner} lie outside nearly all of the other owners'"
    medians: tuple[str, ...] = ()
    if read.meaning == "number":
        text += ", by its median and theirs: another unit?"
        medians = (f"{np.median(values):.4g}", f"{np.median(rest):.4g}")
    yield Finding(name, "range", text, medians)


def _floats(read: Reading) -> NDArray[np.float64]:
    values = read.values
    if read.meaning == "date":
        values = values.dt.tz_localize(None).astype("datetime64[s]").astype("int64")
    return np.asarray(values, dtype=np.float64)


def join_names(names: Iterable[str]) -> str:
    """A few of the names, and how many more there are."""
    every = list(names)
    shown = ", ".join(every[:_SHOWN])
    return shown if len(every) <= _SHOWN else f"{shown} and {len(every) - _SHOWN} more"
