"""A plot of a search: scores by candidate, and against each setting; one .svg that needs nothing
else."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fedsynth.evaluation.report.charts.drawing import Scale, line, path, px, round_values, words
from fedsynth.markup import Html, short, tag

_WIDTH, _LEFT, _RIGHT = 720.0, 64.0, 516.0
_TOP, _FOOT = 16.0, 236.0
_ACROSS, _PANEL, _TALL = 3, 200.0, 150.0
"""Small panels in a row, and the width and height of each."""
_DEEPEST = 4.0
"""Scores are drawn down to so many times as far below the best as the median is."""
_NAMED = 6
"""Values of a list that are all written below its panel."""
_STYLE = (
    ".fs-search text{font:12px system-ui,sans-serif;fill:#222}.fs-search .quiet{fill:#555}"
    ".fs-search .mid{text-anchor:middle}.fs-search .end{text-anchor:end}"
    ".fs-search .name{font-weight:600}"
    ".fs-search .grid{stroke:#ddd;stroke-width:1;fill:none}.fs-search .near{fill:#e8efe6}"
    ".fs-search .default{stroke:#222;stroke-width:1.5;stroke-dasharray:5 4;fill:none}"
    ".fs-search .best{stroke:#1f5fa8;stroke-width:2;fill:none}"
    ".fs-search .one{fill:#7d8894;fill-opacity:.75}.fs-search .taken{fill:#b5472f;stroke:#fff}"
    ".fs-search .below{fill:#fff;stroke:#7d8894}"
)


@dataclass(frozen=True)
class Setting:
    """What was tried of one setting.

    Attributes:
        values: of the candidates, in order; numbers, or texts of a list.
        choices: (low, high), or the list's texts.
        default: the model's own, where it has a place among the choices.
        log: whether the numbers lie on a logarithmic axis.
    """

    name: str
    values: Sequence[Any]
    choices: Sequence[Any]
    default: Any = None
    log: bool = False

    @property
    def listed(self) -> bool:
        """Whether the choices are those of a list."""
        return any(isinstance(choice, str) for choice in self.choices)


@dataclass(frozen=True)
class Drawn:
    """A search to be drawn.

    Attributes:
        metric: of the scores; more is better.
        scores: by the candidate's number, in order.
        taken: number of the one that is recommended.
        default: the score of the model's own settings.
        near: lowest and highest of the scores that count as alike; None where none do.
    """

    metric: str
    scores: Mapping[int, float]
    taken: int
    default: float
    near: tuple[float, float] | None
    settings: Sequence[Setting]


def draw_search(search: Drawn, label: str) -> Html:
    """The plot; label: its text alternative."""
    rows = -(-len(search.settings) // _ACROSS)
    height = _FOOT + 56 + rows * (_TALL + 62)
    y = _heights(search, _FOOT, _TOP)
    parts = [*_history(search, y), *_legend(search, y)]
    for place, setting in enumerate(search.settings):
        left = _LEFT - 20 + (place % _ACROSS) * (_PANEL + 28)
        top = _FOOT + 76 + (place // _ACROSS) * (_TALL + 62)
        parts += _panel(search, setting, left, top)
    size = {"viewBox": f"0 0 {px(_WIDTH)} {px(height)}", "width": px(_WIDTH), "height": px(height)}
    ground = tag("rect", width="100%", height="100%", fill="#fff")
    xml = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria_label": label}
    style = tag("style", Html(_STYLE))
    return tag("svg", style, ground, *parts, class_="fs-search", **size, **xml)


def _heights(search: Drawn, low: float, high: float) -> Scale:
    """Scores between two heights: without the worst, that would press all others together, but
    with what is marked."""
    scores = [*search.scores.values(), search.default]
    best = max(scores)
    deepest = best - _DEEPEST * (best - statistics.median(scores))
    wanted = [deepest, search.default, search.scores[search.taken]]
    wanted += [] if search.near is None else search.near[:1]
    least = max(min(scores), min(wanted))
    room = (best - least) * 0.06 or abs(best) * 0.01 or 0.01
    return Scale(least - room, best + room, low, high)


def _history(search: Drawn, y: Scale) -> list[Html]:
    """Scores by candidate, with the best so far and the default's."""
    last = max(search.scores)
    x = Scale(-0.5, last + 0.5, _LEFT, _RIGHT)
    parts = list[Html]()
    if search.near is not None:
        edges = y(search.near[1]), y(search.near[0])
        size = {"width": px(_RIGHT - _LEFT), "height": px(edges[1] - edges[0])}
        parts.append(tag("rect", x=px(_LEFT), y=px(edges[0]), **size, class_="near"))
    for value in y.ticks(5):
        parts.append(line(_LEFT, y(value), _RIGHT, y(value), "grid"))
        parts.append(words(_LEFT - 6, y(value) + 4, f"{value:g}", "end", "quiet"))
    for value in round_values(0, last, 6):
        if value == int(value):
            parts.append(words(x(value), _FOOT + 16, f"{value:g}", "middle", "quiet"))
    parts.append(line(_LEFT, y(search.default), _RIGHT, y(search.default), "default"))
    corners: list[tuple[float, float]] = []
    numbers = sorted(search.scores)
    reached = accumulate((search.scores[number] for number in numbers), max)
    for number, so_far in zip(numbers, reached, strict=True):
        corners += [(x(number), corners[-1][1])] if corners else []
        corners.append((x(number), y(so_far)))
    parts.append(path([*corners, (_RIGHT, corners[-1][1])], "best"))
    parts += [_dot(search, number, x(number), y) for number in _order(search)]
    middle = (_TOP + _FOOT) / 2
    turned = f"rotate(-90 14 {px(middle)})"
    up = tag("text", search.metric, x="14", y=px(middle), transform=turned, class_="mid")
    return [*parts, words((_LEFT + _RIGHT) / 2, _FOOT + 36, "trial", "middle"), up]


