"""What a fit of PATE leaves behind: a student, and rows for it to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.codec import GIVEN, Named
from fedsynth.data.images import Images
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.pate.sources import Drawn, Public, Rows, size_of
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.drawing import Columns, draw_table
from fedsynth.methods.sampling.labels import demand_shares, draw_labels
from fedsynth.schema import ImageSchema
from fedsynth.views import Outlined

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Of rows that are classified at once: 64 MB.
_CELLS = 2**23
# Rows for each row wanted, and in all, that labelled rows are chosen among.
_CHOICE, _LEAST_CHOICE, _MOST_CHOICE = 10, 5_000, 100_000

# Shares of votes are torn where teachers of few records are, and denoising draws them together: how
# likely a class is lies further from even. Measured on one split of Adult, 1 to 8 tried.
_SHARPNESS = 4.0


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Outlined):
    """All of it made of released values and public rows.

    Attributes:
        inputs: what the student sees.
        source: of rows without labels.
        vector: of the student: a classifier that gives the shares of votes, were all classes
            equally frequent.
        frequencies: of the classes [classes]: those of the released statistics, or where there are
            none, what the student makes of the public rows.
    """

    inputs: Annotated[Inputs, GIVEN]
    source: Public | Drawn
    vector: Annotated[Floats, Named("student")]
    frequencies: Floats

    @staticmethod
    def of(inputs: Inputs, source: Public | Drawn, student: Classifier) -> Learned:
        vector = student.to_vector()
        if isinstance(source, Drawn):
            return Learned(inputs, source, vector, source.model.frequencies)
        everything = source.candidates(0, np.random.default_rng(0))
        even = np.full(inputs.classes, 1 / inputs.classes)
        predicted = Learned(inputs, source, vector, even)._predict(everything)  # noqa: SLF001
        return Learned(inputs, source, vector, _weights(inputs, predicted).mean(axis=0))

    @cached_property
    def student(self) -> Classifier:
        return Classifier.from_vector(self.vector, self.inputs.width, self.inputs.classes)

    def check(self) -> None:
        demand_shares(self.frequencies, self.inputs.classes)
        self.source.check(self.inputs.schema)
        _ = self.student

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Labelled rows that meet all conditions, those on other columns by drawing again."""
        schema = self.inputs.schema
        if isinstance(schema, ImageSchema):
            rng = np.random.default_rng(seed)
            labels = draw_labels(schema, self.frequencies, rows, where, proportions, rng)
            assert labels is not None
            drawn = self.choose(labels, rng)
            assert isinstance(drawn, Images)
            return Images(drawn.pixels, labels)

        def columns(labels: Whole | None, count: int, rng: np.random.Generator) -> Columns:
            assert labels is not None
            drawn = self.choose(labels, rng)
            assert not isinstance(drawn, Images)
            return drawn.columns

        return draw_table(schema, self.frequencies, rows, where, proportions, seed, columns)

    def _predict(self, rows: Rows) -> Floats:
        """:meth:`probabilities` of rows that are not encoded yet, some at a time: of wide tables
        all cells of many rows do not fit in memory."""
        step = max(1, _CELLS // self.inputs.width)
        parts = [
            self.probabilities(self.inputs.matrix(rows.take(np.arange(at, stop))))
            for at in range(0, size_of(rows), step)
            for stop in (min(at + step, size_of(rows)),)
        ]
        return np.concatenate(parts)

    def probabilities(self, rows: Floats) -> Floats:
        """Of every class [n, classes], for rows [n, width]: sharpened shares times frequencies."""
        shares = self.student.probabilities(rows) ** _SHARPNESS
        weighted = shares * (self.frequencies if isinstance(self.source, Drawn) else 1.0)
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))

    def choose(self, labels: Whole, rng: np.random.Generator) -> Rows:
        """Rows of these classes, by Bayes' rule: of many rows each is chosen as often as the
        student gives it the class. An image is of its likeliest class, where it has any."""
        count = min(max(_CHOICE * len(labels), _LEAST_CHOICE), _MOST_CHOICE)
        rows = self.source.candidates(count, rng)
        weights = _weights(self.inputs, self._predict(rows))
        chosen = np.zeros(len(labels), np.int64)
        for label in np.unique(labels):
            at = np.flatnonzero(labels == label)
            column = weights[:, label]
            column = column if column.sum() > 0 else np.ones(size_of(rows))
            chosen[at] = rng.choice(len(column), len(at), p=column / column.sum())
        return rows.take(chosen)


def _weights(inputs: Inputs, probable: Floats) -> Floats:
    """How much a row is of every class [n, classes]: an image shows its class, a row rarely."""
    if isinstance(inputs.schema, ImageSchema):
        return np.asarray(np.eye(inputs.classes)[probable.argmax(axis=1)])
    return probable
