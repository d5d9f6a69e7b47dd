"""Scores from counts that carry noise of a known width, each with its standard error.

Everything here is computed from released values. Without noise it is the plain formula. Errors are
root mean squares over simulations with the same noise, those of counts and missing rates its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.federated.distances import distances
from fedsynth.evaluation.federated.recipe import LabelTable, Layout

Floats = NDArray[np.float64]

SURE = 3.0
"""Standard errors above 0 from which a number of records is told from none."""
VAGUE = 0.25
"""Standard error from which a score's 95 % interval is as wide as its whole range."""
DROWNED = 0.5
"""Distance that noise alone would show, uncorrected, from which a correction tells nothing."""
_DRAWS = 200


@dataclass(frozen=True)
class Figure:
    """A value and the standard error that the noise gives it; 0 where there is no noise."""

    value: float
    error: float


@dataclass(frozen=True)
class Scores:
    """How well synthetic rows fit one owner's records, or those of all owners.

    Attributes:
        records: how many there are; None of an owner that did not answer.
        mean_distance, worst_distance: total variation of a column, in [0, 1]: the mean over the
            columns and the largest; much noise draws the largest towards the others.
        worst_column: which that is.
        accuracy, balanced_accuracy: of a classifier trained on the synthetic rows; balanced: over
            the classes that the records have, as far as the noise lets tell.
        auroc: of two classes, ties within a bin of the score counting one half.
        missing: share of cells that are gaps.
        notes: what is None and why.
    """

    name: str
    records: Figure | None
    mean_distance: Figure | None = None
    worst_distance: Figure | None = None
    worst_column: str | None = None
    accuracy: Figure | None = None
    balanced_accuracy: Figure | None = None
    auroc: Figure | None = None
    missing: Figure | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Counts:
    """Released counts: of each column's cells [C_j] and of the label table [classes + 1, outcomes],
    None without one, with the standard deviations of the noise in each cell."""

    columns: tuple[Floats, ...]
    labels: Floats | None
    sigma: float
    label_sigma: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """Scores, and the distance of every column in order, () where they are too vague."""

    scores: Scores
    distances: tuple[Figure, ...]


def estimate(counts: Counts, layout: Layout, name: str) -> Estimate:
    """The scores that counts tell."""
    records = _records(counts)
    value, error = float(records[0]), records[1]
    records_told = Figure(max(value, 0.0), error)
    if value <= SURE * error:
        note = "no records" if error == 0 else "fewer records than the noise lets tell from none"
        return Estimate(Scores(name, records_told, notes=(note,)), ())
    notes: list[str] = []
    mean, columns, place = _distances(counts, layout, records_told, notes)
    worst = columns[place] if mean is not None and columns[place].error <= VAGUE else None
    found = {} if layout.labels is None else _labelled(counts, layout.labels, notes)
    missing = _missing(counts, layout, records_told, notes)
    scores = Scores(
        name,
        records_told,
        mean_distance=mean,
        worst_distance=worst,
        worst_column=None if worst is None else layout.names[place],
        accuracy=found.get("accuracy"),
        balanced_accuracy=found.get("balanced_accuracy"),
        auroc=found.get("auroc"),
        missing=missing,
        notes=tuple(notes),
    )
    return Estimate(scores, columns if mean is not None else ())


def _records(counts: Counts) -> tuple[Floats, float]:
    """The number of records [...] and its standard error: every table tells it, each with noise of
    its own, so they are weighed by their precision."""
    tables = [(c.sum(axis=-1), c.shape[-1] * counts.sigma**2) for c in counts.columns]
    if counts.labels is not None:
        cells = counts.labels.shape[-2] * counts.labels.shape[-1]
        tables.append((counts.labels.sum(axis=(-2, -1)), cells * counts.label_sigma**2))
    if counts.sigma == 0:
        return tables[0][0], 0.0
    precision = sum(1 / variance for _, variance in tables)
    weighed = sum(np.asarray(total) / variance for total, variance in tables)
    return np.asarray(weighed / precision), float(precision**-0.5)


