"""How like the real rows synthetic rows are: columns, pairs, marginals, what tells them apart.

Everything is measured against real rows that the generator never saw, beside two references: other
real rows, which no release can beat, and real columns shuffled each on its own, which know nothing
of how columns hang together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.evaluation.measures.coherence import MOST_PAIRS, Coherence, coherence
from fedsynth.evaluation.measures.columns import ColumnScore, column_scores
from fedsynth.evaluation.measures.cutting import Cut
from fedsynth.evaluation.measures.detection import MOST, Detection, attempt_all, detection
from fedsynth.evaluation.measures.marginals import MarginalError, marginal_errors, pair_distances
from fedsynth.evaluation.measures.quality import (
    MOST_COLUMNS,
    MOST_ROWS,
    Diagnostic,
    Quality,
    diagnostic,
    quality,
)
from fedsynth.evaluation.reading.codes import Codes, encode_tables
from fedsynth.evaluation.reading.notes import Note
from fedsynth.evaluation.reading.rows import Rows, shuffle_columns
from fedsynth.evaluation.reading.steps import Steps, silent

_LEAST = 50
"""Synthetic rows that are compared in any case, if there are so many."""
_SET_ROWS = 200_000
"""Rows of a table in which sets of columns are counted."""
_MAP = 60
"""Columns in the map of pairs."""
_CHARTS = 500
"""Pairs of columns that can be looked at in a chart."""
_TELLING = "Telling synthetic from real"


@dataclass(frozen=True)
class JointTables:
    """Pairs of columns, coarsely: shares of rows in ten-thousandths.

    labels: what each column's cells are called. places: two columns [pairs, 2], the first before
        the second. real, synthetic: a row of shares a pair, the second column's cells together.
    """

    labels: tuple[tuple[str, ...], ...]
    places: tuple[tuple[int, int], ...]
    real: tuple[tuple[int, ...], ...]
    synthetic: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Pairs:
    """The map of pairs; matrices [d][d] of total variation, a column's own on the diagonal.

    names: the columns shown. distance: of synthetic rows. reference: of other real rows.
    correlation: mean over pairs of numbers of 1 - |r - s| / 2 (SDMetrics' CorrelationSimilarity).
    contingency: mean over pairs of categories, 1,000 of them at most, of 1 - total variation, where
        a gap is a category and so are all undeclared values together (ContingencySimilarity).
    Either is None where no pair has one.
    joint: of the pairs furthest off, 500 at most, what a chart shows.
    """

    names: tuple[str, ...]
    distance: tuple[tuple[float, ...], ...]
    reference: tuple[tuple[float, ...], ...]
    correlation: float | None
    contingency: float | None
    joint: JointTables


@dataclass(frozen=True)
class Marginal(MarginalError):
    """The error of synthetic rows beside the mean one of other real rows (`real`) and of
    independent columns (`trivial`)."""

    real: float
    trivial: float


@dataclass(frozen=True)
class Fidelity:
    """How like the real rows synthetic rows are.

    pairs, coherence: None of a single column.
    distinguished: AUROC by which gradient boosting tells independent columns from real rows; None
        with fewer than 20 rows.
    notes: what was sampled or left out, as sentences.
    """

    columns: tuple[ColumnScore, ...]
    pairs: Pairs | None
    marginals: tuple[Marginal, ...]
    coherence: Coherence | None
    detection: tuple[Detection, ...]
    distinguished: float | None
    quality: Quality
    diagnostic: Diagnostic
    notes: tuple[Note, ...]


def fidelity(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    seed: int = 0,
    progress: Steps = silent,
) -> Fidelity:
    """Synthetic rows against `real`, beside the other real rows `train` and their columns shuffled.

    Distances of samples grow as samples shrink, so as many synthetic rows are compared as other
    real ones: of the larger table so many are drawn. Values outside the schema are sought in all.

    Sets of columns are counted in at most 200,000 rows of each table; triples are all of them, or
    1,000 drawn by the seed; the map of pairs shows the 60 columns that are furthest off.
    """
    progress(0, 5)
    sense = None
    if len(real.names) > 1:
        ours, others, theirs = (r.sample(_SET_ROWS, seed) for r in (synthetic, train, real))
        sense = coherence(ours, others, theirs, seed)
    every, size = synthetic, min(len(synthetic), max(len(train), _LEAST))
    notes = _note_sizes(synthetic, train, size)
    synthetic, train = synthetic.sample(size, seed), train.sample(size, seed)
    alone = shuffle_columns(train, seed)
    columns = tuple(
        replace(column, outside=float(broken))
        for column, broken in zip(
            column_scores(synthetic, train, real), every.outside.mean(axis=0), strict=True
        )
    )
    progress(1, 5)
    few = [rows.sample(_SET_ROWS, seed) for rows in (real, synthetic, train, alone)]
    codes = encode_tables(few)
    orders = range(1, min(3, len(real.names)) + 1)
    marginals = tuple(_marginal(codes, real.names, order, seed) for order in orders)
    progress(2, 5)
    pairs = _pairs(codes, few[0], few[1], seed) if len(real.names) > 1 else None
    progress(3, 5)
    told = detection(synthetic, train, real, seed)
    beside = attempt_all(alone, real, seed)
    progress(4, 5)
    scores = quality(synthetic, train, alone, real)
    validity = diagnostic(synthetic, real)
    progress(5, 5)
    notes += _note_limits(synthetic, train, real, marginals, pairs, told)
    return Fidelity(
        columns=columns,
        pairs=pairs,
        marginals=marginals,
        coherence=sense,
        detection=told,
        distinguished=beside[-1].auroc if beside else None,
        quality=scores,
        diagnostic=validity,
        notes=tuple(notes),
    )


def _note_sizes(synthetic: Rows, train: Rows, size: int) -> list[Note]:
    if max(len(synthetic), len(train)) <= size:
        return []
    text = (
        f"of {len(synthetic):,} synthetic and {len(train):,} other real rows {size:,} each are "
        "compared at most, since fewer rows lie further off by chance alone."
    )
    return [Note("fidelity", "Fidelity", text)]


def _note_limits(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    marginals: tuple[Marginal, ...],
    pairs: Pairs | None,
    told: tuple[Detection, ...],
) -> list[Note]:
    size, columns = min(len(synthetic), len(real)), len(real.names)
    notes: list[Note] = []
    if max(map(len, (real, synthetic, train))) > _SET_ROWS:
        text = f"counted in {_SET_ROWS:,} rows of each table at most."
        notes.append(Note("marginals", "Marginals and pairs", text))
    notes += [
        Note(
            "marginals",
            f"Marginals of {error.order} columns",
            f"{error.sets:,} sets drawn at random.",
        )
        for error in marginals
        if error.sets < math.comb(columns, error.order)
    ]
    if pairs is not None and len(pairs.names) < columns:
        text = f"the map shows the {_MAP} of {columns} columns that are furthest off."
        notes.append(Note("pairs", "Pairs", text))
    if math.comb(columns, 2) > MOST_PAIRS:
        text = f"sought in {MOST_PAIRS:,} pairs of columns drawn at random."
        notes.append(Note("coherence", "Rows that make sense", text))
    if not told:
        notes.append(Note("detection", _TELLING, f"{size} rows are too few to try."))
    elif size > MOST:
        notes.append(Note("detection", _TELLING, f"tried on {MOST:,} rows of each table."))
    if max(len(synthetic), len(real)) > MOST_ROWS:
        text = f"given {MOST_ROWS:,} rows of each table at most."
        notes.append(Note("quality", "SDMetrics", text))
    if columns > MOST_COLUMNS:
        text = f"given {MOST_COLUMNS} of the {columns} columns."
        notes.append(Note("quality", "SDMetrics", text))
    empty = [
        name
        for j, name in enumerate(real.names)
        if any(np.isnan(rows.values[:, j]).all() for rows in (real, synthetic))
    ]
    if empty:
        text = f"left out columns without a value: {', '.join(empty[:10])}."
        notes.append(Note("quality", "SDMetrics", text))
    return notes


def _marginal(codes: Codes, names: tuple[str, ...], order: int, seed: int) -> Marginal:
    ours, real, trivial = marginal_errors(codes, names, order, seed=seed)
    return Marginal(
        order=order,
        mean=ours.mean,
        worst=ours.worst,
        worst_columns=ours.worst_columns,
        sets=ours.sets,
        real=real.mean,
        trivial=trivial.mean,
    )


def _pairs(codes: Codes, real: Rows, synthetic: Rows, seed: int) -> Pairs:
    shown = np.arange(len(codes.sizes))
    if len(shown) > _MAP:
        own = np.array(
            [marginal_errors(_select(codes, [j]), ("",), 1)[0].mean for j in range(len(shown))]
        )
        shown = np.sort(np.argsort(-own, kind="stable")[:_MAP])
    ours, theirs, _ = pair_distances(_select(codes, shown.tolist()))
    return Pairs(
        names=tuple(real.names[j] for j in shown),
        distance=tuple(map(tuple, ours.tolist())),
        reference=tuple(map(tuple, theirs.tolist())),
        correlation=correlation_similarity(real, synthetic),
        contingency=_contingency(codes, real.sizes, seed),
        joint=_join(ours, shown, real, synthetic),
    )


def _join(
    distance: NDArray[np.float64], shown: NDArray[np.intp], real: Rows, synthetic: Rows
) -> JointTables:
    """Tables of the pairs that are furthest off, by columns of ten cells or so."""
    cuts = [Cut(real, int(j), alone=10, apart=9) for j in shown]
    codes = [[cut.codes(rows) for cut in cuts] for rows in (real, synthetic)]
    used = [np.unique(np.concatenate(both)) for both in zip(*codes, strict=True)]
    first, second = np.triu_indices(len(shown), 1)
    order = np.argsort(-distance[first, second], kind="stable")[:_CHARTS]
    places = sorted(zip(first[order].tolist(), second[order].tolist(), strict=True))
    tables: list[list[tuple[int, ...]]] = [[], []]
    for of, own in zip(tables, codes, strict=True):
        for i, j in places:
            wide = len(used[j])
            cells = np.searchsorted(used[i], own[i]) * wide + np.searchsorted(used[j], own[j])
            counts = np.bincount(cells, minlength=len(used[i]) * wide)
            of.append(tuple(np.rint(10_000 * counts / len(cells)).astype(int).tolist()))
    labels = tuple(
        tuple(cut.label(int(code)) for code in own) for cut, own in zip(cuts, used, strict=True)
    )
    return JointTables(labels, tuple(places), tuple(tables[0]), tuple(tables[1]))


def _select(codes: Codes, columns: list[int]) -> Codes:
    return Codes(tuple(table[columns] for table in codes.tables), codes.sizes[columns])


def _contingency(codes: Codes, sizes: tuple[int, ...], seed: int) -> float | None:
    categories = [j for j, size in enumerate(sizes) if size]
    if len(categories) < 2:
        return None
    names = tuple(map(str, categories))
    return 1 - marginal_errors(_select(codes, categories), names, 2, seed=seed)[0].mean


def correlation_similarity(real: Rows, synthetic: Rows) -> float | None:
    """Mean over pairs of numbers of 1 - |r - s| / 2, Pearson's r in real and s in synthetic rows.

    A pair counts the rows that have both values; pairs with one that does not vary have none.
    """
    numbers = [j for j, size in enumerate(real.sizes) if size == 0]
    if len(numbers) < 2:
        return None
    upper = np.triu_indices(len(numbers), 1)
    matrices = [
        np.asarray(pd.DataFrame(rows.values[:, numbers]).corr())[upper]
        for rows in (real, synthetic)
    ]
    similar = 1 - np.abs(matrices[0] - matrices[1]) / 2
    known = similar[~np.isnan(similar)]
    return float(known.mean()) if len(known) else None
