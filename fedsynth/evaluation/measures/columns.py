"""Each column of one table beside the same column of another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.reading.rows import Rows
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Modelled
from fedsynth.schema.columns import Numeric
from fedsynth.schema.moments import moments
from fedsynth.schema.rounding import decimals_of

_CELLS = 20
"""Bars of a column's histogram."""

Kind = Literal["number", "category", "boolean", "date"]
Pair = dict[str, float | None]
"""A figure of the "real" and of the "synthetic" rows."""
Bars = tuple[list[str], Callable[[NDArray[np.float64]], NDArray[np.int64]]]
"""Labels of a histogram's bars, and the bar of each known value."""


@dataclass(frozen=True)
class Histogram:
    """Shares of both tables' cells in the same bars, gaps included: they add up to 1."""

    labels: tuple[str, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]


@dataclass(frozen=True)
class ColumnScore:
    """How a column's synthetic values are spread beside the real ones.

    Attributes:
        metric: KSComplement for numbers and dates, 1 minus the Kolmogorov-Smirnov statistic;
            TVComplement for categories, 1 minus the total variation. Both over known values, as
            SDMetrics defines them, in [0, 1]. Where SDMetrics has no figure: 1 if neither table has
            any, 0 if one has none.
        score: of the synthetic rows against the real ones. real: of other real rows.
        wasserstein: earth mover's distance of numbers and dates, in 5-95 % ranges of the real ones.
        missing: shares of gaps.
        outside: share of synthetic cells that break a rule of the schema. real_outside: of real
            ones, which no synthetic one can equal: they count as what the schema makes of them.
        coverage: categories, share of the real ones that occur among synthetic rows, all undeclared
            ones as one (SDMetrics' CategoryCoverage); numbers, share of the real range that the
            synthetic range covers (RangeCoverage, which leaves a single real value open: here 1 if
            the range holds it, else 0). None if either table has no value.
        mean, deviation: of known numbers, the deviation over n; None of none, and for other kinds.
    """

    name: str
    kind: Kind
    metric: str
    score: float
    real: float
    wasserstein: float | None
    missing: Pair
    outside: float
    coverage: float | None
    mean: Pair | None
    deviation: Pair | None
    histogram: Histogram
    real_outside: float = 0.0


def column_scores(synthetic: Rows, train: Rows, real: Rows) -> tuple[ColumnScore, ...]:
    """Of every modelled column: synthetic rows against `real`, beside those of `train`."""
    return tuple(
        _column_score(column, synthetic, train, real, j)
        for j, column in enumerate(real.schema.observed)
    )


def _column_score(
    column: Modelled, synthetic: Rows, train: Rows, real: Rows, j: int
) -> ColumnScore:
    theirs, others, ours = (known(rows.values[:, j]) for rows in (real, train, synthetic))
    discrete = real.sizes[j] > 0
    complement = tv_complement if discrete else ks_complement
    plain = not discrete and not isinstance(column, Datetime)
    return ColumnScore(
        name=column.name,
        kind=_kind(column),
        metric="TVComplement" if discrete else "KSComplement",
        score=complement(theirs, ours),
        real=complement(theirs, others),
        wasserstein=None if discrete else wasserstein(theirs, ours),
        missing={
            "real": float(np.isnan(real.values[:, j]).mean()),
            "synthetic": float(np.isnan(synthetic.values[:, j]).mean()),
        },
        outside=float(synthetic.outside[:, j].mean()),
        coverage=_coverage(theirs, ours, discrete),
        mean=_both(np.mean, theirs, ours) if plain else None,
        deviation=_both(np.std, theirs, ours) if plain else None,
        histogram=_histogram(column, real.values[:, j], synthetic.values[:, j]),
    )


