"""In which notation a column's texts write numbers, found from nearly all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.schema.columns.notation import GROUPS, TIME_UNITS, figure_pattern, parse_notation

_ENOUGH, _ENOUGH_OF_SAMPLE, _SAMPLE = 0.98, 0.8, 60
_MOST_DECIMALS = 12
_FEWEST_CODED = 9
"""Digits of numbers all of one length, from which they are codes such as telephone numbers."""

_SYMBOLS = (
    "$ \u20ac \u00a3 \u00a5 \u20b9 \u20bd \u20ba \u20a9 \u20aa \u0e3f \u20b4 \u20a6 "
    "US$ A$ C$ R$ kr kr. z\u0142 K\u010d Ft Fr. lei"
)
_CODES = (
    "AED AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR "
    "NOK NZD PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR"
)
CURRENCIES = (*_SYMBOLS.split(), *_CODES.split())
_SPACE = r"[\s\u00a0\u202f]*"
_BEFORE = "|".join(map(re.escape, CURRENCIES))
_AFTER = "|".join(map(re.escape, (*CURRENCIES, "%", "\u2030", *TIME_UNITS)))
_CELL = re.compile(
    rf"(?P<open>\(?)[-+\u2212]?{_SPACE}(?P<prefix>(?:{_BEFORE}){_SPACE}|)[-+\u2212]?"
    r"(?P<figure>\d(?:[\d,. '\u2019\u00a0\u202f]*\d)?)"
    rf"(?P<suffix>{_SPACE}(?:{_AFTER})|)\)?"
)
_CLOCKS = ("d days hh:mm:ss", "h:mm:ss", "h:mm", "m:ss")
_COMPOUND = re.compile(
    rf"(?:\d+(?:[.,]\d+)?\s*(?:{'|'.join(TIME_UNITS)}|m)\b[\s,]*){{2,}}", re.IGNORECASE
)


@dataclass(frozen=True)
class Found:
    """A notation, by its example.

    `values`: the number in each distinct text, NaN where there is none. `plain`: how many texts
    write their number plainly. `decimals`: where the others all write as many. `swapped`: an
    example that reads all cells too, as other numbers.
    """

    format: str
    values: NDArray[np.float64]
    plain: int = 0
    decimals: int | None = None
    swapped: str | None = None


def find_notation(texts: pd.Series) -> Found | str | None:
    """The notation of texts [n]; or why they are numbers that no notation reads; else None."""
    counts = texts.value_counts()
    distinct = counts.index.to_series()
    sample = distinct.iloc[:: max(len(distinct) // _SAMPLE, 1)]
    if sample.empty or sample.str.contains(r"\d").mean() < _ENOUGH_OF_SAMPLE:
        return None
    plain = distinct[_are_plain(distinct)]
    if len(plain) == len(distinct) or plain.str.match(r"\s*[-+]?0\d").any():
        return None
    for find in (_find_duration, _find_figure):
        if any(True for _ in find(sample, np.ones(len(sample)), _ENOUGH_OF_SAMPLE)):
            every = list(find(distinct, counts.to_numpy().astype(np.float64), _ENOUGH))
            if every:
                return _choose(every, texts)
    if sample.str.fullmatch(_COMPOUND).mean() >= _ENOUGH_OF_SAMPLE:
        return "holds durations in several units, taken for texts: write them such as 1:30:00"
    return _find_currencies(sample)


def _choose(found: list[Found], texts: pd.Series) -> Found:
    """The first notation, and another that reads the texts as other numbers."""
    best, *others = found
    seconds = [parse_notation(one.format).seconds or 1.0 for one in found]
    meant = [one.values * unit for one, unit in zip(found, seconds, strict=True)]
    swapped = [
        other.format
        for other, values in zip(others, meant[1:], strict=True)
        if np.array_equal(np.isnan(values), np.isnan(meant[0]))
        and not np.array_equal(values, meant[0], equal_nan=True)
    ]
    plain = int(_are_plain(texts).sum())
    return replace(best, plain=plain, swapped=swapped[0] if swapped else None)


def _read(texts: pd.Series, example: str) -> NDArray[np.float64]:
    return np.array([parse_notation(example).read(text) for text in texts], dtype=np.float64)


def _are_plain(texts: pd.Series) -> NDArray[np.bool_]:
    return pd.to_numeric(texts, errors="coerce").notna().to_numpy()


def _find_duration(
    texts: pd.Series, weights: NDArray[np.float64], enough: float
) -> Iterator[Found]:
    """Clock times and ISO 8601's durations."""
    for example in (*_CLOCKS, "PT1H30M", "P1DT1H30M"):
        if example == "d days hh:mm:ss" and not texts.str.contains("day").any():
            continue
        if example.startswith("PT") and texts.str.contains(r"\dD").any():
            continue
        values = _read(texts, example)
        if np.average(~np.isnan(values), weights=weights) >= enough:
            yield Found(_pad(example, texts[~np.isnan(values)]), values)


