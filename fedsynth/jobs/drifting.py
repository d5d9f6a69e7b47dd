"""Have an owner's rows drifted from a release? Asked where the rows are, told there, kept nowhere.

Released rows are a sample of what all owners' rows were like, with noise. So a column is held
against the release's own error, and against a least difference that matters.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.agreed import demand_whole
from fedsynth.demands import demand_number, demand_path
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.evaluation.measures.shifts import (
    codes_apart,
    correct_holm,
    find_detectable,
    numbers_apart,
    rows_apart,
)
from fedsynth.evaluation.reading.features import Features
from fedsynth.evaluation.reading.rows import (
    Rows,
    conform_rows,
    demand_fitting,
    read_real_rows,
    read_rows,
)
from fedsynth.jobs.loading import load
from fedsynth.plain import make_jsonable
from fedsynth.privacy.trail.certificate import LEDGER
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.release import read_release
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.frames import demand_frame
from fedsynth.views import Grid, Said, Shown, View

PRIVATE = (
    "This was computed from your rows: no epsilon covers it. Nothing was sent, and nothing written."
)

_MOST = 1_000
"""Rows a side that are compared whole: their distances grow with the square."""
_PERMUTATIONS = 199


@dataclass(frozen=True)
class ColumnDrift:
    """One column of an owner's rows beside the released one.

    Attributes:
        test: "Kolmogorov-Smirnov" of numbers and dates, "chi-squared" of categories.
        distance: the Kolmogorov-Smirnov distance, or the total variation: in [0, 1], the share of
            rows that would have to be others, at the least. A gap is a value.
        error: of the release, by the known noise: a bound on the total variation from the rows
            learned from, from the errors that each cell's count keeps with probability .95. None
            where the release does not tell.
        cells: parts of the column's range, or groups of its values, that the release tells apart:
            within them nothing is compared. None where it tells all values apart, or does not say.
        p: Holm's p-value of a distance above `least` and `error` together.
        outside: share of the owner's cells that the schema does not allow; they count as what it
            makes of them.
    """

    name: str
    test: str
    distance: float
    error: float | None
    cells: int | None
    p: float
    outside: float


@dataclass(frozen=True, repr=False)
class Drift(Shown):
    """How an owner's rows differ from a release; as private as these rows.

    Attributes:
        columns: of the schema.
        least, alpha: as asked.
        detectable: about the least distance that so many rows show in a column, errors aside.
        rows, worth, released: the owner's rows that fit the schema, how many independent ones they
            are worth (persons with several rows count for less), and released ones.
        left_out: the owner's rows that do not fit.
        discrepancy, together: the maximum mean discrepancy of whole rows, and its p-value.
    """

    columns: tuple[ColumnDrift, ...]
    least: float
    alpha: float
    detectable: float
    rows: int
    worth: float
    released: int
    left_out: int
    discrepancy: float
    together: float

    @property
    def differs(self) -> tuple[str, ...]:
        """Columns that differ by more than `least` and the release's own error."""
        return tuple(one.name for one in self.columns if one.p <= self.alpha)

    @property
    def sentence(self) -> str:
        """The answer, and how far it reaches."""
        beyond = f"by more than {self.least:g} and the release's own error"
        if all(one.error is None for one in self.columns):
            beyond = f"by more than {self.least:g}; this release does not tell its own error, so "
            beyond += "that may be it"
        if self.differs:
            return f"Your rows differ from the release in {', '.join(self.differs)}: {beyond}."
        return (
            f"No column of your rows differs from the release {beyond}, as far as {self.rows:,} "
            f"rows show: about {self.detectable:.2g} and that error, or more."
        )

    @property
    def whole(self) -> str:
        """What comparing whole rows says."""
        if self.together > self.alpha:
            return "Whole rows are not told apart from released ones."
        text = "Whole rows are told apart from released ones"
        if self.differs:
            return f"{text}, as they must be where columns differ."
        return (
            f"{text}: columns within their tolerance, or relations between columns, differ. Of "
            "relations no error is known here: that may be what the release could not learn."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        said = {"sentence": self.sentence, "differs": list(self.differs)}
        return dict(make_jsonable({**said, **asdict(self), "disclosure": PRIVATE}))

    def _view(self) -> View:
        head = ["column", "test", "distance", "release's error", "cells", "p (Holm)", "outside", ""]
        lines = [
            [
                one.name,
                one.test,
                f"{one.distance:.3f}",
                "" if one.error is None else f"{one.error:.3f}",
                "" if one.cells is None else str(one.cells),
                f"{one.p:.2g}",
                f"{one.outside:.2%}" if one.outside else "",
                "differs" if one.name in self.differs else "",
            ]
            for one in self.columns
        ]
        strong = [place for place, line in enumerate(lines) if line[-1]]
        together = f"{self.whole} (MMD {self.discrepancy:.3f}, p {self.together:.2g})"
        parts: list[Said | Grid] = [
            Said(self.sentence, "caution" if self.differs else "strong"),
            Grid(head, lines, figures=(2, 3, 4, 5, 6), strong=strong, most=len(lines)),
            Said(together),
        ]
        if one := [each.name for each in self.columns if each.cells == 1]:
            blind = f"The release does not tell any values apart in {', '.join(one)}."
            parts.append(Said(blind, "caution"))
        if self.left_out:
            parts.append(Said(f"{self.left_out:,} rows do not fit the schema.", "caution"))
        return View("Drift", [*parts, Said(PRIVATE, "caution")])


def drift(
    release: str | Path,
    rows: pd.DataFrame,
    *,
    least: float = 0.05,
    alpha: float = 0.05,
    seed: int = 0,
) -> Drift:
    """Hold an owner's rows against released ones, column by column and whole.

    A release describes the rows of all its owners. An owner that is unlike the others differs from
    the first day on: ask on the day of the release, too, and look at what is added.

    Args:
        release: its folder.
        rows: the owner's, with the columns of the release's schema.
        least: the distance of a column that does not matter, in [0, 1).
        alpha: the chance of naming any column that differs by no more, in (0, 1).
        seed: of the rows that are compared whole, and of permutations.

    Raises:
        ConfigError: a release of images, or a bad setting.
        DataError: rows that the schema does not fit.
        ReleaseError: the release cannot be read, or has no rows.
    """
    folder = demand_path("release", release)
    demand_number("least", least, "at least 0 and below 1", lambda given: 0 <= given < 1)
    demand_number("alpha", alpha, "between 0 and 1", lambda given: 0 < given < 1)
    seed = demand_whole("seed", seed, 0)
    frame = demand_frame(rows, "rows")
    table, schema = read_tables(folder)
    nobodys = schema.model_copy(update={"person": None})
    made, found = read_real_rows(table, nobodys, "release"), read_rows(frame, schema, "rows")
    own = demand_fitting(conform_rows(found), "rows")
    left_out = len(found) - len(own)
    if Ledger.read(folder / LEDGER).job.budget.weigh == "person":
        own = own.one_each(seed)
    sizes = _worth(own), float(len(made))
    model = load(folder)
    errors, cells = _errors_of(model, own.names), _cells_of(model)
    found_apart = [
        _compare(own, made, j, cells.get(name), sizes, least + (error or 0.0))
        for j, (name, error) in enumerate(zip(own.names, errors, strict=True))
    ]
    values = correct_holm([p for _, p in found_apart])
    columns = tuple(
        ColumnDrift(
            name,
            "chi-squared" if own.sizes[j] else "Kolmogorov-Smirnov",
            found_apart[j][0],
            errors[j],
            None if cells.get(name) is None else cells[name].size,
            values[j],
            float(found.outside[:, j].mean()),
        )
        for j, name in enumerate(own.names)
    )
    features = Features.of(made)
    samples = [features.matrix(_scatter(side, seed)) for side in (own, made)]
    return Drift(
        columns,
        least,
        alpha,
        find_detectable(sizes, alpha / len(columns), least),
        len(own),
        sizes[0],
        len(made),
        left_out,
        *rows_apart(samples[0], samples[1], _PERMUTATIONS, seed),
    )


def read_tables(folder: Path) -> tuple[pd.DataFrame, Schema]:
    """A release's rows and schema. Raises ConfigError where they are images."""
    table, schema, _ = read_release(folder)
    if isinstance(schema, ImageSchema) or not isinstance(table, pd.DataFrame):
        raise ConfigError(f"{folder}: drift is of tables, and this is a release of images")
    return table, schema


def _errors_of(model: Any, names: tuple[str, ...]) -> list[float | None]:
    """Of each column a bound on its total variation from what was learned from, where told."""
    if not hasattr(type(model), "errors"):
        return [None] * len(names)
    found: list[float | None] = []
    for name in names:
        try:
            told = model.errors([name]).iloc[0]
        except ConfigError:
            # A total, or settled by another column: nobody measured it.
            found.append(None)
            continue
        known = math.isfinite(told["error"]) and told["records"] > 0
        # Half of what all cells may be off together, as a share of all records.
        found.append(min(1.0, float(told["error"] / told["records"]) / 2) if known else None)
    return found


def _cells_of(model: Any) -> dict[str, Bins | Groups]:
    """By column's name, the values that the release does not tell apart, together."""
    encoding = getattr(model.learned, "encoding", None)
    if not isinstance(encoding, TableEncoding):
        return {}
    columns = zip(encoding.schema.modelled, encoding.bins, strict=True)
    return {column.name: bins for column, bins in columns if bins is not None}


def _compare(
    own: Rows,
    made: Rows,
    j: int,
    cells: Bins | Groups | None,
    sizes: tuple[float, float],
    tolerance: float,
) -> tuple[float, float]:
    """A column's distance and its p-value."""
    sides = [rows.values[:, j].copy() for rows in (own, made)]
    tolerance, gap = min(tolerance, 1.0), own.sizes[j]
    for side in sides:
        known = ~np.isnan(side)
        if isinstance(cells, Bins):
            side[known] = cells.encode(side[known])
        elif cells is not None:
            side[known] = cells.encode(side[known].astype(np.int64))
    if not gap:
        return numbers_apart(sides[0], sides[1], sizes, tolerance)
    codes = [np.nan_to_num(side, nan=gap).astype(np.int64) for side in sides]
    first, second = (np.bincount(side, minlength=gap + 1).astype(np.float64) for side in codes)
    return codes_apart(first, second, sizes, tolerance)


def _worth(rows: Rows) -> float:
    """How many independent rows these are worth at the least: a person's are taken for one
    another's copies (Kish's effective size)."""
    counts = np.bincount(rows.people).astype(np.float64)
    return float(counts.sum() ** 2 / (counts**2).sum())


def _scatter(rows: Rows, seed: int) -> Rows:
    """At most so many rows as are compared whole, each with the same chance, no two of a person."""
    rng = np.random.default_rng(seed)
    people = rng.permutation(int(rows.people.max()) + 1)[rows.people]
    order = np.lexsort((rng.random(len(rows)), people))
    step = max(np.bincount(people).max(), -(-len(rows) // _MOST))
    return rows.take(order[rng.integers(step) :: step])
