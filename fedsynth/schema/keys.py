"""Keys with repeats among a table's columns: which rows are whose, told from the rows alone.

Listed as categories, they would all stand in a schema that is public; as numbers they would be
learned. What tells them from labels and amounts: a name; texts that are numbered behind the same
letters; or rows that stand together, in which other columns, such as a birth year, hardly change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.cells import without_storage
from fedsynth.schema.columns import text_of
from fedsynth.schema.findings import Finding
from fedsynth.schema.reading import means_missing, read_series

Codes = NDArray[np.int64]

_FEWEST, _MOST_ROWS = 20, 100
"""So many different keys at least, and so many rows a key on average at most, of what is named as
a person's."""
_FEWEST_TOLD, _MOST_TOLD, _REPEATS = 50, 15, 0.02
"""The same of what only cells tell of, and the share of rows that repeat an earlier one's key."""
_APART = 1.1
"""How often the key changes from row to row, at most, for each key there is: of rows together."""
_CONSTANT, _BY_CHANCE, _CONSTANTS = 0.95, 0.5, 2
"""So many columns at least are the same in all rows of such a share of keys, where as many rows
drawn at random are the same in another share at most."""

_NUMBER = r"[\W_]?(id|key|code|no|nr|num|number)"
_PERSON = re.compile(
    r"(.*[\W_])?(person|patient|subject|participant|respondent|insured|client|customer|user)"
    rf"({_NUMBER})?|(.*[\W_])?(member|student|pupil|employee|worker|household|case){_NUMBER}"
    r"|pid|mrn|ssn",
    re.IGNORECASE,
)
"""No plurals, which are counts."""
_KEY = re.compile(
    r"(.*[\W_])?(id|key|uuid|(id|code)[\W_]?(no|nr|num|number)|idcode)", re.IGNORECASE
)
_NUMBERED = re.compile(r"(\D*[^\W\d]\D*)\d{3,}")
_RANDOM = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16,}", re.IGNORECASE)


@dataclass(frozen=True)
class RepeatedKey:
    """A column that several rows have the same key in; the figures are exact, for the owner.

    Attributes:
        keys: how many there are, an owner's and another's apart.
        most: rows of one key.
        gaps: rows without one.
        named: whether its name is that of a person's key.
    """

    name: str
    rows: int
    keys: int
    most: int
    gaps: int
    named: bool

    def describe(self, *, person: bool) -> Finding:
        """What was found, for the owner alone.

        Args:
            person: whether the draft takes it for whose a row is.
        """
        mean = (self.rows - self.gaps) / self.keys
        text = (
            f"a key with repeats, {self.keys:,} keys in {self.rows:,} rows, {mean:.2g} rows a key "
            f"on average and {self.most:,} at most: an identifier, never learned, made anew"
        )
        if person:
            text += (
                "; taken for whose a row is (`person`), so that rows of one are not split. Take "
                "`person` out if it is not; if its values are public labels or amounts, declare it "
                "as such"
            )
        elif self.gaps:
            text += (
                f". {self.gaps:,} rows have none, and a row of nobody would be refused: fill the "
                f"gaps and name it as the `person` if it says whose a row is"
            )
        else:
            text += "; name it as the `person` if it says whose a row is, and not the other"
        return Finding(self.name, "person" if person else "repeated-key", text)


def find_repeated_keys(
    owners: Mapping[str, pd.DataFrame], target: str | None = None
) -> list[RepeatedKey]:
    """The columns of keys with repeats, that which is likeliest a person's first."""
    names = dict.fromkeys(name for frame in owners.values() for name in frame.columns)
    found = [one for name in names if name != target and (one := _look_at(name, owners))]
    return sorted(found, key=lambda one: (not one.named, -one.keys))


