"""What the cells of a column mean that nobody has declared: numbers, moments, truth values, texts.

A column is what nearly all of its cells are. The few that are not are kept apart and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import time, timedelta
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.cells import read_number, seconds_of, texts_of
from fedsynth.schema.columns.notation import parse_notation, show_decimals
from fedsynth.schema.date_formats import find_date_format, find_zones
from fedsynth.schema.findings import Finding
from fedsynth.schema.notations import CURRENCIES, find_notation

_ENOUGH = 0.98
"""The share of cells with one meaning that makes it the column's."""

_SHOWN = 5

_SURE_MARKERS = ("", "?", "N/A", "NaN", "nan", "NULL", "null", "<NA>")
_TYPED_MARKERS = (
    *(*_SURE_MARKERS, "NA", "None", "none", ".", "-", "--"),
    *("n/a", "n.a.", "N.A.", "na", "#N/A", "NaT"),
)
"""Among numbers and dates these can only mean missing; among texts NA may be Namibia."""

_ENDLESS = re.compile(r"9999\D\d\d?\D\d\d?.*|\d\d?\D\d\d?\D9999.*")
"""Dates that stand for no end, as databases fill them in."""

_FIRST, _LAST = pd.Timestamp("1678-01-01", tz="UTC"), pd.Timestamp("2261-12-31 23:59:59", tz="UTC")

_CODED = re.compile(r"\s*[-+]?0\d")

_DURATIONS = ((86_400, "1234 d"), (3_600, "1234 h"), (60, "h:mm"), (1, "h:mm:ss"))


@dataclass(frozen=True)
class Reading:
    """One column's cells, by what nearly all of them mean.

    `known`: the cells that have the meaning, as found; the others are missing or `odd`. `values`:
    float64 numbers or UTC datetimes, as long as `known` or, of dates in texts, distinct.
    `markers` and `odd`: texts with their counts. `pattern`: the format of numbers or dates in
    texts. `swapped`: a format that reads them as well, as others. `decimals`: where every text has
    as many. `plain`: cells without the notation of the others. `zone`: of all dates, but for UTC.
    `of_day`: whether durations are times since midnight. `told`: what else is to be known.
    """

    meaning: Literal["number", "date", "boolean", "text"]
    known: pd.Series
    values: pd.Series
    pattern: str | None = None
    markers: dict[str, int] = field(default_factory=dict)
    odd: dict[str, int] = field(default_factory=dict)
    swapped: str | None = None
    decimals: int | None = None
    plain: int = 0
    zone: str | None = None
    of_day: bool = False
    told: tuple[tuple[str, str], ...] = ()


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
    if typed and inferred in ("timedelta64", "timedelta", "time"):
        return _read_durations(known, of_day=inferred == "time")
    if inferred not in ("string", "mixed", "mixed-integer"):
        numeric = typed and not isinstance(series.dtype, pd.CategoricalDtype)
        read = _read_numbers(known, known) if numeric and len(known) else None
        if read is not None and inferred == "decimal":
            read = replace(read, decimals=_common_decimals(read.known))
        return read or Reading("text", known, known)
    texts = texts_of(known)
    told: tuple[tuple[str, str], ...] = ()
    if typed:
        marked = texts.isin(_TYPED_MARKERS)
        left, left_texts = known[~marked], texts[~marked]
        read = _read_numbers(left, left_texts) if len(left) else None
        if read is None:
            read = _read_written(left, left_texts)
        if read is None and inferred == "string":
            read = _read_dates(left, left_texts)
        if read is not None and read.meaning != "text":
            return replace(read, markers={**_count(texts[marked]), **read.markers})
        told = () if read is None else read.told
    marked = texts.isin(_SURE_MARKERS)
    known = known[~marked]
    return Reading("text", known, known, markers=_count(texts[marked]), told=told)


def are_of(cells: pd.Series, *types: type) -> NDArray[np.bool_]:
    """Which cells [n] are of these types; looked at one by one only where some are not."""
    found = {kind: issubclass(kind, types) for kind in {*map(type, cells)}}
    if len(set(found.values())) < 2:
        return np.full(len(cells), any(found.values()))
    return np.fromiter((found[type(cell)] for cell in cells), bool, len(cells))


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
    if read.meaning == "number" and read.pattern is not None:
        text = _describe_notation(read)
        if read.plain:
            text += f"; {read.plain:,} of {rows:,} cells are plain numbers, and read as such"
        cells = _quote(_count(texts_of(read.known)))[:1]
        yield Finding(name, "notation", text, cells)
    if read.swapped is not None:
        what = "date" if read.meaning == "date" else "cell"
        text = f"read as {read.pattern}, but every {what} would fit {read.swapped} too: say which"
        yield Finding(name, "ambiguous", text)
    for kind, text in read.told:
        yield Finding(name, kind, text)


