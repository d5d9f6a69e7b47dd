"""How people write numbers in texts: amounts, percentages, separators, durations.

A notation is public, like bounds: every owner's cells are read by it alike, and synthetic ones are
written by it. It is given by example, so that a reader of the schema sees what it means.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

GROUPS = (",", ".", " \u00a0\u202f", "'\u2019")
"""The signs between thousands, with those that are read as the same together."""

TIME_UNITS = {
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    "ms": 0.001,
}
"""Seconds in the units that a number may be followed by."""

_EXAMPLES = (
    "must show how 1234.5 is written, such as $1,234.50 or 1.234,5 \u20ac or 1234 %, or be a "
    "duration: h:mm:ss, h:mm, m:ss, d days hh:mm:ss, PT1H30M, 1234 min"
)
_EXAMPLE = re.compile(
    r"(?P<open>\()?(?P<prefix>[^\d()]*?)1(?P<group>[,. '\u00a0\u202f\u2019]?)234"
    r"(?:(?P<decimal>[.,])(?P<places>50?))?(?P<suffix>[^\d()]*)(?P<close>\))?"
)
_CLOCK = re.compile(r"(?P<days>d days )?(?:(?P<hours>hh?):mm(?P<seconds>:ss)?|(?P<minutes>mm?):ss)")
_SIGN = r"(?P<sign>[-+\u2212]?)"
_ISO = re.compile(
    r"(?P<sign>-?)P(?:(?P<d>\d+)D)?(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?"
    r"(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


class Notation(Protocol):
    """A way to write numbers."""

    @property
    def seconds(self) -> float | None:
        """Seconds in a unit of the number; None where it is no duration."""

    @property
    def whole(self) -> bool:
        """Whether it shows no decimals."""

    def read(self, text: str) -> float:
        """The number that a text writes; NaN where it writes none."""

    def write(self, value: float, decimals: int) -> str:
        """A finite number with this many decimals at most, so that `read` gives it back."""


@lru_cache(maxsize=1_000)
def parse_notation(example: str) -> Notation:
    """The notation of an example such as `$1,234.50`, `(1 234,5 kr)`, `1234 %` or `h:mm:ss`.

    Where the example ends in a zero, all decimals are always written. Parentheses around it are
    how negative numbers are written.

    Raises:
        ValueError: if it is none.
    """
    if example in ("PT1H30M", "P1DT1H30M"):
        return _IsoDuration(days=example.startswith("P1D"))
    if clock := _CLOCK.fullmatch(example):
        return _Clock(
            days=clock["days"] is not None,
            hours=clock["hours"] is not None,
            last=clock["seconds"] is not None or clock["hours"] is None,
            padded=len(clock["hours"] or clock["minutes"]) == 2,
        )
    found = _EXAMPLE.fullmatch(example)
    if found is None or (found["open"] is None) != (found["close"] is None):
        raise ValueError(_EXAMPLES)
    if found["group"] and found["group"] == found["decimal"]:
        raise ValueError(f"separates thousands and decimals by {found['group']!r} alike")
    if re.search(r"[-+\u2212]", found["prefix"] + found["suffix"]):
        raise ValueError("shows a sign: write it without")
    return _Figure(
        prefix=found["prefix"],
        suffix=found["suffix"],
        group=found["group"],
        decimal=found["decimal"] or ("," if found["group"] == "." else "."),
        whole=found["decimal"] is None,
        fixed=found["places"] == "50",
        enclosed=found["open"] is not None,
    )


def figure_pattern(group: str, decimal: str) -> str:
    """A regular expression of unsigned numbers with these signs; an empty one does not occur."""
    thousands = r"\d+"
    if group:
        signs = next((signs for signs in GROUPS if group in signs), group)
        thousands = rf"(?:[1-9]\d{{0,2}}(?:[{re.escape(signs)}]\d{{3}})+|\d{{1,3}}(?!\d))"
    return thousands + (rf"(?:{re.escape(decimal)}\d+)?" if decimal else "")


@dataclass(frozen=True)
class _Figure:
    """Digits with separators, between a prefix and a suffix."""

    prefix: str
    suffix: str
    group: str
    decimal: str
    whole: bool
    fixed: bool
    enclosed: bool

    @property
    def seconds(self) -> float | None:
        return None if self.prefix.strip() else TIME_UNITS.get(self.suffix.strip().lower())

    def read(self, text: str) -> float:
        text = text.strip()
        bare, affixed = _figure_regexes(self.group, self.decimal, self.prefix, self.suffix)
        found = affixed.fullmatch(text)
        if found is None:
            # Without its sign a number is plain where it can be.
            plain = _read_plain(text)
            if not math.isnan(plain):
                return plain
            found = bare.fullmatch(text)
        if found is None or (found["open"] is None) != (found["close"] is None):
            return math.nan
        digits = found["figure"]
        if self.group:
            digits = re.sub(rf"[^\d{re.escape(self.decimal)}]", "", digits)
        value = float(digits.replace(self.decimal, "."))
        negative = found["open"] or {*found["sign"], *found["inner"]} & {"-", "\u2212"}
        return -value if negative else value

    def write(self, value: float, decimals: int) -> str:
        whole, _, places = f"{abs(value):.{decimals}f}".partition(".")
        if self.group:
            whole = f"{int(whole):,}".replace(",", self.group)
        if not self.fixed:
            places = places.rstrip("0")
        text = f"{self.prefix}{whole}{self.decimal + places if places else ''}{self.suffix}"
        if value < 0:
            return f"({text})" if self.enclosed else f"-{text}"
        return text


def show_decimals(example: str) -> str | None:
    """The same notation with decimals; None where it can have none."""
    if not isinstance(parse_notation(example), _Figure):
        return None
    return example.replace("234", "234,5" if "1.234" in example else "234.5")


@lru_cache(maxsize=1_000)
def _figure_regexes(
    group: str, decimal: str, prefix: str, suffix: str
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    figure = rf"(?P<figure>{figure_pattern(group, decimal)})"
    if group:
        figure = rf"(?P<figure>{figure_pattern(group, decimal)}|{figure_pattern('', decimal)})"
    # A written cell may have any number of spaces of any kind between the figure and its sign.
    before, after = re.escape(prefix.strip()), re.escape(suffix.strip())
    inner = r"(?P<inner>[-+\u2212]?)"
    bare = rf"(?P<open>\()?{_SIGN}\s*(?P<inner>){figure}(?P<close>\))?"
    affixed = rf"(?P<open>\()?{_SIGN}\s*{before}\s*{inner}\s*{figure}\s*{after}(?P<close>\))?"
    return re.compile(bare), re.compile(affixed)


def _read_plain(text: str) -> float:
    try:
        return float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class _Clock:
    """Days, hours, minutes and seconds between colons, the first of them without an end.

    `last`: whether seconds are shown; the number counts them, else minutes.
    """

    days: bool
    hours: bool
    last: bool
    padded: bool

    @property
    def seconds(self) -> float | None:
        return 1.0 if self.last else 60.0

    @property
    def whole(self) -> bool:
        return not self.last

    def read(self, text: str) -> float:
        found = _clock_regex(self.hours, self.last).fullmatch(text.strip())
        if found is None:
            return _read_plain(text.strip())
        days, *parts = (int(found[part] or 0) for part in ("days", "first", "second", "third"))
        if self.hours and self.last:
            total = (days * 24 + parts[0]) * 3_600 + parts[1] * 60 + parts[2]
        else:
            total = days * 1_440 + parts[0] * 60 + parts[1]
        value = float(f"{total}{found['places'] or ''}")
        return -value if found["sign"] in ("-", "\u2212") else value

    def write(self, value: float, decimals: int) -> str:
        scale = 10**decimals
        total, places = divmod(round(abs(value) * scale), scale)
        rest, last = divmod(total, 60)
        fields = [f"{last:02d}"]
        if self.hours and self.last:
            rest, middle = divmod(rest, 60)
            fields.insert(0, f"{middle:02d}")
        days = ""
        if self.days:
            count, rest = divmod(rest, 24)
            days = f"{count} days "
        fields.insert(0, f"{rest:02d}" if self.padded else str(rest))
        tail = f".{places:0{decimals}d}".rstrip("0") if places else ""
        return f"{'-' if value < 0 else ''}{days}{':'.join(fields)}{tail}"


@lru_cache(maxsize=10)
def _clock_regex(hours: bool, last: bool) -> re.Pattern[str]:
    third = r":(?P<third>[0-5]\d)" if hours and last else r"(?P<third>)"
    places = r"(?P<places>\.\d+)?" if last else r"(?P<places>)"
    days = r"(?:(?P<days>\d+) days?,? )?" if hours else r"(?P<days>)"
    return re.compile(rf"{_SIGN}{days}(?P<first>\d+):(?P<second>[0-5]\d){third}{places}")


@dataclass(frozen=True)
class _IsoDuration:
    """ISO 8601's durations of days, hours, minutes and seconds, in seconds.

    Months and years are of no fixed length. `days`: whether they are written, or more hours.
    """

    days: bool

    @property
    def seconds(self) -> float | None:
        return 1.0

    @property
    def whole(self) -> bool:
        return False

    def read(self, text: str) -> float:
        found = _ISO.fullmatch(text.strip())
        if found is None or not any(found[part] for part in "dhms"):
            return _read_plain(text.strip())
        whole = int(found["d"] or 0) * 86_400 + int(found["h"] or 0) * 3_600
        whole += int(found["m"] or 0) * 60
        second, _, places = (found["s"] or "0").partition(".")
        value = float(f"{whole + int(second)}.{places or 0}")
        return -value if found["sign"] else value

    def write(self, value: float, decimals: int) -> str:
        scale = 10**decimals
        total, places = divmod(round(abs(value) * scale), scale)
        minutes, second = divmod(total, 60)
        hours, minute = divmod(minutes, 60)
        days, hour = divmod(hours, 24) if self.days else (0, hours)
        tail = f".{places:0{decimals}d}".rstrip("0") if places else ""
        time = "".join(f"{count}{word}" for count, word in ((hour, "H"), (minute, "M")) if count)
        if second or tail:
            time += f"{second}{tail}S"
        date = f"{days}D" if days else ""
        if not date and not time:
            time = "0S"
        return f"{'-' if value < 0 else ''}P{date}{'T' + time if time else ''}"