def _legend(search: Drawn, y: Scale) -> list[Html]:
    left, parts = _RIGHT + 16, list[Html]()
    below = sum(score < y.low for score in search.scores.values())
    keys = {"one": "a trial", "taken": "the one taken", "best": "best so far"}
    keys["default"] = "the default"
    if search.near is not None:
        keys["near"] = "scores that are alike"
    if below:
        keys["below"] = f"below the plot: {below:,}"
    for place, (kind, said) in enumerate(keys.items()):
        at = _TOP + 10 + 22 * place
        parts += [_symbol(kind, left, at), words(left + 32, at + 4, said)]
    return parts


def _symbol(kind: str, left: float, at: float) -> Html:
    """What stands for something, at the head of its line in the legend."""
    if kind in ("best", "default"):
        return line(left, at, left + 24, at, kind)
    if kind == "near":
        return tag("rect", x=px(left), y=px(at - 5), width="24", height="10", class_=kind)
    return tag("circle", cx=px(left + 12), cy=px(at), r="4.5", class_=kind)


def _panel(search: Drawn, setting: Setting, left: float, top: float) -> list[Html]:
    """Scores against one setting."""
    foot, right = top + _TALL, left + _PANEL
    y = _heights(search, foot, top)
    count = len(setting.choices)
    spaced = Scale(-0.5, count - 0.5, left, right)
    numbers = None
    if not setting.listed:
        inset = 8.0
        low, high = map(float, setting.choices)
        numbers = Scale(low, high, left + inset, right - inset, setting.log)

    def x(value: Any) -> float:
        return spaced(list(setting.choices).index(value)) if numbers is None else numbers(value)

    parts = [words(left, top - 8, setting.name, "start", "name")]
    parts += [line(left, y(value), right, y(value), "grid") for value in y.ticks(3)]
    parts.append(line(left, foot, right, foot, "grid"))
    if numbers is None:
        named = setting.choices if count <= _NAMED else (setting.choices[0], setting.choices[-1])
        for choice in named:
            parts.append(words(x(choice), foot + 16, short(choice, 9), "middle", "quiet"))
    else:
        parts.append(words(left, foot + 16, f"{low:g}", "start", "quiet"))
        parts.append(words(right, foot + 16, f"{high:g}", "end", "quiet"))
        if setting.log:
            parts.append(words((left + right) / 2, foot + 16, "log", "middle", "quiet"))
    if setting.default is not None:
        parts.append(line(x(setting.default), top, x(setting.default), foot, "default"))
    values = dict(zip(search.scores, setting.values, strict=True))
    parts += [_dot(search, number, x(values[number]), y) for number in _order(search)]
    return parts


def _order(search: Drawn) -> list[int]:
    """Numbers in the order in which they are drawn: the one taken above all others."""
    return sorted(search.scores, key=lambda number: (number == search.taken, number))


def _dot(search: Drawn, number: int, across: float, y: Scale) -> Html:
    score = search.scores[number]
    said = tag("title", f"trial {number}: {score:.4f}")
    kind = "taken" if number == search.taken else "below" if score < y.low else "one"
    size = "5" if kind == "taken" else "3.5"
    return tag("circle", said, cx=px(across), cy=px(y(score)), r=size, class_=kind)
