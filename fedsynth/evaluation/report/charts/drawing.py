"""What every chart is drawn with: scales, ticks, marks and the svg element itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedsynth.evaluation.report.wording import known
from fedsynth.markup import Html, tag

_REACH = {"synthetic": 4.0, "real": 4.6, "trivial": 3.4, "augmented": 4.6}
"""Half the width of each mark. Shapes differ as well as colours: disc, diamond, cross, triangle."""


@dataclass(frozen=True)
class Scale:
    """A line from values [low, high] to pixels [start, end]; values beyond end at the ends.

    log: decades lie equally far apart; low > 0.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        value = min(max(value, low), high)
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        if high == low:
            return (self.start + self.end) / 2
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, about: int = 4) -> list[float]:
        """Round values within the scale: decades, or about so many multiples of 1, 2 or 5."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        return round_values(self.low, self.high, about)


def round_values(low: float, high: float, about: int = 4) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten in [low, high], about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def spread(values: Sequence[object], margin: float = 0.08) -> tuple[float, float]:
    """The range of the figures that are known, a little wider; (0, 1) where there are none."""
    numbers = [float(value) for value in values if known(value)]
    if not numbers:
        return 0.0, 1.0
    low, high = min(numbers), max(numbers)
    wider = (high - low) * margin or abs(high) * margin or margin
    return low - wider, high + wider


def px(value: float) -> str:
    """A coordinate with one decimal, and none where it is whole."""
    return f"{value:.1f}".removesuffix(".0")


def svg(width: float, height: float, *children: object, label: str | None, class_: str) -> Html:
    """A chart with a text alternative, or a decoration (label None) beside text that says it."""
    seen: dict[str, object] = (
        {"aria_hidden": "true"} if label is None else {"role": "img", "aria_label": label}
    )
    size = {"viewBox": f"0 0 {px(width)} {px(height)}", "width": px(width), "height": px(height)}
    return tag("svg", *children, class_=class_, **size, **seen)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line, as a path, which is shorter."""
    return tag("path", d=f"M{px(x1)} {px(y1)}L{px(x2)} {px(y2)}", class_=class_)


def words(x: float, y: float, value: object, anchor: str = "start", class_: str = "") -> Html:
    """Text at a point; anchor start, middle or end."""
    hint = {"start": "", "middle": "mid", "end": "end"}[anchor]
    return tag("text", value, x=px(x), y=px(y), class_=f"{hint} {class_}".strip() or None)


def path(points: Sequence[tuple[float, float]], class_: str) -> Html:
    """A line through points."""
    return tag("path", d="M" + "L".join(f"{px(x)} {px(y)}" for x, y in points), class_=class_)


def mark(kind: str, x: float, y: float) -> Html:
    """The shape that stands for one kind of rows."""
    r = _REACH[kind]
    if kind == "synthetic":
        return tag("circle", cx=px(x), cy=px(y), r=px(r), class_="mark synthetic")
    if kind == "real":
        d = f"M{px(x)} {px(y - r)}l{px(r)} {px(r)}l{px(-r)} {px(r)}l{px(-r)} {px(-r)}z"
    elif kind == "augmented":
        d = f"M{px(x)} {px(y - r)}l{px(r)} {px(1.8 * r)}h{px(-2 * r)}z"
    else:
        side = px(2 * r)
        d = f"M{px(x - r)} {px(y - r)}l{side} {side}m0 -{side}l-{side} {side}"
    return tag("path", d=d, class_=f"mark {kind}")


def symbol(kind: str) -> Html:
    """A mark on its own, for a legend."""
    return svg(14, 14, mark(kind, 7, 7), label=None, class_="symbol")


def stroke(kind: str) -> Html:
    """A piece of line on its own, for a legend."""
    return svg(26, 10, line(0, 5, 26, 5, f"line {kind}"), label=None, class_="symbol")


_MEANINGS = {
    "synthetic": "synthetic rows",
    "real": "real rows",
    "trivial": "trivial baseline",
    "augmented": "real + synthetic",
}


def legend(*kinds: str, lines: bool = False, **meanings: str) -> Html:
    """What the marks or lines stand for."""
    draw = stroke if lines else symbol
    items = (tag("li", draw(kind), " ", meanings.get(kind, _MEANINGS[kind])) for kind in kinds)
    return tag("ul", *items, class_="legend", aria_label="Legend")