def _describe_notation(read: Reading) -> str:
    example = str(read.pattern)
    seconds = parse_notation(example).seconds
    if seconds is not None:
        units = {86_400.0: "days", 3_600.0: "hours", 60.0: "minutes", 1.0: "seconds"}
        unit = units.get(seconds, "milliseconds")
        if read.of_day:
            return f"holds times of day: the column is the number of {unit} since midnight"
        how = f"read as durations such as {example}"
        if not read.known.map(lambda cell: isinstance(cell, str)).any():
            how = "holds durations"
        return f"{how}: the column is the number of {unit}"
    if example.endswith("%"):
        return f"read as percentages such as {example}: the column is the figure before the sign"
    what = "amounts" if any(sign in example for sign in CURRENCIES) else "numbers"
    return f"read as {what} such as {example}: the column is the number"


def _quote(counts: dict[str, int]) -> tuple[str, ...]:
    shown = sorted(counts, key=lambda text: -counts[text])[:_SHOWN]
    return (*shown, "..") if len(counts) > _SHOWN else tuple(shown)


def _count(texts: pd.Series) -> dict[str, int]:
    return {str(text): int(count) for text, count in texts.value_counts().items()}


def _read_numbers(known: pd.Series, texts: pd.Series) -> Reading | None:
    """Numbers, unless too many cells are none; None too for codes such as 007."""
    places, distinct = pd.factorize(known)
    found = pd.to_numeric(pd.Series(distinct, dtype=object), errors="coerce")
    numbers = found.to_numpy(dtype=np.float64)[places]
    finite = np.isfinite(numbers)
    if np.isnan(numbers).mean() > 1 - _ENOUGH or _is_coded(texts):
        return None
    values = pd.Series(numbers[finite], dtype=np.float64)
    odd = _count(texts_of(texts[~finite]))
    return Reading("number", known[finite], values, odd=odd)


def _common_decimals(known: pd.Series) -> int | None:
    """How many decimals all of Python's decimal numbers have, if they agree."""
    found = {-int(cell.as_tuple().exponent) for cell in known}
    places = found.pop() if len(found) == 1 else 0
    return places if 0 < places <= 12 else None


def _read_written(known: pd.Series, texts: pd.Series) -> Reading | None:
    """Numbers in the notation that nearly all texts have; numbers beside them stay plain."""
    written = are_of(known, str)
    found = find_notation(texts[written])
    if found is None:
        return None
    if isinstance(found, str):
        return Reading("text", known, known, told=(("notation", found),))
    notation = parse_notation(found.format)
    values = np.array([read_number(cell, notation) for cell in known], dtype=np.float64)
    pattern: str | None = found.format
    broken = np.isfinite(values) & (values != np.rint(values))
    if notation.whole and broken.any():
        pattern = show_decimals(found.format)
        values[broken & (pattern is None)] = np.nan
    finite = np.isfinite(values)
    if finite.mean() < _ENOUGH:
        return None
    return Reading(
        "number",
        known[finite],
        pd.Series(values[finite], dtype=np.float64),
        pattern=pattern or found.format,
        odd=_count(texts[~finite]),
        swapped=found.swapped,
        decimals=found.decimals,
        plain=found.plain + sum(map(_is_number, known[~written])),
    )


def _is_number(cell: object) -> bool:
    return not isinstance(cell, timedelta | time)


def _read_durations(known: pd.Series, *, of_day: bool) -> Reading:
    """Durations, or times since midnight, in the longest unit that holds them all."""
    if of_day:
        seconds = known.map(seconds_of).to_numpy(dtype=np.float64)
    else:
        seconds = pd.to_timedelta(known).dt.total_seconds().to_numpy(dtype=np.float64)
    units = [one for one in _DURATIONS if not (seconds % one[0]).any()]
    unit, example = next((one for one in units if not of_day or one[0] <= 60), _DURATIONS[-1])
    example = f"h{example}" if of_day else example
    values = pd.Series(seconds / unit, dtype=np.float64)
    return Reading("number", known, values, pattern=example, of_day=of_day)


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
    found = find_date_format(dates, counts[dates.index].to_numpy())
    if found is None:
        return None
    read = found.moments.notna()
    return Reading(
        "date",
        known[texts.isin(dates[read])],
        found.moments[read],
        pattern=found.pattern,
        markers=_count(texts[texts.isin(distinct[endless])]),
        odd=_count(texts[texts.isin(dates[~read])]),
        swapped=found.swapped,
        zone=found.zone,
        told=_tell_offsets("offsets from UTC", found.offsets),
    )


def _tell_offsets(what: str, offsets: tuple[str | None, ...]) -> tuple[tuple[str, str], ...]:
    """That moments of several zones come back in one."""
    if len(offsets) < 2:
        return ()
    shown = ", ".join(offset or "none, taken for UTC" for offset in offsets[:_SHOWN])
    text = f"has several {what} ({shown}): its times become UTC, unless `zone` names one"
    return (("offsets", text),)


def _read_moments(known: pd.Series) -> Reading:
    """Datetimes or dates, without those that pandas' nanoseconds cannot hold."""
    moments = pd.to_datetime(known, errors="coerce", utc=True)
    inside = moments.between(_FIRST, _LAST)
    far = known[~inside].astype(object).map(lambda cell: cell.isoformat())
    endless = far.map(is_endless).astype(bool)
    zones = find_zones(known)
    return Reading(
        "date",
        known[inside],
        moments[inside],
        markers=_count(far[endless]),
        odd=_count(far[~endless]),
        zone=zones[0] if len(zones) == 1 else None,
        told=_tell_offsets("time zones", zones),
    )