def _pad(example: str, texts: pd.Series) -> str:
    """With two digits in front where all texts have them and some need a zero for it."""
    first = texts.str.extract(r"(\d+):")[0].dropna()
    if example in ("h:mm:ss", "h:mm", "m:ss") and (first.str.len() >= 2).all():
        return example[0] + example if first.str.startswith("0").any() else example
    return example


def _find_figure(texts: pd.Series, weights: NDArray[np.float64], enough: float) -> Iterator[Found]:
    """Numbers with separators or with a sign of a currency, a share or a unit of time."""
    parts = texts.str.extract(_CELL)
    whole = texts.str.fullmatch(_CELL) & parts["figure"].notna()
    if np.average(whole, weights=weights) < enough:
        return
    parts, weighed = parts[whole], pd.Series(weights, texts.index)[whole]
    affixes = weighed.groupby([parts["prefix"], parts["suffix"]]).sum()
    written = affixes.drop(("", ""), errors="ignore")
    prefix, suffix = ("", "") if written.empty else map(str, list(written.idxmax()))  # type: ignore[call-overload]
    figures = parts["figure"]
    bare = not (prefix or suffix)
    if bare and _are_codes(figures):
        return
    # Plain numbers are read as such beside any notation.
    signed = (parts["prefix"] != "") | (parts["suffix"] != "") | bare
    telling = signed & ~_are_plain(figures) if bare else signed
    enclosed = bool((parts["open"] == "(").any())
    found = []
    groups = ("", *(_commonest(figures, signs) for signs in GROUPS))
    for group, decimal in product(groups, ("", ".", ",")):
        plainly = bare and group == "" and decimal in ("", ".") and not enclosed
        if plainly or (group and group == decimal):
            continue
        fits = figures.str.fullmatch(figure_pattern(group, decimal)) & signed
        used = all(figures[fits].str.contains(sign, regex=False).any() for sign in group + decimal)
        if not (used and weighed[fits & telling].sum() >= enough * weighed[telling].sum()):
            continue
        decimals = _count_decimals(figures[fits], decimal)
        places = "" if not decimal else f"{decimal}5" if decimals is None else f"{decimal}50"
        example = f"{prefix}1{group}234{places}{suffix}"
        example = f"({example})" if enclosed else example
        values = _read(texts, example)
        share = float(np.average(~np.isnan(values), weights=weights))
        if share >= enough:
            found.append((share, Found(example, values, decimals=decimals)))
    # Of several the one that reads most; of 1,234 alone the thousands first, which is told.
    found.sort(key=lambda one: (-one[0], one[1].format.count("5")))
    yield from (one for _, one in found)


def _commonest(figures: pd.Series, signs: str) -> str:
    """Which of the signs, which mean the same, occurs most."""
    return max(signs, key=lambda sign: int(figures.str.contains(sign, regex=False).sum()))


def _are_codes(figures: pd.Series) -> bool:
    digits = figures.str.replace(r"\D", "", regex=True)
    coded = digits.str.match(r"0\d") & ~figures.str.match(r"0[.,]")
    long = digits.str.len()
    return bool(coded.any()) or (long.nunique() == 1 and int(long.iloc[0]) >= _FEWEST_CODED)


def _count_decimals(figures: pd.Series, decimal: str) -> int | None:
    """How many decimals every figure has, if they agree."""
    if not decimal:
        return None
    lengths = figures.str.split(decimal, n=1, regex=False).str[1].str.len()
    same = lengths.notna().all() and lengths.nunique() == 1
    return int(lengths.iloc[0]) if same and lengths.iloc[0] <= _MOST_DECIMALS else None


def _find_currencies(sample: pd.Series) -> str | None:
    """That the texts are amounts of several currencies, if they are."""
    parts = sample.str.extract(_CELL)[sample.str.fullmatch(_CELL)]
    if len(parts) < _ENOUGH_OF_SAMPLE * len(sample):
        return None
    signs = (parts["prefix"] + parts["suffix"]).str.strip()
    found = [sign for sign in signs.value_counts().index if sign in CURRENCIES]
    if len(found) < 2:
        return None
    return (
        f"holds amounts in {', '.join(found)}, which are not merged but taken for texts: convert "
        f"them to one currency, or give each a column"
    )
