"""Plots of a plan, each one .svg file that needs nothing else, or a .png."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedsynth.errors import ConfigError
from fedsynth.evaluation.report.charts.drawing import Scale, line, path, px, round_values, words
from fedsynth.files import writing
from fedsynth.markup import Html, tag

_WIDTH, _HEIGHT = 660.0, 330.0
_LEFT, _RIGHT, _TOP, _FOOT = 64.0, 400.0, 16.0, 282.0
# Told apart by their dashes as well, where colours are not.
_STROKES = (
    ("#1f5fa8", ""),
    ("#b5472f", "7 3"),
    ("#3d7d3a", "2 3"),
    ("#7a4fa3", "9 3 2 3"),
    ("#8a6d1d", "4 2"),
    ("#555555", "1 4"),
)
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.quiet{fill:#555}.mid{text-anchor:middle}"
    ".end{text-anchor:end}.grid{stroke:#ddd;stroke-width:1;fill:none}"
    ".mark{stroke:#222;stroke-dasharray:3 3;fill:none}"
)


def draw_lines(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    across: str,
    up: str,
    label: str,
    at: float | None = None,
    log: bool = True,
) -> Html:
    """Lines through points of positive figures, on two logarithmic axes.

    Args:
        lines: points by the line's name, at most six lines; figures that are not finite are left
            out.
        across, up: names of the axes.
        label: text alternative.
        at: a figure on the first axis to be marked.
        log: False for two linear axes from 0, the first one of whole numbers.
    """
    kept = {name: [one for one in points if _can_be(one, log)] for name, points in lines.items()}
    kept = {name: points for name, points in kept.items() if points}
    if not kept:
        raise ConfigError("there is nothing to plot: no figure of this plan is finite")
    everything = [point for points in kept.values() for point in points]
    x = Scale(0, max(1.0, *(point[0] for point in everything)), _LEFT, _RIGHT)
    y = Scale(0, max(point[1] for point in everything) or 1.0, _FOOT, _TOP)
    if log:
        x = _scale([point[0] for point in everything], _LEFT, _RIGHT)
        y = _scale([point[1] for point in everything], _FOOT, _TOP)
    parts = _axes(x, y, across, up)
    if at is not None and x.low <= at <= x.high:
        parts += [line(x(at), _TOP, x(at), _FOOT, "mark")]
    for place, (name, points) in enumerate(kept.items()):
        colour, dashes = _STROKES[place % len(_STROKES)]
        style = f"stroke:{colour};stroke-width:2;fill:none;stroke-dasharray:{dashes or 'none'}"
        drawn = path([(x(a), y(b)) for a, b in points], "line")
        height = _TOP + 10 + 20 * place
        key = path([(_RIGHT + 14, height), (_RIGHT + 42, height)], "line")
        said = words(_RIGHT + 48, height + 4, name)
        parts.append(tag("g", tag("title", name), drawn, key, style=style))
        parts.append(said)
    size = {"viewBox": f"0 0 {px(_WIDTH)} {px(_HEIGHT)}", "width": px(_WIDTH)}
    ground = tag("rect", width="100%", height="100%", fill="#fff")
    style = tag("style", Html(_STYLE))
    xml = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria_label": label}
    return tag("svg", style, ground, *parts, **size, height=px(_HEIGHT), **xml)


def demand_plot(file: Path) -> None:
    """Raises ConfigError for a file that no plot can be written to: before work is done for it."""
    if file.suffix not in (".svg", ".png"):
        raise ConfigError(f"{file}: plots are written as .svg, which every browser opens, or .png")
    if file.exists():
        raise ConfigError(f"{file} exists already: name a new file")
    if file.suffix == ".png":
        _resvg(file)


def save_plot(svg: Html, file: Path) -> None:
    """Write a plot to a new .svg file, or .png where `resvg-py` is installed.

    Raises:
        ConfigError: another kind of file, or one that exists.
    """
    demand_plot(file)
    content = _png_of(svg, file) if file.suffix == ".png" else svg.encode()
    if file.exists():
        raise ConfigError(f"{file} exists already: name a new file")
    with writing(file), file.open("xb") as out:
        out.write(content)


def _png_of(svg: Html, file: Path) -> bytes:
    """At twice the size, for screens that are fine, in the system's sans-serif."""
    drawn: bytes = _resvg(file)(svg_string=str(svg), zoom=2.0)
    return drawn


def _resvg(file: Path) -> Any:
    """What draws a .png."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise ConfigError(
            f"{file}: a .png takes resvg-py: pip install 'fedsynth[png]'; an .svg takes nothing, "
            "and every browser opens it"
        ) from None
    return svg_to_bytes


def _can_be(point: tuple[float, float], log: bool) -> bool:
    """Whether a point has a place on the axes."""
    return all(math.isfinite(value) and (value > 0 or not log) for value in point)


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    """A logarithmic one from decade to decade, or half of one."""
    low = math.floor(2 * math.log10(min(values)) + 1e-9) / 2
    high = math.ceil(2 * math.log10(max(values)) - 1e-9) / 2
    return Scale(10**low, 10 ** max(high, low + 0.5), start, end, log=True)


def _axes(x: Scale, y: Scale, across: str, up: str) -> list[Html]:
    parts = []
    for value in _ticks(x) if x.log else [one for one in _ticks(x) if one == int(one)]:
        parts.append(line(x(value), _TOP, x(value), _FOOT, "grid"))
        parts.append(words(x(value), _FOOT + 16, _spell(value), "middle", "quiet"))
    for value in _ticks(y):
        parts.append(line(_LEFT, y(value), _RIGHT, y(value), "grid"))
        parts.append(words(_LEFT - 6, y(value) + 4, _spell(value), "end", "quiet"))
    middle = (_TOP + _FOOT) / 2
    parts.append(words((_LEFT + _RIGHT) / 2, _FOOT + 38, across, "middle"))
    turned = f"rotate(-90 14 {px(middle)})"
    return [*parts, tag("text", up, x="14", y=px(middle), transform=turned, class_="mid")]


def _ticks(scale: Scale) -> list[float]:
    """Round values. Of logarithms decades; where there are fewer than three, their multiples of 1,
    2 and 5 as well."""
    if not scale.log:
        return round_values(scale.low, scale.high, 5)
    decades = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    steps = (1,) if len(decades) > 5 else (1, 3) if len(decades) > 3 else (1, 2, 5)
    values = [step * 10.0**power for power in decades for step in steps]
    return [value for value in values if scale.low * 0.999 <= value <= scale.high * 1.001]


def _spell(value: float) -> str:
    whole = value == int(value) and value < 1e6
    return f"{value:,.0f}" if whole else f"{value:g}".replace("e+0", "e")
