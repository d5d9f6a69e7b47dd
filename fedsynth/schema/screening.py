"""What in a column looks personal, or says little that could be learned: hints to its owner.

Hints go by names and by what nearly all texts look like. Their absence says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pandas as pd

from fedsynth.schema.columns import Categorical, Datetime, Identifier, Integer, Modelled, text_of
from fedsynth.schema.findings import Finding

_MOSTLY = 0.8
"""The share of a column's texts that makes it one of mails, telephone numbers and the like."""

_SAMPLE, _SHOWN = 500, 5
_FEWEST_ROWS = 10
_FEWEST_PERSONS = 20
"""So many distinct texts at least are those of persons: fewer may be labels."""
_NEARLY_KEY = 0.9
_WORDS, _DISTINCT = 4, 0.5
"""Free text has at least so many words a cell on average, and such a share of distinct cells."""

_SHAPES = {
    "e-mail addresses": r"[^@\s]+@[^@\s]+\.[^@\s]+",
    "IBANs": r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?",
    "telephone numbers": r"(?:\+|00?)[1-9][\d ()/.-]{6,18}\d|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}",
}
_NAMES = {
    "e-mail addresses": r"e.?mail",
    "IBANs": r"iban",
    "telephone numbers": r"(tele)?(phone|fon)|mobile|fax",
    "names of persons": r"((first|last|full|middle|family|given|sur|patient|user)[\W_]?)?name"
    r"|vorname|nachname",
    "postcodes": r"zip([\W_]?code)?|post[\W_]?(al)?[\W_]?code|plz|postleitzahl",
    "addresses": r"(street|home|postal)?[\W_]?address|street|strasse|stra\u00dfe|adresse",
    "birth dates": r"(date[\W_]of[\W_])?birth([\W_]?(date|day))?|dob|geburtsdatum|geb[\W_]?datum",
    "numbers of persons": r"(ssn|social[\W_]security|passport|mrn|nhs)([\W_]?(number|no))?",
}


_NUMBERED_NAME = re.compile(r"(.*[\W_])?(id|key|no|nr|num|number|nummer)", re.IGNORECASE)


def _count(known: pd.Series) -> pd.Series:
    """How often each value occurs that does, the commonest first; values as they are, of which
    pandas would guess another dtype."""
    counts = Counter(known.tolist())
    found = pd.Series(list(counts.values()), index=pd.Index(list(counts), dtype=object), dtype=int)
    return found.sort_values(ascending=False, kind="stable")


def hides_persons(known: pd.Series) -> bool:
    """Whether a list of these texts would tell of single persons: hardly any stands twice, or they
    are free text, mails, telephone or account numbers. A schema is public, and so is its list."""
    counts = _count(known)
    texts = pd.Series([cell for cell in counts.index if isinstance(cell, str)], dtype=object)
    if len(texts) < len(counts) or len(counts) < _FEWEST_PERSONS:
        return False
    nearly = len(counts) > _NEARLY_KEY * len(known)
    return nearly or _is_free(counts.index, len(known)) or _shape(texts) is not None


def screen(column: Modelled | Identifier, known: pd.Series) -> Iterator[Finding]:
    """Findings about one drafted column, from those of its cells that are not missing."""
    name = column.name
    if known.empty:
        return
    if personal := _personal(column, known):
        kept = isinstance(column, Identifier)
        advice = "never learned, made anew" if kept else "drop it, make it an identifier or coarser"
        yield Finding(name, "personal", f"looks like {personal}: {advice}")
    counts = _count(known)
    once = int((counts == 1).sum())
    if isinstance(column, Identifier):
        if _is_free(counts.index, len(known)):
            yield Finding(name, "free-text", "looks like free text: never learned, made anew")
        counted = f"{once:,} of {len(known):,} occur once: taken for a key"
        text = counted if once else "each occurs once at an owner: taken for its key"
        text += ", never learned, made anew"
        if once and once < len(known):
            text += "; if its values are public, declare them as a category"
        yield Finding(name, "identifier", text)
        return
    if len(counts) == 1:
        yield Finding(name, "constant", "has one value in all rows: it says nothing; drop it")
        return
    rows, rare = len(known), counts[counts <= 2]
    numbered = isinstance(column, Integer) and _NUMBERED_NAME.fullmatch(name)
    if not (isinstance(column, Categorical) or numbered):
        return
    if rows >= _FEWEST_ROWS and len(counts) > _NEARLY_KEY * rows:
        text = f"{once:,} of {rows:,} occur once: nearly a key; drop it or make it an identifier"
        yield Finding(name, "near-key", text)
    elif len(rare) and isinstance(column, Categorical) and column.other is None:
        text = (
            f"{len(rare):,} of {len(counts):,} values occur once or twice, and the draft lists "
            f"them: remove those that are not public"
        )
        yield Finding(name, "rare", text, tuple(text_of(value) for value in rare.index[:_SHOWN]))
    if _is_free(counts.index, rows):
        text = "looks like free text, learned as labels: drop it or make it an identifier"
        yield Finding(name, "free-text", text)


def _personal(column: Modelled | Identifier, known: pd.Series) -> str | None:
    """What the column's name, or the shape of its texts, says that it holds of persons."""
    for kind, pattern in _NAMES.items():
        named = re.fullmatch(pattern, column.name.strip(), re.IGNORECASE)
        # A flag such as email: yes/no holds none.
        if named and (kind != "birth dates" or isinstance(column, Datetime)):
            return kind if known.nunique() > 2 else None
    if not isinstance(column, Categorical | Identifier):
        return None
    return _shape(known)


def _shape(known: pd.Series) -> str | None:
    """What nearly all texts among the cells look like."""
    texts = known.iloc[:: max(len(known) // _SAMPLE, 1)]
    texts = pd.Series([cell for cell in texts if isinstance(cell, str)], dtype=object).str.strip()
    for kind, pattern in _SHAPES.items():
        if len(texts) and texts.str.fullmatch(pattern).mean() >= _MOSTLY:
            return kind
    return None


def _is_free(values: pd.Index, rows: int) -> bool:
    sample = values[:: max(len(values) // _SAMPLE, 1)]
    words = [len(cell.split()) for cell in sample if isinstance(cell, str)]
    return (
        rows >= _FEWEST_ROWS
        and len(values) >= _DISTINCT * rows
        and sum(words) >= _WORDS * len(sample)
    )
