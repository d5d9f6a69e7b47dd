"""What owners' tables have in common, and how each is to be read so that they say it alike.

Only what leaves no doubt is brought together: names that differ in case, spaces and signs; dates
and numbers in other notations; values that differ in case, and words for yes and no. All else is
a draft's to tell (:mod:`fedsynth.schema.differences`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pandas as pd

from fedsynth.data.suggesting import truth
from fedsynth.data.translating import recode, respell, write_as
from fedsynth.data.translation import Translation
from fedsynth.errors import DataError
from fedsynth.schema.cells import texts_of
from fedsynth.schema.columns import Continuous, Datetime, text_of
from fedsynth.schema.columns.notation import parse_notation
from fedsynth.schema.differences import fold_name, join_names
from fedsynth.schema.frames import with_columns
from fedsynth.schema.reading import Reading, read_series

_MOST_VALUES = 100
"""Of a column, more than which are taken for texts rather than categories."""


@dataclass
class Agreement:
    """Tables that say the same alike.

    Attributes:
        tables: by owner, with the columns that all have, in the first's order.
        drop, rename, formats, recode: by owner, of its :class:`Translation`.
        told: what was brought together, left out or is doubtful, in sentences: they quote cells,
            for the owners' eyes only.
    """

    tables: dict[str, pd.DataFrame]
    drop: dict[str, list[str]] = field(default_factory=dict)
    rename: dict[str, dict[str, str]] = field(default_factory=dict)
    formats: dict[str, dict[str, str]] = field(default_factory=dict)
    recode: dict[str, dict[str, dict[str, str | None]]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def translation_of(self, owner: str) -> Translation:
        """How to read an owner's table."""
        # What is empty is not said.
        parts = {key: getattr(self, key).get(owner) or None for key in Translation.model_fields}
        return Translation(**parts)


def agree(tables: Mapping[str, pd.DataFrame]) -> Agreement:
    """Bring two or more owners' tables together, by name; of one nothing is changed.

    Raises:
        DataError: they have no column in common.
    """
    if len(tables) < 2:
        return Agreement(dict(tables))
    found = Agreement({owner: frame.rename(columns=str) for owner, frame in tables.items()})
    _agree_on_names(found)
    _keep_shared(found)
    for name in list(next(iter(found.tables.values())).columns):
        read = {owner: read_series(frame[name]) for owner, frame in found.tables.items()}
        filled = {owner: one for owner, one in read.items() if len(one.known)}
        meanings = {one.meaning for one in filled.values()}
        if meanings == {"date"}:
            _agree_on_dates(found, name, filled)
        elif meanings == {"number"}:
            _agree_on_numbers(found, name, filled)
        else:
            _agree_on_words(found, name, filled)
    return found


def _agree_on_names(found: Agreement) -> None:
    """Of names that are one but for case, spaces and signs, the first owner's."""
    common: dict[str, str] = {}
    apart: set[str] = {""}
    for frame in found.tables.values():
        folded = list(map(fold_name, frame.columns))
        # Two of one owner's columns may differ by just that.
        apart |= {key for key, count in Counter(folded).items() if count > 1}
        for key, name in zip(folded, frame.columns, strict=True):
            first = common.setdefault(key, name)
            # Spaces before or behind a name are nobody's intent.
            if first != first.strip() and name == name.strip():
                common[key] = name
    for owner, frame in found.tables.items():
        ours = {name: common[fold_name(name)] for name in frame.columns}
        renamed = {
            name: other
            for name, other in ours.items()
            if name != other and fold_name(name) not in apart
        }
        if renamed:
            found.rename[owner] = renamed
            found.tables[owner] = frame.rename(columns=renamed)
            found.told.append(f"{owner}: takes {_say(renamed)}")


def _keep_shared(found: Agreement) -> None:
    """Without columns that some owner lacks: a job asks every owner for every column."""
    columns = {owner: list(frame.columns) for owner, frame in found.tables.items()}
    names = list(dict.fromkeys(name for own in columns.values() for name in own))
    absent = {name: [owner for owner in columns if name not in columns[owner]] for name in names}
    for name in filter(absent.get, names):
        lacking = absent[name]
        found.told.append(
            f"{name}: left out, for {join_names(lacking)} {'have' if lacking[1:] else 'has'} no "
            "such column; if it has another name there, say `rename`"
        )
    shared = [name for name in names if not absent[name]]
    if not shared:
        raise DataError(f"{join_names(columns)} have no column in common: call them alike")
    for owner, frame in found.tables.items():
        found.tables[owner] = frame[shared]
        renamed = found.rename.pop(owner, {})
        theirs = {ours: own for own, ours in renamed.items()}
        if kept := {own: ours for own, ours in renamed.items() if ours in shared}:
            found.rename[owner] = kept
        if dropped := [theirs.get(name, name) for name in columns[owner] if absent[name]]:
            found.drop[owner] = dropped


