"""The map of how far every pair of columns is from the real one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from fedsynth.evaluation.report.charts.drawing import px, svg, words
from fedsynth.evaluation.report.wording import TIMES, known, score
from fedsynth.markup import Html, apart, short, tag

MOST = 60
"""Columns drawn; of more, those of the worst pairs."""

BREAKS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.25, 0.5)
"""Where shades change: the same in every report, so that two of them compare."""

Matrix = Sequence[Sequence[float | None]]
Pair = tuple[int, int, float]


def worst_pairs(distance: Matrix, most: int | None = None) -> list[Pair]:
    """Pairs (first, second, distance), first < second, the largest distance first."""
    pairs = [
        (i, j, value)
        for i, row in enumerate(distance)
        for j, value in enumerate(row[i + 1 :], i + 1)
        if known(value)
    ]
    return sorted(pairs, key=lambda pair: -pair[2])[:most]


def choose_columns(distance: Matrix, most: int = MOST) -> list[int]:
    """Columns to draw, in their order: all, or those that the worst pairs touch."""
    if len(distance) <= most:
        return list(range(len(distance)))
    columns: dict[int, None] = {}
    for i, j, _ in worst_pairs(distance):
        for column in (i, j):
            if len(columns) < most:
                columns[column] = None
        if len(columns) == most:
            break
    return sorted(columns) or list(range(most))


def shade(value: object) -> str:
    """The class of a cell: q0 (nearest to real) to q8, or qn where nothing was computed."""
    return f"q{bisect_right(BREAKS, value)}" if known(value) else "qn"


def heatmap(pairs: Mapping[str, Any], label: str) -> Html:
    """Cells below the diagonal: synthetic rows; above: real rows in their place, where known.

    Args:
        pairs: names [d], distance [d, d] and reference [d, d] or None.
    """
    names, distance, reference = pairs["names"], pairs["distance"], pairs.get("reference")
    columns = choose_columns(distance)
    size = 34 if len(columns) <= 16 else 22 if len(columns) <= 30 else 12
    longest = max((len(short(str(names[c]), 20)) for c in columns), default=1)
    edge = 14 + 6.4 * longest
    top = 14 + (4.8 if size > 12 else 5.3) * longest
    labels = [str(names[column]) for column in columns]
    parts = [_cells(columns, names, distance, reference, size, edge, top)]
    parts += _labels(labels, size, edge, top)
    side = size * len(columns)
    parts += _halves(len(columns), size, edge, top) if reference else []
    return svg(edge + side + 60, top + side + 22, *parts, label=label, class_="heatmap")


def _labels(labels: Sequence[str], size: int, edge: float, top: float) -> list[Html]:
    """Names before the rows and, turned, over the columns; smaller ones where cells are small."""
    turn, small = (-48, None) if size > 12 else (-68, "small")
    parts = []
    for place, label in enumerate(labels):
        middle, shown = size * (place + 0.5), (tag("title", label), short(label, 20))
        at = {"x": px(edge - 6), "y": px(top + middle + 4)}
        parts.append(tag("text", *shown, class_=f"end {small}" if small else "end", **at))
        x, y = px(edge + middle), px(top - 6)
        turned = f"rotate({turn} {x} {y})"
        parts.append(tag("text", *shown, class_=small, x=x, y=y, transform=turned))
    return parts


def _halves(count: int, size: int, edge: float, top: float) -> list[Html]:
    """The stairs between the halves of the map, and what either half shows."""
    steps = "".join(f"h{size}v{size}" for _ in range(count))
    side, right = size * count, edge + size * count + 14
    turned = f"rotate(90 {px(right)} {px(top)})"
    return [
        tag("path", d=f"M{px(edge - 0.5)} {px(top - 0.5)}{steps}", class_="diagonal"),
        words(edge, top + side + 16, "synthetic rows", "start", "quiet"),
        tag("text", "real rows", x=px(right), y=px(top), transform=turned, class_="quiet"),
    ]


def _cells(
    columns: Sequence[int],
    names: Sequence[object],
    distance: Matrix,
    reference: object,
    size: int,
    edge: float,
    top: float,
) -> Html:
    parts: list[Html] = []
    for r, i in enumerate(columns):
        for c, j in enumerate(columns):
            above = c > r
            if above and not isinstance(reference, Sequence):
                continue
            value = reference[i][j] if above and isinstance(reference, Sequence) else distance[i][j]
            who = "real rows" if above else "synthetic rows"
            both = apart(names[i], 40) + (f"{TIMES}{apart(names[j], 40)}" if i != j else "")
            figure = score(value) if known(value) else "not computed"
            x, y = edge + size * c, top + size * r
            box = {"x": px(x), "y": px(y), "width": size - 1, "height": size - 1}
            title = tag("title", f"{both}: {figure} ({who})")
            parts.append(tag("rect", title, class_=f"cell {shade(value)}", **box))
            if size == 34 and known(value):
                inside = f"in {shade(value)}"
                parts.append(words(x + 16.5, y + 21, _brief(value), "middle", inside))
    return tag("g", *parts)


def _brief(value: float) -> str:
    """Two decimals without the leading zero, as `.04`."""
    return f"{value:.2f}".removeprefix("0")


def scale_of_shades() -> Html:
    """What the shades stand for."""
    parts = []
    for index, _ in enumerate((0, *BREAKS)):
        x = 8 + 36 * index
        box = {"x": px(x), "y": "2", "width": "36", "height": "12"}
        parts.append(tag("rect", class_=f"cell q{index}", **box))
        if index:
            parts.append(words(x, 28, f"{BREAKS[index - 1]:g}".removeprefix("0"), "middle"))
    parts += [words(8, 28, "0"), words(8 + 36 * (len(BREAKS) + 1), 28, "1", "end")]
    label = "Shades from light (distance 0) to strong (distance 1), changing at "
    label += ", ".join(f"{value:g}" for value in BREAKS)
    return svg(340, 34, *parts, label=label, class_="shades")
