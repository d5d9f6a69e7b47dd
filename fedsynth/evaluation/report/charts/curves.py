"""ROC curves and the scatter of scores, with their axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedsynth.evaluation.report.charts.drawing import Scale, line, path, px, spread, svg, words
from fedsynth.evaluation.report.wording import known, score, tick
from fedsynth.markup import Html, short, tag

_LEFT, _RIGHT, _TOP, _FOOT = 54.0, 322.0, 10.0, 262.0
NAMED = 16
"""Points of a scatter that fit a name each."""


@dataclass(frozen=True)
class Curve:
    """A ROC curve: name, class of its stroke, and rates in [0, 1] of equal number."""

    name: str
    stroke: str
    fpr: Sequence[float]
    tpr: Sequence[float]


def roc(curves: Sequence[Curve], label: str, *, floor: float | None = None) -> Html:
    """True against false positives, with the diagonal of guessing.

    floor: the lowest rate of two logarithmic axes; None for linear ones. Points below are left out.
    """
    low = floor or 0.0
    x = Scale(low, 1, _LEFT, _RIGHT, log=floor is not None)
    y = Scale(low, 1, _FOOT, _TOP, log=floor is not None)
    parts = _frame(x, y, "false positive rate", "true positive rate")
    steps = [low, 1.0]
    parts.append(path([(x(value), y(value)) for value in steps], "line guess"))
    for curve in curves:
        points = _points(curve, low)
        if len(points) > 1:
            drawn = path([(x(a), y(b)) for a, b in points], f"line {curve.stroke}")
            parts.append(tag("g", tag("title", curve.name), drawn))
    return svg(334, 306, *parts, label=label, class_="chart square")


def _points(curve: Curve, low: float) -> list[tuple[float, float]]:
    """Points whose rates are known and at least `low`; one on the edge stands for those below."""
    pairs = [(a, b) for a, b in zip(curve.fpr, curve.tpr, strict=False) if known(a) and known(b)]
    inside = [(a, b) for a, b in pairs if a >= low and b >= low]
    outside = [(a, b) for a, b in pairs if not (a >= low and b >= low)]
    if low and inside and outside and inside[0][0] > low and outside[-1][1] >= low:
        inside.insert(0, (low, outside[-1][1]))
    return inside


def _frame(x: Scale, y: Scale, across: str, up: str) -> list[Html]:
    """Gridlines with their values, and the names of both axes."""
    parts = []
    for value in x.ticks(4):
        parts.append(line(x(value), _TOP, x(value), _FOOT, "grid"))
        parts.append(words(x(value), _FOOT + 16, tick(value), "middle", "quiet"))
    for value in y.ticks(4):
        parts.append(line(_LEFT, y(value), _RIGHT, y(value), "grid"))
        parts.append(words(_LEFT - 6, y(value) + 4, tick(value), "end", "quiet"))
    middle = (_TOP + _FOOT) / 2
    parts.append(words((_LEFT + _RIGHT) / 2, _FOOT + 36, across, "middle"))
    turned = f"rotate(-90 10 {px(middle)})"
    return [*parts, tag("text", up, x="10", y=px(middle), transform=turned, class_="mid")]


def scatter(group: Mapping[str, Any], label: str) -> Html:
    """Scores on synthetic rows against scores on real ones, on equal axes.

    Names stand in order of height at the right, each tied to its point.
    """
    points = [
        (str(name), real, synthetic)
        for name, real, synthetic in zip(
            group["names"], group["real"], group["synthetic"], strict=False
        )
        if known(real) and known(synthetic)
    ]
    low, high = spread([value for point in points for value in point[1:]])
    named = len(points) <= NAMED
    right = 252.0 if named else _RIGHT
    x, y = Scale(low, high, _LEFT, right), Scale(low, high, _FOOT, _TOP)
    parts = _grid(x, y)
    parts.append(line(x(low), y(low), x(high), y(high), "line guess"))
    if named:
        parts += _names(points, x, y)
    for title, real, synthetic in points:
        said = tag("title", f"{title}: real {score(real)}, synthetic {score(synthetic)}")
        dot = tag("circle", said, cx=px(x(real)), cy=px(y(synthetic)), r="4", class_="point")
        parts.append(dot)
    return svg(453 if named else 334, 306, *parts, label=label, class_="chart scatter")


def _grid(x: Scale, y: Scale) -> list[Html]:
    parts = []
    for value in x.ticks(5):
        parts.append(line(x(value), _TOP, x(value), _FOOT, "grid"))
        parts.append(line(x.start, y(value), x.end, y(value), "grid"))
        parts.append(words(x(value), _FOOT + 16, tick(value), "middle", "quiet"))
        parts.append(words(_LEFT - 6, y(value) + 4, tick(value), "end", "quiet"))
    middle = (_TOP + _FOOT) / 2
    parts.append(
        words((x.start + x.end) / 2, _FOOT + 36, "learned and tested on real rows", "middle")
    )
    turned = f"rotate(-90 10 {px(middle)})"
    up = tag(
        "text",
        "learned and tested on synthetic",
        x="10",
        y=px(middle),
        transform=turned,
        class_="mid",
    )
    return [*parts, up]


def _names(points: Sequence[tuple[str, float, float]], x: Scale, y: Scale) -> list[Html]:
    """Names at least 15 pixels apart, as near their points' height as that allows."""
    parts: list[Html] = []
    order = sorted(points, key=lambda point: (y(point[2]), -x(point[1])))
    heights = apart_by([y(point[2]) for point in order], 15, _TOP + 4, _FOOT)
    for (title, real, synthetic), height in zip(order, heights, strict=True):
        corner = [(x(real), y(synthetic)), (x.end + 6, height), (x.end + 10, height)]
        parts.append(path(corner, "lead"))
        shown = tag("title", title), short(title, 30)
        parts.append(tag("text", *shown, x=px(x.end + 13), y=px(height + 4)))
    return parts


def apart_by(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Ascending places moved so that neighbours lie `least` apart, in [low, high] if they fit."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + least if places else low))
    limit = max(high, low + least * (len(places) - 1))
    for index in range(len(places) - 1, -1, -1):
        places[index] = min(places[index], limit)
        limit = places[index] - least
    return places