def _agree_on_dates(found: Agreement, name: str, read: Mapping[str, Reading]) -> None:
    """ISO 8601, unless all are written in one other way."""
    patterns = {owner: _date_pattern(one, read) for owner, one in read.items()}
    texts = {owner: pd.api.types.infer_dtype(one.known) == "string" for owner, one in read.items()}
    same = len(set(patterns.values())) == 1 and len(set(texts.values())) == 1
    if same or any(one.zone is not None for one in read.values()):
        return
    timed = any((one.values != one.values.dt.normalize()).any() for one in read.values())
    iso = "%Y-%m-%d %H:%M:%S" if timed else "%Y-%m-%d"
    ends = {"lower": datetime(1678, 1, 1), "upper": datetime(2261, 12, 31)}
    ours = Datetime(name=name, resolution="second", format=iso, **ends)
    for owner, pattern in patterns.items():
        _respell(found, owner, ours, pattern)
        if pattern is not None and read[owner].swapped is not None:
            other = {read[owner].pattern, read[owner].swapped} - {pattern}
            found.told.append(
                f"{name}: every date at {owner} would fit {other.pop()} too: look at `formats`"
            )


def _date_pattern(one: Reading, read: Mapping[str, Reading]) -> str | None:
    """An owner's format; None for ISO 8601. Where two fit, that which only fits at another's."""
    sure = {other.pattern for other in read.values() if other.swapped is None}
    pattern = one.swapped if one.swapped in sure and one.pattern not in sure else one.pattern
    return None if pattern is None or pattern.startswith("%Y-%m-%d") else pattern


def _agree_on_numbers(found: Agreement, name: str, read: Mapping[str, Reading]) -> None:
    """Plain numbers, unless all are written in one other way."""
    patterns = {owner: one.pattern for owner, one in read.items()}
    units = {None if p is None else parse_notation(p).seconds for p in patterns.values()}
    if len(set(patterns.values())) == 1 or len(units) > 1 or None not in units:
        return
    ours = Continuous(name=name, lower=-1e15, upper=1e15, decimals=0)
    for owner, pattern in patterns.items():
        if pattern is not None:
            _respell(found, owner, ours, pattern)


def _respell(
    found: Agreement, owner: str, column: Datetime | Continuous, pattern: str | None
) -> None:
    """An owner's cells in the column's own notation, and what theirs is if it is not ISO 8601."""
    frame, name = found.tables[owner], column.name
    there = (
        column.model_copy(update={"format": None}) if pattern is None else write_as(column, pattern)
    )
    cells = respell(frame[name], column, there, ())
    found.tables[owner] = with_columns(frame, {name: cells})
    if pattern is not None:
        found.formats.setdefault(owner, {})[name] = pattern
        what = "dates" if isinstance(column, Datetime) else "numbers"
        found.told.append(f"{name}: {what} at {owner} are read as {pattern}")


def _agree_on_words(found: Agreement, name: str, read: Mapping[str, Reading]) -> None:
    """Spellings of most cells for values that differ in case; one owner's words for yes and no."""
    words = {owner: Counter(map(str, texts_of(one.known))) for owner, one in read.items()}
    if len(words) < 2 or max(map(len, words.values())) > _MOST_VALUES:
        return
    common = _fold_truth(words) or _fold_case(words)
    # As they stand there: a truth value or number, perhaps, and no text.
    cells = {text_of(cell): cell for one in read.values() for cell in one.known.unique()}
    for owner, own in words.items():
        changed: dict[str, str | None] = {word: common[word] for word in own if word in common}
        if changed:
            found.recode.setdefault(owner, {})[name] = changed
            frame = found.tables[owner]
            spelled = {theirs: cells[str(ours)] for theirs, ours in changed.items()}
            found.tables[owner] = with_columns(frame, {name: recode(frame[name], spelled)})
            found.told.append(f"{name}: {owner} takes {_say(changed)}")


def _fold_case(words: Mapping[str, Counter[str]]) -> dict[str, str]:
    """The commonest spelling by every other of it; none that one owner has in two spellings."""
    spellings: dict[str, Counter[str]] = {}
    for own in words.values():
        for word, count in own.items():
            spellings.setdefault(word.casefold(), Counter())[word] += count
    folded = [Counter(map(str.casefold, own)) for own in words.values()]
    return {
        word: found.most_common(1)[0][0]
        for key, found in spellings.items()
        if all(own[key] < 2 for own in folded)
        for word in found
        if word != found.most_common(1)[0][0]
    }


def _fold_truth(words: Mapping[str, Counter[str]]) -> dict[str, str]:
    """The first owner's yes and no by every other word for them, where each owner has both: an F
    alone may be no false."""
    pairs = [sorted(own, key=lambda word: bool(truth(word))) for own in words.values()]
    if any([truth(word) for word in own] != [False, True] for own in pairs):
        return {}
    first = pairs[0]
    return {
        word: ours for own in pairs for word, ours in zip(own, first, strict=True) if word != ours
    }


def _say(changed: Mapping[str, str | None]) -> str:
    return join_names(f"{theirs!r} for {ours!r}" for theirs, ours in changed.items())
