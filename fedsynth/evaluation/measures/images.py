"""Synthetic images beside real ones: a student network, its recall by class, pixels.

The student is that of Margaritis (paper 001, section 4.4.3): trained on synthetic images, tested on
real ones that the generator never saw.
"""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.evaluation.reading.labelled import Labelled, label_features
from fedsynth.evaluation.reading.notes import Note
from fedsynth.evaluation.reading.scores import Scores, answer_always, score
from fedsynth.evaluation.reading.steps import Steps, silent
from fedsynth.schema import ImageSchema

_TRAIN = 20_000
_SIDE = 10
"""Images of a grid's row, and of its column where there are no classes."""


@dataclass(frozen=True)
class ClassRecall:
    """Share of a class's real test images that the student trained on either rows reads right;
    None for a class that the test images lack."""

    name: str
    synthetic: float | None
    real: float | None


@dataclass(frozen=True)
class ImageFidelity:
    """Synthetic images beside real ones.

    student: accuracy in [0, 1] on real test images of the student trained on "synthetic" and on
        "real" images, and of the commonest class ("majority"); None without labels.
    classes: recall by class.
    grid: images as PNG data URLs, a row a class: "synthetic", and "real" ones held out.
    pixels: mean over pixels of the absolute difference of means ("mean_error") and of standard
        deviations ("deviation_error"), white being 1.
    notes: what was sampled or left out, as sentences.
    """

    student: dict[str, float] | None
    classes: tuple[ClassRecall, ...]
    grid: dict[str, str]
    pixels: dict[str, float]
    notes: tuple[Note, ...]


def image_fidelity(
    synthetic: Images,
    train: Images,
    real: Images,
    schema: ImageSchema,
    *,
    seed: int = 0,
    progress: Steps = silent,
) -> ImageFidelity:
    """Synthetic images against `real` ones, beside the other real ones in `train`.

    Raises:
        DataError: images that do not fit the schema, or lack the labels that it declares.
    """
    notes: list[Note] = []
    student: dict[str, float] | None = None
    classes: tuple[ClassRecall, ...] = ()
    if schema.classes > 1:
        tables = [
            label_features(part, schema, where)
            for part, where in ((synthetic, "synthetic"), (train, "train"), (real, "real"))
        ]
        if max(len(synthetic), len(train)) > _TRAIN:
            text = f"trained on {_TRAIN:,} images of each set."
            notes.append(Note("student", "Student network", text))
        student, classes = _students(tables, schema, seed, progress)
    else:
        text = "the images carry no labels to learn."
        notes.append(Note("student", "Student network", text))
    return ImageFidelity(
        student=student,
        classes=classes,
        grid={"synthetic": grid(synthetic, schema), "real": grid(real, schema)},
        pixels=_pixels(synthetic, real, schema),
        notes=tuple(notes),
    )


def _students(
    tables: list[Labelled],
    schema: ImageSchema,
    seed: int,
    progress: Steps,
) -> tuple[dict[str, float], tuple[ClassRecall, ...]]:
    from fedsynth.evaluation.models.students import image_probabilities

    made, train, test = tables
    progress(0, 2)
    answers = []
    for part in (made, train):
        answers.append(image_probabilities(_sample(part, seed), test.x, seed))
        progress(len(answers), 2)
    majority = int(np.bincount(train.y, minlength=train.classes).argmax())
    scores: list[Scores] = [score(answer, test.y) for answer in answers]
    trivial = score(answer_always(majority, len(test.y), test.classes), test.y)
    names = [str(value) for value in schema.target.categories] if schema.target else []
    recalls = [_recalls(answer, test) for answer in answers]
    classes = tuple(
        ClassRecall(name, recalls[0][code], recalls[1][code]) for code, name in enumerate(names)
    )
    student = {
        "synthetic": scores[0].accuracy,
        "real": scores[1].accuracy,
        "majority": trivial.accuracy,
    }
    return student, classes


def _sample(images: Labelled, seed: int) -> Labelled:
    if len(images.y) <= _TRAIN:
        return images
    drawn = np.random.default_rng(seed).choice(len(images.y), _TRAIN, replace=False)
    return Labelled(images.x[drawn], images.y[drawn], images.classes)


def _recalls(answer: NDArray[np.float64], test: Labelled) -> list[float | None]:
    right = answer.argmax(axis=1) == test.y
    return [
        float(right[test.y == code].mean()) if (test.y == code).any() else None
        for code in range(test.classes)
    ]


def _pixels(synthetic: Images, real: Images, schema: ImageSchema) -> dict[str, float]:
    means, deviations = [], []
    for part in (synthetic, real):
        means.append(part.pixels.mean(axis=0) / schema.maximum)
        deviations.append(part.pixels.std(axis=0, dtype=np.float32) / schema.maximum)
    return {
        "mean_error": float(np.abs(means[0] - means[1]).mean()),
        "deviation_error": float(np.abs(deviations[0] - deviations[1]).mean()),
    }


def grid(images: Images, schema: ImageSchema) -> str:
    """Up to ten images a class, a row each, or a hundred without labels, as a PNG data URL."""
    if images.labels is None or schema.classes < 2:
        rows = [np.arange(k, min(k + _SIDE, len(images))) for k in range(0, len(images), _SIDE)]
        rows = rows[:_SIDE]
    else:
        rows = [np.flatnonzero(images.labels == code)[:_SIDE] for code in range(schema.classes)]
        rows = rows[: 2 * _SIDE]
    height, width, channels = (*schema.shape, 1)[:3]
    sheet = np.zeros((len(rows), height + 1, _SIDE, width + 1, channels), np.uint8)
    for place, chosen in enumerate(rows):
        shown = images.pixels[chosen].reshape(len(chosen), height, width, channels)
        scaled = np.rint(np.minimum(shown, schema.maximum) * (255 / schema.maximum))
        sheet[place, :height, : len(chosen), :width] = scaled.transpose(1, 0, 2, 3)
    plain = sheet.reshape(len(rows) * (height + 1), _SIDE * (width + 1), channels)
    if channels == 2 or channels > 4:
        plain = plain[:, :, :1]
    return "data:image/png;base64," + base64.b64encode(png(plain)).decode()


def png(pixels: NDArray[np.uint8]) -> bytes:
    """An 8-bit PNG of pixels [height, width, 1, 3 or 4] (W3C, PNG specification, third edition)."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.concatenate(
        [np.zeros((height, 1), np.uint8), pixels.reshape(height, width * channels)], axis=1
    )
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    chunks = [
        struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))
        for tag, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
