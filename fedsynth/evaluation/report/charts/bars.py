"""Charts of single figures: where one lies on a scale, how far it reaches, how sure it is.

Each is an SVG that needs no script. Geometry is in pixels of the view box, y downwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedsynth.evaluation.report.charts.drawing import Scale, line, mark, px, svg, words
from fedsynth.evaluation.report.wording import known, score, tick, tick_percent
from fedsynth.markup import Html, tag


def headline(entry: Mapping[str, Any]) -> Html:
    """One figure between the ends of its scale: synthetic on the line, real above, trivial below.

    Args:
        entry: value, real, trivial (each may be None), low, high, better, name.
    """
    low, high = _ends(entry)
    at = Scale(low, high, 8, 232)
    parts = [
        line(8, 32, 232, 32, "axis"),
        line(8, 28, 8, 36, "axis"),
        line(232, 28, 232, 36, "axis"),
    ]
    trivial, real, value = (entry.get(key) for key in ("trivial", "real", "value"))
    taken = at(trivial) if known(trivial) else None
    for x, end, anchor in ((8, low, "start"), (232, high, "end")):
        if taken is None or abs(taken - x) > 90:
            parts.append(words(x, 54, tick(end), anchor, "quiet"))
    if known(trivial):
        parts += [line(at(trivial), 32, at(trivial), 42, "lead"), mark("trivial", at(trivial), 32)]
        parts.append(_beside(at(trivial), 54, f"trivial {score(trivial)}"))
    if known(real):
        parts += [line(at(real), 22, at(real), 32, "lead"), mark("real", at(real), 32)]
        parts.append(_beside(at(real), 16, f"real {score(real)}"))
    if known(value):
        parts.append(mark("synthetic", at(value), 32))
    said = f"{entry.get('name')}: synthetic {score(value)}, real {score(real)}, trivial baseline "
    said += f"{score(trivial)}, on a scale from {score(low)} to {score(high)}; "
    return svg(240, 60, *parts, label=f"{said}{entry.get('better')} is better", class_="chart")


def _ends(entry: Mapping[str, Any]) -> tuple[float, float]:
    low, high = entry.get("low"), entry.get("high")
    return (low if known(low) else 0.0), (high if known(high) else 1.0)


def _beside(x: float, y: float, value: str) -> Html:
    """A label over a point of a line of 240 pixels, turned inwards near its ends."""
    anchor = "start" if x < 60 else "end" if x > 180 else "middle"
    return words(x + {"start": -6, "end": 6, "middle": 0}[anchor], y, value, anchor)


def bars(
    values: Sequence[tuple[str, float | None]], scale: Scale, origin: float, label: str
) -> Html:
    """Thin bars, one under another, from the figure of a trivial baseline to each value.

    Args:
        values: kind of rows and figure; a None draws nothing and keeps its place.
        origin: where bars start, a value of the scale.
    """
    height = 4 + 10 * len(values)
    parts = [line(scale(origin), 0, scale(origin), height, "axis")]
    for index, (kind, value) in enumerate(values):
        if not known(value):
            continue
        y, ends = 7 + 10 * index, sorted((scale(origin), scale(value)))
        wide = px(ends[1] - ends[0])
        parts.append(
            tag("rect", x=px(ends[0]), y=px(y - 2.5), width=wide, height="5", class_=f"bar {kind}")
        )
        parts.append(mark(kind, scale(value), y))
    return svg(scale.end + 8, height, *parts, label=label, class_="bars")


def whiskers(
    value: float | None,
    low: float | None,
    high: float | None,
    scale: Scale,
    nothing: float | None,
    label: str,
    real: float | None = None,
) -> Html:
    """A figure with its interval, against the value that means that nothing was found."""
    parts = [line(scale.start, 12, scale.end, 12, "grid")]
    if nothing is not None:
        parts.append(line(scale(nothing), 2, scale(nothing), 22, "null"))
    if known(low) and known(high):
        parts.append(line(scale(low), 12, scale(high), 12, "whisker"))
        parts += [line(scale(end), 5, scale(end), 19, "whisker") for end in (low, high)]
    if known(real):
        parts.append(mark("real", scale(real), 12))
    if known(value):
        parts.append(mark("synthetic", scale(value), 12))
    return svg(scale.end + 8, 24, *parts, label=label, class_="whiskers")


def axis(scale: Scale, about: int = 3, noted: Mapping[float, str] | None = None) -> Html:
    """The ticks of a scale that a column of small charts shares, for the column's head."""
    parts = [line(scale.start, 20, scale.end, 20, "axis")]
    for value in noted or dict.fromkeys(scale.ticks(about), ""):
        x, said = scale(value), (noted or {}).get(value) or tick(value)
        anchor = "start" if x < scale.start + 12 else "end" if x > scale.end - 12 else "middle"
        parts += [line(x, 16, x, 20, "axis"), words(x, 12, said, anchor, "quiet")]
    return svg(scale.end + 8, 22, *parts, label=None, class_="whiskers")


def belief(before: float, after: float, said: str, label: str) -> Html:
    """From what somebody believes to what they may come to believe, on a line from 0 to 100 %.

    said: the words at the latter.
    """
    at = Scale(0, 1, 8, 232)
    parts = [line(8, 26, 232, 26, "axis")]
    parts += [line(x, 22, x, 30, "axis") for x in (8, 232)]
    parts += [words(8, 48, "0 %", "start", "quiet"), words(232, 48, "100 %", "end", "quiet")]
    parts += [
        line(at(before), 26, at(after), 26, "reach"),
        line(at(before), 18, at(before), 34, "axis"),
    ]
    parts += [
        mark("synthetic", at(after), 26),
        words(at(before), 48, tick_percent(before), "middle"),
    ]
    parts.append(_beside(at(after), 14, said))
    return svg(240, 54, *parts, label=label, class_="chart")
