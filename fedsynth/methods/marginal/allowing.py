"""What the histogram allows AIM to ask: how many bins, and which tables first.

The histogram releases the number of records, and the plan says what noise later messages have. So
whatever is decided here costs nothing: plan and ledger stay as they are, and a resumed fit decides
the same again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedsynth.methods.marginal.settings import FEW, AIMSettings
from fedsynth.queries.plan import Plan
from fedsynth.schema import Schema

COARSE, FINE, SELECT = "marginals: coarse", "marginals: fine", "marginals: select"

# Chosen on the tables that evaluation/studies/uneven_tables.py names.
# Records that a pair's cell holds on average, over the noise in it, and the fewest bins.
_CLEAR = 1.2
# .. where a number is to be predicted: what columns tell of it shows in few bins already.
_CLEAR_NUMBER = 2.4
_FEWEST = 4
# Records over a candidate's noise below which the target's pairs are all that is asked at first.
_WIDE = 100.0
# Cells that a model may have for each record, over the noise of a table that is asked alone, and
# however few there are: more hold noise, and take time.
_CELLS = 12.0
_LEAST_CELLS = 4_000
# Tables of three numbers that the model of a target of many values has room for: what tells of it
# tells together, so it needs several columns with the target in one clique.
_TOGETHER = 12
# Records over the noise of a triple with the target, where only the best columns' are asked.
_TOLD = 40.0
# Records that a cell of a pair with the target holds on average, over its noise, below which only
# columns are asked: of a target of few values, which many pairs tell of together, and of a number.
_FAINT_CLASS = 0.6
_FAINT_NUMBER = 2.0
# Records that allow everything, whatever the noise.
_MANY = 1e15

Tier = Literal["workload", "target", "columns"]
_ASKED: dict[Tier, str] = {
    "workload": "all tables of its workload",
    "target": "each column with the target",
    "columns": "columns alone",
}


@dataclass(frozen=True)
class Allowance:
    """What can be told of so many records.

    Attributes:
        bins: that a column of numbers is cut into for tables of several columns.
        tier: what the coarse message asks: the whole workload, the target's pairs alone, or only
            columns.
        cells: that the model may have.
        best: how many columns that tell most of the target are asked in triples with it next,
            where the tier is the target's; 0 where its values are many.
    """

    bins: int
    tier: Tier
    cells: int
    best: int = 0


def allow(schema: Schema, settings: AIMSettings, plan: Plan, records: float) -> Allowance:
    """What a fit may ask, by the number of records that its histogram released.

    Args:
        settings: resolved.
        records: estimated from the histogram.
    """
    columns, most, cells = len(schema.modelled), settings.bins, settings.max_cells
    if columns < 2:
        return Allowance(most, "workload", cells)
    fine = plan.terms(FINE).summed_scale(plan.clients)
    if settings.selection == "exponential":
        most = _bins_together(schema, cells, most)
        return Allowance(_bins(records, fine, most), "workload", cells)
    unit = plan.terms(COARSE).summed_scale(plan.clients)
    if unit > 0:
        cells = min(cells, max(_LEAST_CELLS, round(_CELLS * records / unit)))
    if settings.workload == "target-triples" and 0 < schema.classes <= FEW and columns > 2:
        bins, tier, best = _allow_few(schema.classes, columns, records, unit, fine, most)
        return Allowance(bins, tier, cells, best)
    most = _bins_together(schema, cells, most)
    noise = unit * math.sqrt(_tables(settings, columns))
    clear = _CLEAR if schema.target_column is None else _CLEAR_NUMBER
    if _tells(records, noise, _CLEAR) or isinstance(settings.workload, tuple):
        return Allowance(_bins(records, noise, most, clear), "workload", cells)
    # The target's pairs alone have less noise.
    alone = unit * math.sqrt(columns - 1)
    if schema.target_column is not None and _tells(records, alone, _FAINT_NUMBER):
        return Allowance(_bins(records, alone, most, clear), "target", cells)
    return Allowance(_bins(records, noise, most), "columns", cells)


def allowances(schema: Schema, settings: AIMSettings, plan: Plan) -> list[tuple[float, Allowance]]:
    """All that a fit may be allowed, where nobody says how many records there are: at both ends of
    every tier, the most first, each with about how many records it takes."""
    found, least = [(_MANY, allow(schema, settings, plan, _MANY))], 1.0
    while found[-1][1].tier != (lowest := allow(schema, settings, plan, least)).tier:
        # Between them the tier changes.
        low, high, tier = least, found[-1][0], found[-1][1].tier
        while high > 1.001 * low:
            between = math.sqrt(low * high)
            same = allow(schema, settings, plan, between).tier == tier
            low, high = (low, between) if same else (between, high)
        found += [(one, allow(schema, settings, plan, one)) for one in (high, low)]
    found.append((least, lowest))
    # Of those that are alike, the fewest records.
    return list({allowed: (records, allowed) for records, allowed in found}.values())


def say_allowed(known: Sequence[tuple[float, Allowance]]) -> str:
    """What a fit asks of so many records; or what it hangs on, of all of :func:`allowances`."""
    if len(known) == 1:
        ((records, allowed),) = known
        return (
            f"AIM asks by how many records the histogram shows. Of {records:,.0f} it would cut a "
            f"number into {allowed.bins} bins at the most, and ask {_ASKED[allowed.tier]} first."
        )
    least: dict[Tier, tuple[float, list[int]]] = {}
    for records, allowed in known:
        _, bins = least.get(allowed.tier, (0.0, []))
        least[allowed.tier] = records, [*bins, allowed.bins]
    parts = [
        f"{_ASKED[tier]} "
        + (f"from about {records:,.3g} records on" if records > 1 else "of fewer records")
        + f" ({_spell(min(bins), max(bins))} bins a number)"
        for tier, (records, bins) in least.items()
    ]
    return (
        "Ranges are over all numbers of records, which AIM knows once the histogram is released. "
        f"It asks first {'; '.join(parts)}. Say how many records there are, if that may be known, "
        "for the figures of so many."
    )


def _spell(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def _allow_few(
    classes: int, columns: int, records: float, unit: float, fine: float, most: int
) -> tuple[int, Tier, int]:
    """Bins, tier and best columns where the target has few values."""
    noise = unit * math.sqrt(math.comb(columns - 1, 2))
    if records >= _WIDE * noise:
        # A pair of columns is known as the sum of its triple over the target's values.
        return _bins(records, noise * math.sqrt(classes), most), "workload", 0
    bins = min(most, max(_FEWEST, int(math.sqrt(_TOLD / _CLEAR))))
    if records < _FAINT_CLASS * unit * math.sqrt(columns - 1) * bins * classes:
        return bins, "columns", 0
    room = (records / (_TOLD * fine)) ** 2
    return bins, "target", max(2, int((1 + math.sqrt(1 + 8 * room)) / 2))


def _tables(settings: AIMSettings, columns: int) -> int:
    if isinstance(settings.workload, tuple):
        return max(1, len(settings.workload))
    return math.comb(columns, 3 if settings.workload == "triples" and columns > 2 else 2)


def _bins_together(schema: Schema, cells: int, most: int) -> int:
    """The most bins by which a model has room for what tells together of a target."""
    if schema.target_column is None or 0 < schema.classes <= FEW:
        return most
    return min(most, max(_FEWEST, int(math.cbrt(cells / _TOGETHER))))


def _tells(records: float, noise: float, least: float) -> bool:
    """Whether the cells of a pair of fewest bins hold so many times their noise on average."""
    return records >= least * noise * _FEWEST**2


def _bins(records: float, noise: float, most: int, clear: float = _CLEAR) -> int:
    """The most bins by which the cells of a pair of numbers stand above their noise."""
    if noise <= 0:
        return most
    return min(most, max(_FEWEST, int(math.sqrt(records / (clear * noise)))))