def known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without gaps."""
    return values[~np.isnan(values)]


def ks_complement(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    """1 minus the largest distance between the two distribution functions of known values."""
    if len(real) == 0 or len(synthetic) == 0:
        return float(len(real) == len(synthetic))
    real, synthetic = np.sort(real), np.sort(synthetic)
    places = np.concatenate([real, synthetic])
    below = np.searchsorted(real, places, side="right") / len(real)
    ours = np.searchsorted(synthetic, places, side="right") / len(synthetic)
    return float(1 - np.abs(below - ours).max())


def tv_complement(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    """1 minus half the L1 distance of the shares of known codes."""
    if len(real) == 0 or len(synthetic) == 0:
        return float(len(real) == len(synthetic))
    cells = int(max(real.max(), synthetic.max())) + 1
    shares = [np.bincount(c.astype(np.int64), minlength=cells) / len(c) for c in (real, synthetic)]
    return float(1 - np.abs(shares[0] - shares[1]).sum() / 2)


def wasserstein(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float | None:
    """Earth mover's distance over the real 5-95 % range (or the whole range, or 1); None if either
    has no value."""
    from scipy.stats import wasserstein_distance

    if len(real) == 0 or len(synthetic) == 0:
        return None
    low, high = np.quantile(real, [0.05, 0.95])
    scale = (high - low) or np.ptp(real) or 1.0
    return float(wasserstein_distance(real, synthetic) / scale)


def _coverage(
    real: NDArray[np.float64], synthetic: NDArray[np.float64], discrete: bool
) -> float | None:
    if len(real) == 0 or len(synthetic) == 0:
        return None
    if discrete:
        return float(np.isin(np.unique(real), synthetic).mean())
    span = float(np.ptp(real))
    if span == 0:
        return float(synthetic.min() <= real[0] <= synthetic.max())
    lost = max(0.0, synthetic.min() - real.min()) + max(0.0, real.max() - synthetic.max())
    return float(max(0.0, 1 - lost / span))


def _both(
    figure: Callable[[NDArray[np.float64]], Any],
    real: NDArray[np.float64],
    synthetic: NDArray[np.float64],
) -> Pair:
    of = {"real": real, "synthetic": synthetic}
    return {side: float(figure(values)) if len(values) else None for side, values in of.items()}


def _kind(column: Modelled) -> Kind:
    if isinstance(column, Boolean):
        return "boolean"
    if isinstance(column, Categorical):
        return "category"
    return "date" if isinstance(column, Datetime) else "number"


def _histogram(
    column: Modelled, real: NDArray[np.float64], synthetic: NDArray[np.float64]
) -> Histogram:
    if isinstance(column, Categorical | Boolean):
        labels, places = _category_bars(column, real)
    else:
        labels, places = _number_bars(column, real, synthetic)
    shares = []
    for values in (real, synthetic):
        gap = np.isnan(values)
        bars = places(values[~gap])
        counts = np.bincount(bars, minlength=len(labels)).astype(np.float64)
        shares.append(np.append(counts, gap.sum()) / len(values))
    if shares[0][-1] or shares[1][-1]:
        labels.append("(missing)")
    else:
        shares = [share[:-1] for share in shares]
    real_shares, synthetic_shares = (tuple(share.tolist()) for share in shares)
    return Histogram(tuple(labels), real_shares, synthetic_shares)


def _category_bars(column: Categorical | Boolean, real: NDArray[np.float64]) -> Bars:
    """The real rows' commonest categories, the others together, undeclared values."""
    names = [str(value) for value in column.categories]
    counts = np.bincount(known(real).astype(np.int64), minlength=len(names) + 1)[: len(names)]
    order = np.argsort(-counts, kind="stable")
    shown = len(names) if len(names) <= _CELLS else _CELLS - 1
    bar_of = np.full(len(names) + 1, shown)
    bar_of[order[:shown]] = np.arange(shown)
    labels = [names[code] for code in order[:shown]]
    if shown < len(names):
        labels.append(f"{len(names) - shown} others")
    bar_of[len(names)] = len(labels)
    labels.append("(not in the schema)")
    return labels, lambda codes: bar_of[codes.astype(np.int64)]


def _number_bars(
    column: Numeric, real: NDArray[np.float64], synthetic: NDArray[np.float64]
) -> Bars:
    """Bars of equal width over the middle 98 % of the real values, and all beyond at either end.

    Widths are multiples of the column's unit, so that bars hold equally many values.
    """
    cells = np.concatenate([known(real), known(synthetic)])
    if len(cells) == 0:
        return [], lambda numbers: np.zeros(len(numbers), dtype=np.int64)
    values = known(real) if len(known(real)) else cells
    unit = column.unit
    low, high = np.quantile(values, [0.01, 0.99], method="inverted_cdf")
    low = math.floor(low / unit) * unit
    width = max(1, math.ceil((high - low + unit / 2) / unit / _CELLS)) * unit
    places = decimals_of(column)
    starts = np.round(low + width * np.arange(_CELLS + 1), places)
    # No bar lies outside all values, and a single value has one to itself.
    starts = starts[(starts > cells.min()) & (starts <= min(cells.max(), high + width))]
    first, last = (math.floor(cell / unit) * unit for cell in (cells.min(), cells.max()))
    ends = [first, *starts.tolist(), last + unit]
    shown = _precision(column, width)
    labels = _labels(column, [(a, b - unit) for a, b in itertools.pairwise(ends)], shown)
    return labels, lambda numbers: np.searchsorted(starts, numbers, side="right")


def spell_range(column: Numeric, first: float, last: float) -> str:
    """The lowest and the highest of some values of a column, as a reader knows them."""
    precision = _precision(column, max(last - first, column.unit))
    return _labels(column, [(first, last)], precision)[0]


def _labels(column: Numeric, spans: list[tuple[float, float]], precision: str) -> list[str]:
    values = [value for span in spans for value in span]
    if isinstance(column, Datetime):
        texts = moments(np.array(values), column).dt.strftime(precision).tolist()
    else:
        texts = [f"{value + 0.0:{precision}}" for value in values]
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [start if start == stop else f"{start} to {stop}" for start, stop in pairs]


def _precision(column: Numeric, width: float) -> str:
    """How to spell numbers or dates that are a bar's width apart."""
    if not isinstance(column, Datetime):
        decimals = column.decimals if isinstance(column, Continuous) else 0
        return f".{min(decimals, max(0, 2 - math.floor(math.log10(width))))}f"
    days = width * column.seconds / 86_400
    if column.calendar or days >= 2:
        return {"year": "%Y", "month": "%Y-%m"}.get(column.resolution, "%Y-%m-%d")
    return "%Y-%m-%d %H:%M:%S" if days * 1_440 < 2 else "%Y-%m-%d %H:%M"