def _distances(
    counts: Counts, layout: Layout, records: Figure, notes: list[str]
) -> tuple[Figure | None, tuple[Figure, ...], int]:
    """The mean distance, that of every column, and which column's is largest."""
    cells = sum(layout.sizes) / len(layout.sizes)
    excess = cells * counts.sigma / records.value / np.sqrt(2 * np.pi)
    found = distances(counts.columns, layout.shares, records.value, records.error, counts.sigma)
    figures = tuple(
        Figure(float(v), float(e)) for v, e in zip(found.values, found.errors, strict=True)
    )
    place = int(found.values.argmax())
    if excess > DROWNED:
        notes.append(f"distances: noise alone would make them {min(excess, 1.0):.2f}")
        return None, (), place
    return told("mean_distance", found.mean, found.mean_error, notes), figures, place


def _missing(counts: Counts, layout: Layout, records: Figure, notes: list[str]) -> Figure | None:
    if not layout.gaps:
        return None
    cells = records.value * len(counts.columns)
    rate = float(sum(column[-1] for column in counts.columns)) / cells
    error = np.hypot(
        counts.sigma * np.sqrt(len(counts.columns)) / cells, rate * records.error / records.value
    )
    return told("missing", min(max(rate, 0.0), 1.0), float(error), notes)


def _labelled(counts: Counts, table: LabelTable, notes: list[str]) -> dict[str, Figure | None]:
    labels, sigma = counts.labels, counts.label_sigma
    assert labels is not None
    sizes = labels[:-1].sum(axis=1)
    total, cells = float(sizes.sum()), table.classes * table.outcomes
    if total <= SURE * sigma * cells**0.5:
        notes.append("classifier: fewer records with a label than can be told from none")
        return {}
    present = sizes > SURE * sigma * table.outcomes**0.5
    if sigma and not present.all():
        notes.append(
            f"balanced_accuracy: over {int(present.sum())} of {len(present)} classes, the others "
            "have fewer records than the noise lets tell from none"
        )
    values = label_scores(labels, table, present)
    if table.ordered and "auroc" not in values:
        notes.append("auroc: only one class is certain to be there")
    rng = np.random.default_rng(1)
    drawn = labels + sigma * rng.standard_normal((_DRAWS, *labels.shape))
    again = label_scores(drawn, table, present)
    errors = {key: float(np.sqrt(((again[key] - values[key]) ** 2).mean())) for key in values}
    # Only now: errors of values that were cut off at 1 would be too small.
    return {
        key: told(key, min(max(float(value), 0.0), 1.0), errors[key], notes)
        for key, value in values.items()
    }


def label_scores(
    labels: Floats, table: LabelTable, present: NDArray[np.bool_]
) -> dict[str, Floats]:
    """Scores [...] of label tables [..., classes + 1, outcomes]; noise may take them out of [0, 1].

    Args:
        present: the classes [classes] that recall is averaged over; AUROC needs both of two.
    """
    known = labels[..., :-1, :]
    sizes, hits = known.sum(axis=-1), (known * table.right).sum(axis=-1)
    found = {"accuracy": hits.sum(axis=-1) / sizes.sum(axis=-1)}
    if present.any():
        found["balanced_accuracy"] = (hits / np.where(present, sizes, 1))[..., present].mean(-1)
    if table.ordered and present.all():
        below, above = known[..., 0, :], known[..., 1, :]
        ranks = np.cumsum(below, axis=-1) - below / 2
        area = (above * ranks).sum(axis=-1)
        found["auroc"] = area / (sizes[..., 0] * sizes[..., 1])
    return found


def told(name: str, value: float, error: float, notes: list[str]) -> Figure | None:
    """A figure, or None and a note where its error leaves nothing to tell."""
    if error <= VAGUE:
        return Figure(value, error)
    notes.append(f"{name}: its standard error, {error:.2g}, leaves nothing to tell")
    return None
