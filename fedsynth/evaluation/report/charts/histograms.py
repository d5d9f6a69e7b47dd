"""Distributions of synthetic and real rows laid over one another, small and large.

Each is an SVG that needs no script. Geometry is in pixels of the view box, y downwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedsynth.evaluation.report.charts.drawing import Scale, line, mark, px, svg, words
from fedsynth.evaluation.report.wording import known, percent, score, tick, tick_percent
from fedsynth.markup import Html, apart, short, tag

Row = tuple[str, float | None, float | None]
"""A name, the figure of real rows and that of synthetic ones."""

ROWS = 25
"""Categories drawn one by one; the others are summed in one more."""

_FIT = 42
"""Letters that three labels of an axis have room for together."""

_SMALL = 16
"""Categories of a small chart."""


def strip(histogram: Mapping[str, Any], label: str) -> Html:
    """A small distribution: synthetic rows as an area, real ones as a line, gaps filled."""
    real, synthetic = histogram["real"], histogram["synthetic"]
    bins, top = _extent(real, synthetic)
    x, y = Scale(0, bins, 1, 111), Scale(0, top, 33, 2)
    boxes = [(x(k), x(k + 1), _at(real, k), _at(synthetic, k)) for k in range(bins)]
    parts = [*_overlay(real, synthetic, (1, 111), (33, 2)), *_gaps(boxes, y)]
    return svg(112, 34, *parts, label=label, class_="strip")


def _gaps(boxes: Sequence[tuple[float, float, float | None, float | None]], y: Scale) -> list[Html]:
    """What synthetic rows have beyond real ones, and what they lack, each filled in one path.

    boxes: left, right, real and synthetic share.
    """
    over, under = "", ""
    for left, right, real, synthetic in boxes:
        if not known(real) or not known(synthetic) or abs(y(real) - y(synthetic)) < 0.5:
            continue
        box = f"M{px(left)} {px(y(real))}V{px(y(synthetic))}H{px(right)}V{px(y(real))}z"
        if synthetic > real:
            over += box
        else:
            under += box
    filled = ((over, "over"), (under, "under"))
    return [tag("path", d=d, class_=class_) for d, class_ in filled if d]


def combs(rows: Sequence[Row], label: str) -> Html:
    """Small bars of the commonest categories: synthetic rows filled, real ones a line across, the
    gaps filled."""
    rows = rows[:_SMALL]
    top = max([value for row in rows for value in row[1:] if known(value)], default=0) or 1
    wide = min(110 / max(len(rows), 1), 20)
    y, parts = Scale(0, top, 33, 3), []
    boxes = []
    for index, (_, real, synthetic) in enumerate(rows):
        x, end = 1 + wide * index, 1 + wide * (index + 0.75)
        boxes.append((x, end, real, synthetic))
        if known(synthetic):
            d = f"M{px(x)} 33V{px(y(synthetic))}H{px(end)}V33z"
            parts.append(tag("path", d=d, class_="area synthetic edge"))
        if known(real):
            parts.append(line(x - 0.5, y(real), end + 0.5, y(real), "line real"))
    return svg(112, 34, *parts, *_gaps(boxes, y), label=label, class_="strip")


def _overlay(
    real: Sequence[float | None],
    synthetic: Sequence[float | None],
    across: tuple[float, float],
    up: tuple[float, float],
) -> list[Html]:
    """Steps of two lists of shares, of which None draws as 0."""
    bins, top = _extent(real, synthetic)
    x, y = Scale(0, bins, *across), Scale(0, top, *up)
    floor = f"M{px(across[0])} {px(up[0])}"
    return [
        tag("path", d=f"{floor}{_steps(synthetic, x, y)}V{px(up[0])}z", class_="area synthetic"),
        tag("path", d=f"{floor}{_steps(synthetic, x, y)}V{px(up[0])}", class_="line synthetic"),
        tag("path", d=f"{floor}{_steps(real, x, y)}V{px(up[0])}", class_="line real"),
    ]


def _extent(real: Sequence[float | None], synthetic: Sequence[float | None]) -> tuple[int, float]:
    """How many bins there are, and the largest share."""
    top = max([value for value in (*real, *synthetic) if known(value)], default=0) or 1
    return max(len(real), len(synthetic), 1), top


def _steps(shares: Sequence[float | None], x: Scale, y: Scale) -> str:
    return "".join(
        f"V{px(y(share if known(share) else 0))}H{px(x(index + 1))}"
        for index, share in enumerate(shares)
    )


def distribution(histogram: Mapping[str, Any], label: str) -> Html:
    """Shares of bins in order, large enough to read: labels below, shares at the left."""
    labels, real, synthetic = histogram["labels"], histogram["real"], histogram["synthetic"]
    left, right, top, foot = 44.0, 356.0, 10.0, 176.0
    most = max([value for value in (*real, *synthetic) if known(value)], default=0) or 1
    y, parts = Scale(0, most, foot, top), []
    for value in y.ticks(4):
        parts.append(line(left, y(value), right, y(value), "grid"))
        parts.append(words(left - 6, y(value) + 4, tick_percent(value), "end", "quiet"))
    parts += _overlay(real, synthetic, (left, right), (foot, top))
    parts.append(line(left, foot, right, foot, "axis"))
    parts += _ends_of(labels, Scale(0, max(len(labels), 1), left, right), foot)
    for index, each in enumerate(labels):
        x = Scale(0, len(labels), left, right)
        said = f"{short(str(each), 60)}: real {percent(_at(real, index))}, "
        said += f"synthetic {percent(_at(synthetic, index))}"
        wide = px(x(index + 1) - x(index))
        hover = {"x": px(x(index)), "y": px(top), "width": wide, "height": px(foot - top)}
        parts.append(tag("rect", tag("title", said), class_="hover", **hover))
    return svg(360, 200, *parts, label=label, class_="chart wide")


def _at(values: Sequence[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _ends_of(labels: Sequence[object], x: Scale, foot: float) -> list[Html]:
    """The labels of the first bin, the last, and of one between if the three fit."""
    shown, last = [short(str(label), 22) for label in labels], len(labels) - 1
    middle = last // 2
    places = [(0, "start", x.start)] if labels else []
    if last > 0:
        places.append((last, "end", x.end))
    if last > 3 and sum(len(shown[place]) for place in (0, middle, last)) <= _FIT:
        places.append((middle, "middle", x(middle + 0.5)))
    return [words(at, foot + 18, shown[place], anchor, "quiet") for place, anchor, at in places]


def dots(rows: Sequence[Row], label: str, *, shares: bool = True, end: float | None = None) -> Html:
    """A row for each name: synthetic and real figure on a common line from 0, joined.

    Args:
        rows: more than :data:`ROWS` of shares are summed from there on.
        shares: whether figures are shares of a whole, written as percentages.
        end: of the line; the largest figure if None.
    """
    if shares and len(rows) > ROWS:
        rows = [*rows[: ROWS - 1], _others(rows[ROWS - 1 :])]
    figures = [value for row in rows for value in row[1:] if known(value)]
    x = Scale(0, end or max(figures, default=0) or 1, 126, 264)
    foot, shown, parts = 8 + 22 * len(rows), percent if shares else score, []
    for value in x.ticks(3):
        said = tick_percent(value) if shares else tick(value)
        parts.append(line(x(value), 4, x(value), foot, "grid"))
        parts.append(words(x(value), foot + 14, said, "middle", "quiet"))
    for index, row in enumerate(rows):
        parts += _dot_row(row, x, 18 + 22 * index, shown)
    parts.append(words(356, foot + 14, "real | synth.", "end", "quiet"))
    return svg(360, foot + 20, *parts, label=label, class_="chart wide")


def _dot_row(row: Row, x: Scale, y: float, shown: Callable[[object], str]) -> list[Html]:
    title, real, synthetic = row
    parts = [tag("text", tag("title", title), short(title, 19), x="118", y=px(y + 4), class_="end")]
    if known(real) and known(synthetic):
        parts.append(line(x(real), y, x(synthetic), y, "gap"))
    if known(real):
        parts.append(mark("real", x(real), y))
    if known(synthetic):
        parts.append(mark("synthetic", x(synthetic), y))
    parts.append(words(356, y + 4, f"{shown(real)} | {shown(synthetic)}", "end"))
    return parts


def _others(rows: Sequence[Row]) -> Row:
    real, synthetic = (sum(v for row in rows if known(v := row[side])) for side in (1, 2))
    return f"{len(rows)} others", real, synthetic


def category_rows(histogram: Mapping[str, Any]) -> list[Row]:
    """Categories with their shares, the commonest real ones first."""
    rows = [
        (str(label), _at(histogram["real"], index), _at(histogram["synthetic"], index))
        for index, label in enumerate(histogram["labels"])
    ]
    return sorted(rows, key=lambda row: -(row[1] if known(row[1]) else 0))


def furthest(histogram: Mapping[str, Any]) -> str:
    """Where two distributions differ most, in words, for a text alternative."""
    gaps = [
        (abs(row[1] - row[2]), row)
        for row in category_rows(histogram)
        if known(row[1]) and known(row[2])
    ]
    if not gaps:
        return "no shares are known"
    label, real, synthetic = max(gaps, key=lambda gap: gap[0])[1]
    return (
        f"they differ most at {apart(label)}: real {percent(real)}, synthetic {percent(synthetic)}"
    )
