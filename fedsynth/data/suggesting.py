"""What may bring an owner's table within a schema that was agreed on: for the owner to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from fedsynth.data.translating import write_as
from fedsynth.data.translation import Translation
from fedsynth.errors import ConfigError
from fedsynth.schema import Schema
from fedsynth.schema.cells import FALSE, TRUE, read_cells, violations
from fedsynth.schema.columns import Categorical, Continuous, Datetime, Integer, text_of
from fedsynth.schema.differences import fold_name
from fedsynth.schema.reading import read_series


def truth(word: str) -> bool | None:
    """Whether a word says yes or no; None for any other."""
    folded = word.casefold()
    return True if folded in TRUE else False if folded in FALSE else None


def suggest(frame: pd.DataFrame, schema: Schema) -> tuple[Translation, list[str]]:
    """A translation of a table, and what of it is doubtful, in sentences.

    Names that differ in case, spaces and signs; notations of dates and numbers that the schema's
    does not read; values that differ in case, and words for yes and no where the schema has two.
    Columns that it does not know are dropped. What else is outside has to be looked at.
    """
    rename = _suggest_names(frame.columns, [column.name for column in schema.columns])
    table = frame.rename(columns=rename)
    known = {column.name for column in schema.columns}
    drop = [str(name) for name in table.columns if name not in known]
    formats: dict[str, str] = {}
    recode: dict[str, dict[str, str]] = {}
    doubts: list[str] = []
    for column in schema.observed:
        if column.name not in table or (table.columns == column.name).sum() > 1:
            continue
        series = table[column.name]
        odd = series[read_cells(series, column, schema.missing_values).unreadable]
        if odd.empty:
            continue
        if isinstance(column, Categorical):
            if words := _suggest_values({*odd.map(text_of)}, list(map(text_of, column.categories))):
                recode[column.name] = words
        elif isinstance(column, Datetime | Integer | Continuous):
            fitting = _suggest_formats(odd, column, schema.missing_values)
            if fitting:
                formats[column.name] = fitting[0]
            if fitting[1:]:
                first, second = fitting
                doubts.append(f"{column.name}: every cell would fit {second} as well as {first}")
    found = {"drop": drop, "rename": rename, "formats": formats, "recode": recode}
    said: dict[str, Any] = {key: value for key, value in found.items() if value}
    return Translation(**said), doubts


def _suggest_names(present: Iterable[Any], declared: list[str]) -> dict[str, str]:
    """The schema's names that are lacking, by the only one there that may be it."""
    names = list(map(str, present))
    lacking = {fold_name(name): name for name in declared if name not in names}
    others = Counter(fold_name(name) for name in names if name not in declared)
    return {
        name: lacking[fold_name(name)]
        for name in names
        if name not in declared and fold_name(name) in lacking and others[fold_name(name)] == 1
    }


def _suggest_values(odd: set[str], categories: list[str]) -> dict[str, str]:
    folded = Counter(text.casefold() for text in categories)
    spelled = {text.casefold(): text for text in categories if folded[text.casefold()] == 1}
    words = {text: spelled[text.casefold()] for text in sorted(odd) if text.casefold() in spelled}
    ours, theirs = ({truth(text): text for text in texts} for texts in (categories, sorted(odd)))
    # Of one word alone nobody knows: an F may be no false.
    if len(categories) == 2 and set(ours) == {False, True} <= set(theirs):
        words |= {text: ours[truth(text)] for text in sorted(odd) if truth(text) is not None}
    return words


def _suggest_formats(
    odd: pd.Series, column: Datetime | Integer | Continuous, missing_values: Iterable[str]
) -> list[str]:
    """Notations that read all these cells, that with the fewest outside the bounds first; a second
    one where as few are."""
    read = read_series(odd)
    patterns = [one for one in (read.pattern, read.swapped) if one is not None]
    broken: dict[str, int] = {}
    for pattern in patterns:
        try:
            there = write_as(column, pattern)
        except ConfigError:
            continue
        cells = read_cells(odd, there, missing_values)
        if not cells.unreadable.any():
            outside = violations(cells, there if isinstance(there, Datetime) else column)
            broken[pattern] = sum(int(mask.sum()) for mask in outside.values())
    best = min(broken.values(), default=0)
    return [pattern for pattern, count in broken.items() if count == best]