def _look_at(name: str, owners: Mapping[str, pd.DataFrame]) -> RepeatedKey | None:
    parts = [frame for frame in owners.values() if name in frame and len(frame)]
    read = [_keys(frame[name]) for frame in parts]
    counts = [0 if found is None else len(found[1]) for found in read]
    if None in read or not sum(counts):
        return None
    starts = np.cumsum([0, *counts])
    codes = [
        np.where(found[0] < 0, -1, found[0] + start)
        for found, start in zip(read, starts, strict=False)
        if found is not None
    ]
    rows, keys = np.concatenate(codes), int(starts[-1])
    known = rows[rows >= 0]
    named = _PERSON.fullmatch(name) is not None
    if not _repeats(len(known), keys, named):
        return None
    texts = [text for found in read if found is not None for text in found[1]]
    if not (
        named or _KEY.fullmatch(name) or _is_shaped(texts) or _hang_together(name, parts, codes)
    ):
        return None
    if any(_is_written(part[name]) for part in parts):
        return None
    most, gaps = int(np.bincount(known).max()), len(rows) - len(known)
    return RepeatedKey(name, len(rows), keys, most, gaps, named)


def _repeats(rows: int, keys: int, named: bool) -> bool:
    if named:
        return keys >= _FEWEST and keys < rows <= _MOST_ROWS * keys
    return keys >= _FEWEST_TOLD and rows <= _MOST_TOLD * keys and rows - keys > _REPEATS * rows


def _keys(series: pd.Series) -> tuple[Codes, list[str]] | None:
    """Of each row its key's code, -1 in a gap, and the keys' texts; None where cells are of
    another kind than texts and whole numbers."""
    series = without_storage(series)
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind not in ("string", "integer", "mixed-integer", "floating", "categorical"):
        return None
    codes, uniques = pd.factorize(series)
    if kind == "floating":
        numbers = np.asarray(uniques, dtype=np.float64)
        if not np.isfinite(numbers).all() or (numbers != np.rint(numbers)).any():
            return None
    texts = [text_of(value) for value in uniques]
    places = np.array([-1 if means_missing(text) else k for k, text in enumerate(texts)] + [-1])
    return places[codes], texts


def _is_written(series: pd.Series) -> bool:
    """Whether these are dates, amounts and the like, in texts."""
    read = read_series(without_storage(series))
    return read.meaning in ("date", "boolean") or read.pattern is not None


def _is_shaped(texts: list[str]) -> bool:
    """Whether they are numbered behind the same letters, or are random signs."""
    if all(_RANDOM.fullmatch(text) for text in texts):
        return True
    matches = [_NUMBERED.fullmatch(text) for text in texts]
    return all(matches) and len({match[1] for match in matches if match}) == 1


def _hang_together(name: str, parts: list[pd.DataFrame], codes: list[Codes]) -> bool:
    """Whether a key's rows stand together, and others hardly change within them."""
    runs = sum(int((np.diff(code) != 0).sum()) + 1 for code in codes)
    if runs > _APART * len(np.unique(np.concatenate(codes))):
        return False
    others = [other for other in parts[0] if all(other in part for part in parts)]
    same = (
        other
        for other in others
        if other != name and all(map(_same_within, (part[other] for part in parts), codes))
    )
    return len(list(islice(same, _CONSTANTS))) == _CONSTANTS


def _same_within(values: pd.Series, codes: Codes) -> bool:
    """Whether the values are the same within nearly all keys, and would not be by chance."""
    try:
        cells = pd.factorize(without_storage(values), use_na_sentinel=False)[0]
    except TypeError:
        return False
    shuffled = np.random.default_rng(0).permutation(cells)
    return _constant(cells, codes) >= _CONSTANT and _constant(shuffled, codes) <= _BY_CHANCE


def _constant(cells: Codes, codes: Codes) -> float:
    """Of the keys with several rows the share with the same cell in all of them."""
    table = pd.DataFrame({"key": codes, "cell": cells})[codes >= 0].groupby("key")["cell"]
    several = table.count() > 1
    return float((table.min() == table.max())[several].mean()) if several.any() else 1.0
