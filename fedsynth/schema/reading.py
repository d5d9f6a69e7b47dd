"""What the cells of a column mean that nobody has declared: numbers, moments, truth values, texts.

A column is what nearly all of its cells are. The few that are not are kept apart and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from fedsynth.schema.columns import text_of
from fedsynth.schema.findings import Finding

_ENOUGH = 0.98
"""The share of cells with one meaning that makes it the column's."""

_SAMPLE, _ENOUGH_OF_SAMPLE = 60, 0.8
"""So many texts rule formats out, loosely, before all texts are parsed."""

_SHOWN = 5

_SURE_MARKERS = ("", "?", "N/A", "NaN", "nan", "NULL", "null", "<NA>")
_TYPED_MARKERS = (
    *(*_SURE_MARKERS, "NA", "None", "none", ".", "-", "--"),
    *("n/a", "n.a.", "N.A.", "na", "#N/A", "NaT"),
)
"""Among numbers and dates these can only mean missing; among texts NA may be Namibia."""

_ENDLESS = re.compile(r"9999\D\d\d?\D\d\d?.*|\d\d?\D\d\d?\D9999.*")
"""Dates that stand for no end, as databases fill them in."""

_DATES = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d %b %Y", "%d-%b-%Y", "%b %d %Y", "%b %d, %Y", "%d %B %Y", "%d. %B %Y", "%B %d %Y"),
    *("%B %d, %Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%m-%d-%y", "%d-%b-%y"),
    *("%d %b %y", "%b %d %y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_PATTERNS = ("ISO8601", *(date + time for time in _TIMES for date in _DATES))

_FIRST, _LAST = pd.Timestamp("1678-01-01", tz="UTC"), pd.Timestamp("2261-12-31 23:59:59", tz="UTC")

_CODED = re.compile(r"\s*[-+]?0\d")
_FIGURE = r"[-+]?(?!0\d)(?:\d{1,3}(?:[ ,.'\u2019\u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?"
_CURRENCY = r"(?:[$€£¥₹]|[A-Z]{3}|kr|zł)"
_NOTATIONS = {
    "a duration": r"\d+:\d\d(?::\d\d)?(?:\.\d+)?"
    r"|P(?:\d+[YMWD])*(?:T(?:\d+(?:\.\d+)?[HMS])+)?"
    r"|(?:\d+(?:\.\d+)?\s*(?:d|days?|h|hours?|hrs?|m|min|minutes?|s|sec|seconds?)\b[ ,]*)+",
    "a percentage": rf"{_FIGURE}\s*%",
    "an amount of money": rf"\(?[-+]?\s*{_CURRENCY}\s*{_FIGURE}\)?|{_FIGURE}\s*{_CURRENCY}",
    "a number with separators or a decimal comma": _FIGURE,
}
"""How numbers are written that a column of a schema does not read, tried in this order."""


@dataclass(frozen=True)
class Reading:
    """One column's cells, by what nearly all of them mean.

    `known`: the cells that have the meaning, as found; the others are missing or `odd`. `values`:
    float64 numbers or UTC datetimes, as long as `known` or, of dates in texts, distinct.
    `markers` and `odd`: texts with their counts. `notation`: what texts are that look like numbers.
    `swapped`: a format that reads the dates as well, as others.
    """

    meaning: Literal["number", "date", "boolean", "text"]
    known: pd.Series
    values: pd.Series
    pattern: str | None = None
    markers: dict[str, int] = field(default_factory=dict)
    odd: dict[str, int] = field(default_factory=dict)
    notation: str | None = None
    swapped: str | None = None


def is_endless(text: str) -> bool:
    """Whether a text is a date of the year 9999, which stands for none."""
    return _ENDLESS.fullmatch(text) is not None


def means_missing(text: str) -> bool:
    """Whether a text means missing in some column of a draft."""
    return text in _TYPED_MARKERS or is_endless(text)


def read_series(series: pd.Series, *, typed: bool = True) -> Reading:
    """The cells by their meaning; without `typed`, texts and other values stay what they are."""
    known = series[series.notna()]
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    if typed and inferred == "boolean":
        return Reading("boolean", known, known)
    if typed and inferred in ("datetime64", "datetime", "date"):
        return _read_moments(known)
    if inferred not in ("string", "mixed", "mixed-integer"):
        numeric = typed and not isinstance(series.dtype, pd.CategoricalDtype)
        read = _read_numbers(known, known) if numeric and len(known) else None
        return read or Reading("text", known, known)
    texts = known.map(text_of).astype(object)
    if typed:
        marked = texts.isin(_TYPED_MARKERS)
        left, left_texts = known[~marked], texts[~marked]
        read = _read_numbers(left, left_texts) if len(left) else None
        if read is None and inferred == "string":
            read = _read_dates(left, left_texts)
        if read is not None:
            return replace(read, markers={**_count(texts[marked]), **read.markers})
    marked = texts.isin(_SURE_MARKERS)
    known = known[~marked]
    notation = _notation(texts[~marked]) if typed else None
    return Reading("text", known, known, markers=_count(texts[marked]), notation=notation)


def describe_reading(name: str, read: Reading, rows: int) -> Iterator[Finding]:
    """What of a reading of so many rows its owner is to know."""
    if read.odd:
        count = sum(read.odd.values())
        yield Finding(
            name,
            "unreadable",
            f"{count:,} of {rows:,} cells {'is' if count == 1 else 'are'} no {read.meaning}, so "
            f"outside the draft, which allows missing cells",
            _quote(read.odd),
        )
    if endless := {text: count for text, count in read.markers.items() if is_endless(text)}:
        count = sum(endless.values())
        text = f"{count:,} of {rows:,} cells say the year 9999, which is taken for missing"
        yield Finding(name, "endless", text, _quote(endless))
    if read.pattern is not None and "%y" in read.pattern:
        text = f"two digits are a year from 1969 to 2068 by the format {read.pattern}"
        yield Finding(name, "century", text)
    if read.swapped is not None:
        text = f"read as {read.pattern}, but every date would fit {read.swapped} too: say which"
        yield Finding(name, "ambiguous", text)
    if read.notation is not None:
        cells = _quote(_count(read.known.map(text_of)))
        text = f"each cell is {read.notation}, taken for a text: write plain numbers such as 1234.5"
        yield Finding(name, "notation", text, cells[:1])


def _quote(counts: dict[str, int]) -> tuple[str, ...]:
    shown = sorted(counts, key=lambda text: -counts[text])[:_SHOWN]
    return (*shown, "..") if len(counts) > _SHOWN else tuple(shown)


def _count(texts: pd.Series) -> dict[str, int]:
    return {str(text): int(count) for text, count in texts.value_counts().items()}


def _read_numbers(known: pd.Series, texts: pd.Series) -> Reading | None:
    """Numbers, unless too many cells are none; None too for codes such as 007."""
    numbers = pd.to_numeric(known.astype(object), errors="coerce").to_numpy(dtype=np.float64)
    finite = np.isfinite(numbers)
    if np.isnan(numbers).mean() > 1 - _ENOUGH or _is_coded(texts):
        return None
    values = pd.Series(numbers[finite], dtype=np.float64)
    odd = _count(texts[~finite].map(text_of))
    return Reading("number", known[finite], values, odd=odd)


def _is_coded(texts: pd.Series) -> bool:
    return texts.dtype == object and bool(texts.map(_starts_with_zero).any())


def _starts_with_zero(text: object) -> bool:
    return isinstance(text, str) and _CODED.match(text) is not None


def _read_dates(known: pd.Series, texts: pd.Series) -> Reading | None:
    """Dates by the format that reads most cells, unless too many cells are none."""
    counts = texts.value_counts()
    distinct = counts.index.to_series()
    endless = distinct.map(is_endless).astype(bool)
    dates = distinct[~endless]
    if dates.empty:
        return None
    sample = dates.iloc[:: max(len(dates) // _SAMPLE, 1)]
    # Trying every format on words would take most of a draft's time.
    if sample.str.contains(r"\d").mean() < _ENOUGH_OF_SAMPLE:
        return None
    weights = counts[dates.index].to_numpy()
    shares: dict[str, float] = {}
    for pattern in _PATTERNS:
        if _parse(sample, pattern).notna().mean() >= _ENOUGH_OF_SAMPLE:
            read = _parse(dates, pattern).notna().to_numpy()
            shares[pattern] = float(weights[read].sum() / weights.sum())
    best = max(shares, key=lambda pattern: shares[pattern], default=None)
    if best is None or shares[best] < _ENOUGH:
        return None
    moments = _parse(dates, best)
    odd = dates[moments.isna()]
    swapped = _swap(best)
    doubtful = shares.get(swapped) == shares[best] and not _parse(dates, swapped).equals(moments)
    return Reading(
        "date",
        known[texts.isin(moments.index[moments.notna()])],
        moments[moments.notna()],
        pattern=None if best == "ISO8601" else best,
        markers=_count(texts[texts.isin(distinct[endless])]),
        odd=_count(texts[texts.isin(odd)]),
        swapped=swapped if doubtful else None,
    )


def _parse(texts: pd.Series, pattern: str) -> pd.Series:
    return pd.to_datetime(texts, format=pattern, errors="coerce", utc=True)


def _swap(pattern: str) -> str:
    """The format with day and month the other way round."""
    return pattern.translate(str.maketrans("dm", "md"))


def _read_moments(known: pd.Series) -> Reading:
    """Datetimes or dates, without those that pandas' nanoseconds cannot hold."""
    moments = pd.to_datetime(known, errors="coerce", utc=True)
    inside = moments.between(_FIRST, _LAST)
    far = known[~inside].astype(object).map(lambda cell: cell.isoformat())
    endless = far.map(is_endless).astype(bool)
    return Reading(
        "date",
        known[inside],
        moments[inside],
        markers=_count(far[endless]),
        odd=_count(far[~endless]),
    )


def _notation(texts: pd.Series) -> str | None:
    """How nearly all of the texts write a number, if they do."""
    distinct = pd.Series(texts.unique(), dtype=object)
    sample = distinct.iloc[:: max(len(distinct) // _SAMPLE, 1)]
    for name, pattern in _NOTATIONS.items():
        fits = sample.str.fullmatch(pattern)
        if len(sample) and fits.mean() >= _ENOUGH_OF_SAMPLE:
            return name if texts.str.fullmatch(pattern).mean() >= _ENOUGH else None
    return None
