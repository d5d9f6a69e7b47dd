"""How numbers are written in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

DASH = "\u2013"
TIMES = " \u00d7 "
_MINUS = "\u2212"
_THIN = "\u202f"


def known(value: object) -> TypeGuard[float]:
    """Whether a figure was computed: a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def score(value: object, digits: int = 3) -> str:
    """A score, as `0.906`; what rounding would make perfect or nothing is `>0.999`, `<0.001`."""
    if not known(value):
        return DASH
    smallest = 10.0**-digits
    if 0 < value < smallest / 2:
        return f"<{smallest:.{digits}f}"
    if 1 - smallest / 2 <= value < 1:
        return f">{1 - smallest:.{digits}f}"
    if value in (0, 1):
        return str(int(value))
    return f"{value:.{digits}f}".replace("-", _MINUS)


def percent(value: object) -> str:
    """A share, as `12.3 %`; a share above 0 never reads `0 %`, one below 1 never `100 %`."""
    if not known(value):
        return DASH
    if 0 < value < 0.0005:
        return f"<0.1{_THIN}%"
    if 0.9995 <= value < 1:
        return f">99.9{_THIN}%"
    shown = f"{value * 100:.0f}" if value in (0, 1) else f"{value * 100:.1f}"
    return f"{shown.replace('-', _MINUS)}{_THIN}%"


def count(value: object) -> str:
    """Rows and the like, as `39,073`."""
    return f"{value:,.0f}".replace("-", _MINUS) if known(value) else DASH


def amount(value: object) -> str:
    """A figure of any size in four significant digits."""
    if not known(value):
        return DASH
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3e}".replace("-", _MINUS)
    if abs(value) >= 1000:
        return count(value)
    return f"{value:.4g}".replace("-", _MINUS)


def seconds(value: object) -> str:
    """In two significant digits: what is measured once is not known better."""
    if not known(value):
        return DASH
    return count(value) if value >= 10 else f"{value:.2g}"


def metric_value(metric: str, value: object) -> str:
    """A value of a named metric: errors are amounts, everything else is a score."""
    return amount(value) if metric == "mae" else score(value)


def interval(low: object, high: object, digits: int = 3) -> str:
    """As `0.490 to 0.520`; a dash where there is none."""
    if not known(low) or not known(high):
        return DASH
    return f"{score(low, digits)} to {score(high, digits)}"


def tick(value: float) -> str:
    """A round value on an axis."""
    return f"{value:g}".replace("-", _MINUS)


def tick_percent(value: float) -> str:
    """A round share on an axis."""
    return f"{value * 100:g}{_THIN}%"


def one_in(probability: float) -> str:
    """A small probability in words, as `1 in 100,000`."""
    return f"1 in {count(1 / probability)}" if 0 < probability <= 0.5 else f"{probability:g}"


_METRICS = {
    "auroc": "AUROC",
    "f1": "F1",
    "r2": "R²",
    "mae": "mean absolute error",
}


def metric_name(metric: str) -> str:
    """As a reader knows it."""
    return _METRICS.get(metric, metric.replace("_", " "))


def sentence(value: object) -> str:
    """Text that ends like a sentence."""
    words = str(value).strip()
    return words if not words or words[-1] in ".!?:…" else words + "."


def capital(value: str) -> str:
    """The first letter in upper case, the others as they are; `k nearest` stays."""
    return value if value[:2] in ("k ", "k-") else value[:1].upper() + value[1:]


def cell(value: Any) -> str:
    """Any value of the JSON, short enough for a cell of a table."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if known(value):
        return amount(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {cell(each)}" for key, each in value.items()) or DASH
    if isinstance(value, list | tuple):
        return ", ".join(cell(each) for each in value) or DASH
    return str(value)
