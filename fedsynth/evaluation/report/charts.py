"""Charts of shares and scores: distributions laid over one another, scales, bars, intervals.

Each is an SVG that needs no script. Geometry is in pixels of the view box, y downwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedsynth.evaluation.report.drawing import Scale, line, mark, px, svg, words
from fedsynth.evaluation.report.markup import Html, apart, short, tag
from fedsynth.evaluation.report.wording import known, percent, score

Row = tuple[str, float | None, float | None]
"""A name, the figure of real rows and that of synthetic ones."""

ROWS = 25
"""Categories drawn one by one; the others are summed in one more."""


def headline(entry: Mapping[str, Any]) -> Html:
    """One figure between the ends of its scale: synthetic on the line, real above, trivial below.

    Args:
        entry: value, real, trivial (each may be None), low, high, better, name.
    """
    low, high = _ends(entry)
    at = Scale(low, high, 8, 232)
    parts = [line(8, 32, 232, 32, "axis"), line(8, 28, 8, 36, "axis"), line(232, 28, 232, 36, "axis")]
    trivial, real, value = (entry.get(key) for key in ("trivial", "real", "value"))
    taken = at(trivial) if known(trivial) else None
    for x, end, anchor in ((8, low, "start"), (232, high, "end")):
        if taken is None or abs(taken - x) > 90:
            parts.append(words(x, 54, score(end), anchor, "quiet"))
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


def strip(histogram: Mapping[str, Sequence[float | None]], label: str) -> Html:
    """A small distribution: synthetic rows as an area, real ones as a line."""
    real, synthetic = histogram["real"], histogram["synthetic"]
    return svg(132, 34, *_overlay(real, synthetic, (1, 131), (33, 2)), label=label, class_="strip")


def _overlay(
    real: Sequence[float | None],
    synthetic: Sequence[float | None],
    across: tuple[float, float],
    up: tuple[float, float],
) -> list[Html]:
    """Steps of two lists of shares, of which None draws as 0."""
    bins = max(len(real), len(synthetic), 1)
    top = max([value for value in (*real, *synthetic) if known(value)], default=0) or 1
    x, y = Scale(0, bins, *across), Scale(0, top, *up)
    floor = f"M{px(across[0])} {px(up[0])}"
    return [
        tag("path", d=f"{floor}{_steps(synthetic, x, y)}V{px(up[0])}z", class_="area synthetic"),
        tag("path", d=f"{floor}{_steps(synthetic, x, y)}V{px(up[0])}", class_="line synthetic"),
        tag("path", d=f"{floor}{_steps(real, x, y)}V{px(up[0])}", class_="line real"),
    ]


def _steps(shares: Sequence[float | None], x: Scale, y: Scale) -> str:
    return "".join(
        f"V{px(y(share if known(share) else 0))}H{px(x(index + 1))}"
        for index, share in enumerate(shares)
    )


def distribution(histogram: Mapping[str, Sequence], label: str) -> Html:
    """Shares of bins in order, large enough to read: labels below, shares at the left."""
    labels, real, synthetic = histogram["labels"], histogram["real"], histogram["synthetic"]
    left, right, top, foot = 44.0, 356.0, 10.0, 176.0
    most = max([value for value in (*real, *synthetic) if known(value)], default=0) or 1
    y, parts = Scale(0, most, foot, top), []
    for value in y.ticks(4):
        parts.append(line(left, y(value), right, y(value), "grid"))
        parts.append(words(left - 6, y(value) + 4, percent(value), "end", "quiet"))
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
    """The labels of the first bin, the last, and of one between."""
    last = len(labels) - 1
    places = [(0, "start", x.start)]
    if last > 0:
        places.append((last, "end", x.end))
    if last > 3:
        middle = last // 2
        places.append((middle, "middle", x(middle + 0.5)))
    return [
        words(at, foot + 18, short(str(labels[index]), 18), anchor, "quiet")
        for index, anchor, at in places
    ]


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
        parts.append(line(x(value), 4, x(value), foot, "grid"))
        parts.append(words(x(value), foot + 14, shown(value), "middle", "quiet"))
    for index, row in enumerate(rows):
        parts += _dot_row(row, x, 18 + 22 * index, shown)
    parts.append(words(356, foot + 14, "real | synth.", "end", "quiet"))
    return svg(360, foot + 20, *parts, label=label, class_="chart wide")


def _dot_row(row: Row, x: Scale, y: float, shown: object) -> list[Html]:
    title, real, synthetic = row
    assert callable(shown)
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


def bars(values: Sequence[tuple[str, float | None]], scale: Scale, origin: float, label: str) -> Html:
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
        parts += [line(scale(end), 8, scale(end), 16, "whisker") for end in (low, high)]
    if known(real):
        parts.append(mark("real", scale(real), 12))
    if known(value):
        parts.append(mark("synthetic", scale(value), 12))
    return svg(scale.end + 8, 24, *parts, label=label, class_="whiskers")


def axis(scale: Scale, about: int = 3, noted: Mapping[float, str] | None = None) -> Html:
    """The ticks of a scale that a column of small charts shares, for the column's head."""
    parts = [line(scale.start, 20, scale.end, 20, "axis")]
    for value in (noted or dict.fromkeys(scale.ticks(about), "")):
        x, said = scale(value), (noted or {}).get(value) or f"{value:g}".replace("-", "\u2212")
        anchor = "start" if x < scale.start + 12 else "end" if x > scale.end - 12 else "middle"
        parts += [line(x, 16, x, 20, "axis"), words(x, 12, said, anchor, "quiet")]
    return svg(scale.end + 8, 22, *parts, label=None, class_="whiskers")


def belief(before: float, after: float, label: str) -> Html:
    """From what somebody believes to what they may come to believe, on a line from 0 to 100 %."""
    at = Scale(0, 1, 8, 232)
    parts = [line(8, 26, 232, 26, "axis")]
    parts += [line(x, 22, x, 30, "axis") for x in (8, 232)]
    parts += [words(8, 48, "0 %", "start", "quiet"), words(232, 48, "100 %", "end", "quiet")]
    parts += [line(at(before), 26, at(after), 26, "reach"), line(at(before), 18, at(before), 34, "axis")]
    parts += [mark("synthetic", at(after), 26), words(at(before), 48, percent(before), "middle")]
    parts.append(_beside(at(after), 14, f"at most {percent(after)}"))
    return svg(240, 54, *parts, label=label, class_="chart")


def category_rows(histogram: Mapping[str, Sequence]) -> list[Row]:
    """Categories with their shares, the commonest real ones first."""
    rows = [
        (str(label), _at(histogram["real"], index), _at(histogram["synthetic"], index))
        for index, label in enumerate(histogram["labels"])
    ]
    return sorted(rows, key=lambda row: -(row[1] if known(row[1]) else 0))


def furthest(histogram: Mapping[str, Sequence]) -> str:
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
