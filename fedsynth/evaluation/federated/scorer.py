"""A scorer made from synthetic rows alone: the cells of each column, and a classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedsynth.data.images import Images
from fedsynth.evaluation.federated.recipe import (
    Codes,
    Floats,
    LabelTable,
    Layout,
    Recipe,
    Records,
    Scorer,
)
from fedsynth.evaluation.models.classifiers import boosting
from fedsynth.evaluation.models.classifiers import has_values as taught
from fedsynth.evaluation.reading.codes import quantile_cuts
from fedsynth.evaluation.reading.labelled import label_features as labelled
from fedsynth.evaluation.reading.rows import Rows
from fedsynth.schema import ImageSchema, Schema

BRIGHTNESS = "brightness"
"""What images have for a column: the mean of an image's pixels."""
_MOST_ROWS = 50_000
"""Synthetic rows that the classifier learns from, at most."""
_SCORE_BINS = 10
"""Quantile bins of the score of the last of two classes."""


@lru_cache(maxsize=4)
def scorer_of(recipe: Recipe) -> Scorer:
    """The scorer that a recipe makes; the same for everybody who has the synthetic rows."""
    made = recipe.synthetic
    if isinstance(recipe.schema, Schema):
        assert isinstance(made, Rows)
        return _table_scorer(recipe.schema, made, recipe)
    assert isinstance(made, Images)
    return _image_scorer(recipe.schema, made, recipe)


@dataclass(frozen=True, eq=False)
class _Cells:
    """How column j of a table is cut: into kept codes and the rest, or at rising numbers."""

    j: int
    discrete: bool
    cuts: Floats
    rest: bool

    @classmethod
    def of(cls, made: Rows, j: int, bins: int) -> _Cells:
        known = made.values[~np.isnan(made.values[:, j]), j]
        if made.sizes[j]:
            declared = made.sizes[j] - 1
            counts = np.bincount(known.astype(np.int64), minlength=declared)[:declared]
            kept = np.sort(np.argsort(-counts, kind="stable")[:bins])
            return cls(j, True, kept.astype(np.float64), declared > bins)
        return cls(j, False, quantile_cuts(known, bins), False)

    @property
    def size(self) -> int:
        """Cells, the last two for values outside the schema and for gaps."""
        inside = len(self.cuts) + (self.rest if self.discrete else 1)
        return inside + 2

    def codes(self, rows: Rows) -> Codes:
        values, column = rows.values[:, self.j], rows.schema.observed[self.j]
        gap = np.isnan(values)
        found = np.searchsorted(self.cuts, values, side="left" if self.discrete else "right")
        if self.discrete and len(self.cuts):
            near = np.minimum(found, len(self.cuts) - 1)
            found = np.where(self.cuts[near] == values, near, len(self.cuts))
        # A gap that the schema does not allow is a gap all the same; what cannot be read is not.
        strange = rows.outside[:, self.j] & (~gap | column.missing)
        if self.discrete:
            # What became `other` is there.
            strange = values == rows.sizes[self.j] - 1
        codes: Codes = np.where(gap, self.size - 1, found).astype(np.int64)
        return np.where(strange, self.size - 2, codes)


def _shares(codes: Codes, sizes: tuple[int, ...]) -> tuple[Floats, ...]:
    return tuple(
        np.bincount(column, minlength=size) / len(codes)
        for column, size in zip(codes.T, sizes, strict=True)
    )


def _table_scorer(schema: Schema, made: Rows, recipe: Recipe) -> Scorer:
    columns = [_Cells.of(made, j, recipe.bins) for j in range(len(made.names))]
    target = made.names.index(schema.target) if schema.target is not None else -1

    def cells(records: Records) -> Codes:
        assert isinstance(records, Rows)
        return np.column_stack([column.codes(records) for column in columns])

    def truths(records: Records) -> Codes:
        assert isinstance(records, Rows)
        known = np.nan_to_num(records.values[:, target], nan=schema.classes)
        return np.minimum(known, schema.classes).astype(np.int64)

    sizes = tuple(column.size for column in columns)
    shares = _shares(cells(made), sizes)
    why = _why_not(schema)
    if why is None:
        raw = _raw_scores(made, truths(made), target, recipe.seed)
        if raw is None:
            why = "no scores of a classifier: no synthetic row has a label, or anything to learn by"
        else:
            labels, outcomes = _label_table(raw, made, schema.classes)
            return Scorer(
                Layout(made.names, sizes, True, shares, labels, None), cells, outcomes, truths
            )
    return Scorer(Layout(made.names, sizes, True, shares, None, why), cells, None, truths)


