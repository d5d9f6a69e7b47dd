"""In which format a column's texts write dates, and in which time zone they are."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.columns.numeric import find_zone
from fedsynth.schema.moments import ZONED

_ENOUGH = 0.98
_SAMPLE, _ENOUGH_OF_SAMPLE = 60, 0.8
"""So many texts rule formats out, loosely, before all texts are parsed."""
_MARKS = "/:,-"
"""A format's texts have each as often as it has: no number, month or half of a day has any."""

_DATES = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d %b %Y", "%d-%b-%Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%d. %B %Y", "%B %d %Y"),
    *("%B %d, %Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y", "%d-%b-%y"),
    *("%d %b %y", "%b %d %y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_PATTERNS = ("ISO8601", *(date + time for time in _TIMES for date in _DATES))

_ISO_FORMATS = tuple(
    f"%Y-%m-%d{time}"
    for time in (
        "",
        *(
            f"{between}{clock}{zone}"
            for between in "T "
            for clock in ("%H:%M", "%H:%M:%S")
            for zone in ("", "Z", "%z")
        ),
    )
)
"""The spellings of ISO 8601 that a column is written in as it came."""

_FIELDS = {
    "%Y": r"\d{4}",
    "%z": r"[+-]\d\d:\d\d",
    **dict.fromkeys(("%m", "%d", "%H", "%M", "%S"), r"\d\d"),
}


@dataclass(frozen=True)
class DateFormat:
    """How texts [n] write dates.

    `moments`: in UTC, NaT where a text is none. `pattern`: None for ISO 8601 in several spellings.
    `swapped`: a format that reads them as well, as others. `zone`: of all of them. `offsets`: from
    UTC where they differ, None for none.
    """

    moments: pd.Series
    pattern: str | None
    swapped: str | None
    zone: str | None
    offsets: tuple[str | None, ...]


def find_date_format(dates: pd.Series, weights: NDArray[np.integer[Any]]) -> DateFormat | None:
    """The format that reads most of the distinct texts, unless too few are dates."""
    if dates.empty:
        return None
    sample = dates.iloc[:: max(len(dates) // _SAMPLE, 1)]
    # Trying every format on words would take most of a draft's time.
    if sample.str.contains(r"\d").mean() < _ENOUGH_OF_SAMPLE:
        return None
    shares: dict[str, float] = {}
    marked = Counter(map(_marks_of, sample))
    for pattern in _PATTERNS:
        # Most formats read no text, and parsing tells so a hundred times as late.
        if pattern != "ISO8601" and marked[_marks_of(pattern)] < _ENOUGH_OF_SAMPLE * len(sample):
            continue
        if _parse(sample, pattern).notna().mean() >= _ENOUGH_OF_SAMPLE:
            read = _parse(dates, pattern).notna().to_numpy()
            shares[pattern] = float(weights[read].sum() / weights.sum())
    best = max(shares, key=lambda pattern: shares[pattern], default=None)
    if best is None or shares[best] < _ENOUGH:
        return None
    moments = _parse(dates, best)
    if best == "ISO8601":
        texts = dates[moments.notna()]
        zone, offsets = _find_offset(texts)
        return DateFormat(moments, _find_iso_format(texts), None, zone, offsets)
    swapped = _swap(best)
    doubtful = shares.get(swapped) == shares[best] and not _parse(dates, swapped).equals(moments)
    return DateFormat(moments, best, swapped if doubtful else None, None, ())


def _marks_of(text: str) -> tuple[int, ...]:
    return tuple(map(text.count, _MARKS))


def _find_iso_format(texts: pd.Series) -> str | None:
    """The spelling of ISO 8601 that all texts have, if they have one."""
    for pattern in _ISO_FORMATS:
        spelled = re.sub(r"%.", lambda found: _FIELDS[found[0]], pattern)
        if texts.str.fullmatch(spelled).all():
            return pattern
    return None


def _find_offset(texts: pd.Series) -> tuple[str | None, tuple[str | None, ...]]:
    """The offset from UTC that all texts end in, UTC's own left out; else all that there are."""
    zoned = texts.str.contains(ZONED)
    ends = texts[zoned].str.extract(r"(Z|[+-]\d\d(?::?\d\d)?)$")[0]
    joined = ends.str.replace(r"^([+-]\d\d):?(\d\d)?$", _join_offset, regex=True)
    found = [str(offset) for offset in joined.value_counts().index]
    if len(found) == 1 and zoned.all():
        return (None if found[0] == "Z" else found[0]), ()
    return None, (*found, *(() if zoned.all() else (None,)))


def _join_offset(found: re.Match[str]) -> str:
    return f"{found[1]}:{found[2] or '00'}"


def _parse(texts: pd.Series, pattern: str) -> pd.Series:
    return pd.to_datetime(texts, format=pattern, errors="coerce", utc=True)


def _swap(pattern: str) -> str:
    """The format with day and month the other way round."""
    return pattern.translate(str.maketrans("dm", "md"))


def find_zones(known: pd.Series) -> tuple[str | None, ...]:
    """The time zones of datetimes, None for those without one."""
    if known.dtype != object:
        zone = getattr(known.dtype, "tz", None)
        return (None if zone is None else _zone_name(zone),)
    zones = known.map(lambda cell: getattr(cell, "tzinfo", None))
    return tuple(dict.fromkeys(None if zone is None else _zone_name(zone) for zone in zones))


def _zone_name(zone: tzinfo) -> str | None:
    """A time zone as a schema names it: Europe/Berlin, or +02:00; None if it cannot."""
    name = str(zone).removeprefix("UTC") or "UTC"
    try:
        find_zone(name)
    except ValueError:
        return None
    return name
