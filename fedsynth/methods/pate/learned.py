"""What a fit of PATE leaves behind: a student, and rows for it to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import ReleaseError
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.pate.sources import Drawn, Rows, Source, size_of, source_of
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.schema import ImageSchema, Schema

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Of rows that are classified at once: 64 MB.
_CELLS = 2**23
# Rows for each row wanted, and in all, that labelled rows are chosen among.
_CHOICE, _LEAST_CHOICE, _MOST_CHOICE = 10, 5_000, 100_000

# Shares of votes are torn where teachers of few records are, and denoising draws them together: how
# likely a class is lies further from even. Measured on one split of Adult, 1 to 8 tried.
_SHARPNESS = 4.0


@dataclass(frozen=True, eq=False)
class Learned:
    """All of it made of released values and public rows.

    Attributes:
        inputs: what the student sees.
        source: of rows without labels.
        student: a classifier that gives the shares of votes, were all classes equally frequent.
        frequencies: of the classes [classes]: those of the released statistics, or where there are
            none, what the student makes of the public rows.
    """

    inputs: Inputs
    source: Source
    student: Classifier
    frequencies: Floats

    @staticmethod
    def of(inputs: Inputs, source: Source, student: Classifier) -> Learned:
        if isinstance(source, Drawn):
            return Learned(inputs, source, student, source.model.frequencies)
        everything = source.candidates(0, np.random.default_rng(0))
        even = np.full(inputs.classes, 1 / inputs.classes)
        said = Learned(inputs, source, student, even)._said(everything)
        return Learned(inputs, source, student, _weights(inputs, said).mean(axis=0))

    def _said(self, rows: Rows) -> Floats:
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
        found = shares * (self.frequencies if isinstance(self.source, Drawn) else 1.0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def draw(self, labels: Whole, rng: np.random.Generator) -> Rows:
        """Rows of these classes, by Bayes' rule: of many rows each is chosen as often as the
        student gives it the class. An image is of its likeliest class, where it has any."""
        count = min(max(_CHOICE * len(labels), _LEAST_CHOICE), _MOST_CHOICE)
        rows = self.source.candidates(count, rng)
        weights = _weights(self.inputs, self._said(rows))
        chosen = np.zeros(len(labels), np.int64)
        for label in np.unique(labels):
            at = np.flatnonzero(labels == label)
            own = weights[:, label]
            own = own if own.sum() > 0 else np.ones(size_of(rows))
            chosen[at] = rng.choice(len(own), len(at), p=own / own.sum())
        return rows.take(chosen)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing private."""
        return {
            **self.source.to_arrays(),
            "student": self.student.to_vector(),
            "frequencies": self.frequencies,
        }

    @staticmethod
    def from_arrays(schema: Schema | ImageSchema, arrays: Mapping[str, NDArray[Any]]) -> Learned:
        """The inverse of :meth:`to_arrays`. Raises ReleaseError for arrays that do not fit."""
        inputs = Inputs(schema)
        try:
            vector = np.asarray(arrays["student"], np.float64)
            frequencies = np.asarray(arrays["frequencies"], np.float64)
        except (KeyError, TypeError, ValueError):
            raise ReleaseError("pate: the model's arrays are damaged") from None
        fits = frequencies.shape == (inputs.classes,) and np.isfinite(frequencies).all()
        if not fits or (frequencies < 0).any() or abs(frequencies.sum() - 1) > 1e-6:
            raise ReleaseError("pate: the frequencies are not those of the schema's classes")
        student = Classifier.from_vector(vector, inputs.width, inputs.classes)
        return Learned(inputs, source_of(schema, arrays), student, frequencies)


def _weights(inputs: Inputs, probable: Floats) -> Floats:
    """How much a row is of every class [n, classes]: an image shows its class, a row rarely."""
    if isinstance(inputs.schema, ImageSchema):
        return np.asarray(np.eye(inputs.classes)[probable.argmax(axis=1)])
    return probable


def images_of(rows: Rows, labels: Whole) -> Images:
    """Labelled images."""
    assert isinstance(rows, Images)
    return Images(rows.pixels, labels)
