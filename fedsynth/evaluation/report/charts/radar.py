"""A radar chart: two methods on axes of their own, outwards better (paper 001, figure 4.5.11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

from fedsynth.evaluation.report.charts.drawing import Scale, line, mark, path, svg, words
from fedsynth.evaluation.report.wording import DASH, amount, known, tick
from fedsynth.markup import Html, tag

_WIDE, _MIDDLE, _TOP = 480.0, 240.0, 196.0
_RIM, _HUB = 124.0, 24.0
_LINE, _LETTER = 16.0, 6.6
_KINDS = ("synthetic", "real")


@dataclass(frozen=True)
class Axis:
    """An axis from its worst value, at the hub, to its best one, on the rim.

    Attributes:
        name: as written at the rim, with its unit.
        worst, best: ends; figures beyond them lie at the ends.
        shown: how figures are written.
        ticked: how round values are.
    """

    name: str
    worst: float
    best: float
    shown: Callable[[object], str] = amount
    ticked: Callable[[float], str] = tick

    @property
    def scale(self) -> Scale:
        """From figures to distances from the middle, in pixels."""
        rising = self.best > self.worst
        ends = (_HUB, _RIM) if rising else (_RIM, _HUB)
        return Scale(min(self.worst, self.best), max(self.worst, self.best), *ends)


@dataclass(frozen=True)
class Method:
    """A line of the chart: a name, and a figure for each axis; one that is None breaks the line."""

    name: str
    values: Sequence[float | None]


def radar(axes: Sequence[Axis], methods: Sequence[Method], label: str, note: str = "") -> Html:
    """Every axis with its ticks and, at its end, both methods' figures.

    Args:
        axes: at least three, clockwise from the top.
        methods: one or two; the first is drawn as reports draw synthetic rows, the second as they
            draw real ones.
        note: a line below the legend.

    Raises:
        ValueError: too few axes, too many methods, or not a figure for each axis.
    """
    if len(axes) < 3 or not 1 <= len(methods) <= len(_KINDS):
        raise ValueError("a radar chart takes at least three axes and one or two methods")
    if any(len(method.values) != len(axes) for method in methods):
        raise ValueError("every method needs a figure, or None, for each axis")
    parts = _web(axes)
    for kind, method in zip(_KINDS, methods, strict=False):
        parts += _draw(kind, method, axes)
    for index, axis in enumerate(axes):
        parts += _ticks(axis, _turn(index, axes))
        parts += _label_end(axis, _turn(index, axes), [method.values[index] for method in methods])
    foot = _TOP + _RIM + _LINE * (3.25 + len(methods))
    parts += _legend(methods, foot)
    if note:
        parts.append(words(_MIDDLE, foot + 1.5 * _LINE, note, "middle", "quiet"))
    return svg(_WIDE, foot + 2.5 * _LINE, *parts, label=label, class_="chart radar")


def _turn(index: int, axes: Sequence[Axis]) -> float:
    """An axis' direction: its angle, clockwise from the top."""
    return 2 * math.pi * index / len(axes)


def _at(angle: float, away: float) -> tuple[float, float]:
    """A point so far from the middle."""
    return _MIDDLE + away * math.sin(angle), _TOP - away * math.cos(angle)


def _anchor(sideways: float) -> str:
    """What of a text lies at a point from which it leads away: to the right where positive."""
    return "middle" if abs(sideways) < 0.3 else "start" if sideways > 0 else "end"


def _web(axes: Sequence[Axis]) -> list[Html]:
    """Rings at thirds of the way, and the axes."""
    parts = []
    for third in range(4):
        away = _HUB + (_RIM - _HUB) * third / 3
        corners = [_at(_turn(index, axes), away) for index in range(len(axes))]
        parts.append(path([*corners, corners[0]], "grid"))
    for index in range(len(axes)):
        angle = _turn(index, axes)
        parts.append(line(*_at(angle, _HUB), *_at(angle, _RIM), "axis"))
    return parts


def _ticks(axis: Axis, angle: float) -> list[Html]:
    """Round values beside an axis, clockwise of it, over the methods' lines."""
    parts = []
    across = math.cos(angle), math.sin(angle)
    anchor = _anchor(across[0])
    for value in axis.scale.ticks(3):
        x, y = _at(angle, axis.scale(value))
        parts.append(line(x, y, x + 4 * across[0], y + 4 * across[1], "axis"))
        place = x + 7 * across[0], y + 13 * across[1] + 4
        parts.append(words(*place, axis.ticked(value), anchor, "quiet small"))
    return parts


def _draw(kind: str, method: Method, axes: Sequence[Axis]) -> list[Html]:
    """A method's line around the chart, broken where a figure is missing, and its marks."""
    places = [
        _at(_turn(index, axes), axis.scale(value)) if known(value) else None
        for index, (axis, value) in enumerate(zip(axes, method.values, strict=True))
    ]
    parts = []
    for here, there in zip(places, [*places[1:], places[0]], strict=True):
        if here and there:
            parts.append(line(*here, *there, f"line {kind}"))
    parts += [mark(kind, *place) for place in places if place]
    return [tag("g", tag("title", method.name), *parts)]


def _label_end(axis: Axis, angle: float, values: Sequence[float | None]) -> list[Html]:
    """An axis' name beyond the rim, and below it each method's figure with its mark."""
    x, y = _at(angle, _RIM + 14)
    anchor = _anchor(math.sin(angle))
    tall = _LINE * len(values)
    y += 4 - tall / 2 + math.cos(angle) * -(tall / 2 + 2)
    parts = [words(x, y, axis.name, anchor)]
    for row, (kind, value) in enumerate(zip(_KINDS, values, strict=False), start=1):
        said = axis.shown(value) if known(value) else DASH
        long = 14 + _LETTER * len(said)
        left = x - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
        parts.append(mark(kind, left + 5, y + _LINE * row - 4))
        parts.append(words(left + 14, y + _LINE * row, said))
    return parts


def _legend(methods: Sequence[Method], y: float) -> list[Html]:
    """What either line stands for, below the chart."""
    parts = []
    widths = [38 + _LETTER * len(method.name) for method in methods]
    x = _MIDDLE - (sum(widths) + 28 * (len(methods) - 1)) / 2
    for kind, method, width in zip(_KINDS, methods, widths, strict=False):
        parts += [line(x, y - 4, x + 30, y - 4, f"line {kind}"), mark(kind, x + 15, y - 4)]
        parts.append(words(x + 38, y, method.name))
        x += width + 28
    return parts


def picture(chart: Html) -> str:
    """A chart as a file of its own: with the colours of a report's light page, on white."""
    style = (resources.files("fedsynth.evaluation.report") / "page.css").read_text()
    colours = style[: style.index("}") + 1]
    rules = "\n".join(each for each in style.splitlines() if each.startswith(("svg ", "svg.")))
    font = 'svg { font: 12px "Helvetica Neue", Arial, "Liberation Sans", sans-serif; }'
    head, body = chart.split(">", 1)
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f"{head}>\n<style>\n{colours}\n{rules}\n{font}\n</style>\n{ground}\n{body}\n"