def _why_not(schema: Schema) -> str | None:
    if schema.target is None:
        return "no scores of a classifier: the schema has no target"
    if not schema.classes:
        return f"no scores of a classifier: the target {schema.target!r} is a number"
    if len(schema.observed) == 1:
        return "no scores of a classifier: the schema has no column besides the target"
    return None


def _raw_scores(
    made: Rows, truths: Codes, target: int, seed: int
) -> Callable[[Rows], Floats] | None:
    """A function from rows to their predicted class [n] or, of two classes, the log-odds of the
    second; None where there is nothing to learn."""
    classes = made.sizes[target] - 1
    usable = np.flatnonzero(truths < classes)
    if len(usable) > _MOST_ROWS:
        drawn = np.random.default_rng(seed).choice(len(usable), _MOST_ROWS, replace=False)
        usable = usable[np.sort(drawn)]
    x, y = made.values[usable], truths[usable]
    known = taught(x)
    known[target] = False
    if not known.any():
        return None
    seen = np.unique(y)
    if len(seen) == 1:
        constant = float(seen[0]) if classes != 2 else 2.0 * seen[0] - 1
        return lambda rows: np.full(len(rows), constant)
    sizes = np.array(made.sizes)[known].tolist()
    model = boosting(sizes, classes, seed).fit(x[:, known], y)

    def raw(rows: Rows) -> Floats:
        if len(rows) == 0:
            return np.zeros(0)
        found = np.asarray(model.decision_function(rows.values[:, known]), np.float64)
        if classes == 2:
            return found
        # Of more classes, only two may have occurred.
        place = found.argmax(axis=1) if found.ndim == 2 else (found > 0).astype(np.int64)
        return np.asarray(model.classes_[place], np.float64)

    return raw


def _label_table(
    raw: Callable[[Rows], Floats], made: Rows, classes: int
) -> tuple[LabelTable, Callable[[Records], Codes]]:
    if classes != 2:

        def classed(records: Records) -> Codes:
            assert isinstance(records, Rows)
            return raw(records).astype(np.int64)

        return LabelTable(classes, np.eye(classes, dtype=bool), False), classed
    # The cut between the two answers must be one of the bins' bounds, or accuracy would be lost.
    answer = np.nextafter(0.0, 1.0)
    cuts = np.union1d(
        quantile_cuts(raw(made.take(np.arange(min(len(made), _MOST_ROWS)))), _SCORE_BINS), [answer]
    )

    def binned(records: Records) -> Codes:
        assert isinstance(records, Rows)
        return np.searchsorted(cuts, raw(records), side="right").astype(np.int64)

    positive = np.arange(len(cuts) + 1) > np.searchsorted(cuts, answer)
    return LabelTable(2, np.stack([~positive, positive]), True), binned


def _image_scorer(schema: ImageSchema, made: Images, recipe: Recipe) -> Scorer:
    cuts = quantile_cuts(_brightness(made), recipe.bins)

    def cells(records: Records) -> Codes:
        assert isinstance(records, Images)
        return np.searchsorted(cuts, _brightness(records), side="right")[:, None].astype(np.int64)

    def truths(records: Records) -> Codes:
        assert isinstance(records, Images) and records.labels is not None
        return records.labels

    sizes = (len(cuts) + 1,)
    shares = _shares(cells(made), sizes)
    if not schema.classes:
        why = "no scores of a classifier: the schema has no target"
        return Scorer(Layout((BRIGHTNESS,), sizes, False, shares, None, why), cells, None, truths)
    answers = _image_classifier(schema, made, recipe.seed)
    table = LabelTable(schema.classes, np.eye(schema.classes, dtype=bool), False)
    return Scorer(Layout((BRIGHTNESS,), sizes, False, shares, table, None), cells, answers, truths)


def _brightness(images: Images) -> Floats:
    """Mean pixel of each image [n]: whole numbers are added, so that the order cannot matter."""
    pixels = int(np.prod(images.pixels.shape[1:]))
    totals = images.pixels.reshape(len(images), pixels).sum(axis=1, dtype=np.int64)
    brightness: Floats = totals / pixels
    return brightness


def _image_classifier(schema: ImageSchema, made: Images, seed: int) -> Callable[[Records], Codes]:
    """The student network, trained on synthetic images; the answer to each image."""
    from fedsynth.evaluation.models import students

    if len(made) > _MOST_ROWS:
        drawn = np.random.default_rng(seed).choice(len(made), _MOST_ROWS, replace=False)
        made = made.take(np.sort(drawn))
    answer = students.image_classifier(labelled(made, schema, "synthetic"), seed)

    def answers(records: Records) -> Codes:
        assert isinstance(records, Images)
        if len(records) == 0:
            return np.zeros(0, np.int64)
        return answer(labelled(records, schema, "images").x)

    return answers
