"""Images beside real ones: PNG by hand, grids, recalls and pixels by hand."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.evaluation.measures.images import grid, image_fidelity, png
from fedsynth.evaluation.models import students
from fedsynth.schema import Categorical
from tests.evaluation.image_samples import DIGIT, SCHEMA, drawn


def decoded(url):
    """The pixels [height, width, channels] of a PNG without filters, by the specification."""
    body = base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True)
    assert body[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(body):
        (length,) = struct.unpack(">I", body[place : place + 4])
        tag, data = body[place + 4 : place + 8], body[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", body[place + 8 + length : place + 12 + length])
        assert check == zlib.crc32(tag + data)
        chunks[tag], place = data, place + 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"] and place == len(body)
    width, height, depth, kind, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8 and rest == [0, 0, 0]
    channels = {0: 1, 2: 3, 6: 4}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8)
    rows = rows.reshape(height, 1 + width * channels)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_png_decodes_to_its_pixels(channels):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    url = "data:image/png;base64," + base64.b64encode(png(pixels)).decode()
    np.testing.assert_array_equal(decoded(url), pixels)


def test_a_grid_has_a_row_for_each_class_and_gaps_between():
    pixels = np.zeros((4, 2, 3), np.uint8)
    pixels[:] = np.array([10, 20, 30, 40])[:, None, None]
    schema = fs.ImageSchema(shape=(2, 3), target=DIGIT)
    sheet = decoded(grid(fs.Images(pixels, np.array([1, 0, 1, 1])), schema))[..., 0]
    assert sheet.shape == (2 * (2 + 1), 10 * (3 + 1))
    assert (sheet[:2, :3] == 20).all() and (sheet[:2, 3:] == 0).all()
    for place, value in enumerate((10, 30, 40)):
        assert (sheet[3:5, 4 * place : 4 * place + 3] == value).all()
    assert (sheet[3:5, 12:] == 0).all() and (sheet[[2, 5]] == 0).all() and sheet[0, 3] == 0


def test_a_grid_without_labels_has_at_most_a_hundred_in_order():
    pixels = np.repeat(np.arange(1, 124, dtype=np.uint8), 4).reshape(123, 2, 2)
    schema = fs.ImageSchema(shape=(2, 2))
    sheet = decoded(grid(fs.Images(pixels), schema))[..., 0]
    np.testing.assert_array_equal(sheet[::3, ::3], np.arange(1, 101).reshape(10, 10))
    few = decoded(grid(fs.Images(pixels[:12]), schema))[..., 0]
    assert few.shape == (6, 30) and list(few[3, ::3]) == [11, 12, *[0] * 8]


def test_ten_images_of_a_class_and_twenty_classes_are_shown():
    target = Categorical(name="kind", values=tuple(f"k{n}" for n in range(25)))
    schema = fs.ImageSchema(shape=(2, 2), target=target)
    labels = np.repeat(np.arange(25), 11)
    sheet = decoded(grid(fs.Images(np.full((275, 2, 2), 9, np.uint8), labels), schema))
    assert sheet.shape == (60, 30, 1)


def test_white_is_white_whatever_the_maximum():
    schema = fs.ImageSchema(shape=(1, 2), maximum=16)
    pixels = np.array([[[0, 8]], [[16, 20]]], np.uint8)
    sheet = decoded(grid(fs.Images(pixels), schema))[..., 0]
    assert list(sheet[0, :6]) == [0, 128, 0, 255, 255, 0]


def test_colours_stay_and_other_channels_show_the_first():
    for channels, shown in ((3, 3), (4, 4), (2, 1), (5, 1)):
        pixels = np.random.default_rng(1).integers(0, 256, (3, 2, 2, channels), dtype=np.uint8)
        schema = fs.ImageSchema(shape=(2, 2, channels))
        sheet = decoded(grid(fs.Images(pixels), schema))
        assert sheet.shape == (3, 30, shown)
        np.testing.assert_array_equal(sheet[:2, 3:5], pixels[1, ..., :shown])


def test_recalls_and_accuracy_by_hand(monkeypatch):
    """Synthetic says (0, 0, 1, 1, 1), real (0, 1, 1, 1, 1); the truth is (0, 0, 0, 1, 1)."""
    answers = iter([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])

    def answered(*_):
        return np.eye(3)[next(answers)]

    monkeypatch.setattr(students, "image_probabilities", answered)
    target = Categorical(name="digit", values=("zero", "one", "two"))
    schema = fs.ImageSchema(shape=(6, 6), target=target)
    test = fs.Images(drawn(5, 0).pixels, np.array([0, 0, 0, 1, 1]))
    train = fs.Images(drawn(3, 1).pixels, np.array([1, 1, 0]))
    steps = []
    found = image_fidelity(
        drawn(4, 2), train, test, schema, progress=lambda *step: steps.append(step)
    )
    assert found.student == pytest.approx({"synthetic": 0.8, "real": 0.6, "majority": 0.4})
    assert [(one.name, one.synthetic, one.real) for one in found.classes] == [
        ("zero", pytest.approx(2 / 3), pytest.approx(1 / 3)),
        ("one", 1, 1),
        ("two", None, None),
    ]
    assert steps == [(0, 2), (1, 2), (2, 2)] and found.notes == ()


def test_pixels_by_hand():
    schema = fs.ImageSchema(shape=(1, 2), maximum=100)
    made = fs.Images(np.array([[[0, 50]], [[100, 50]]], np.uint8))
    real = fs.Images(np.array([[[20, 10]], [[40, 30]]], np.uint8))
    found = image_fidelity(made, real, real, schema)
    # Means .5, .5 against .3, .2; deviations .5, 0 against .1, .1.
    assert found.pixels == pytest.approx({"mean_error": 0.25, "deviation_error": 0.25})
    assert found.student is None and found.classes == ()
    assert "no labels to learn" in found.notes[0]


def test_more_images_than_a_student_takes_are_sampled_and_noted(monkeypatch):
    monkeypatch.setattr("fedsynth.evaluation.measures.images._TRAIN", 30)
    seen = []

    def answered(train, x, seed):
        seen.append(len(train.y))
        return np.full((len(x), 2), 0.5)

    monkeypatch.setattr(students, "image_probabilities", answered)
    found = image_fidelity(drawn(31, 0), drawn(20, 1), drawn(9, 2), SCHEMA)
    assert seen == [30, 20] and "30 images" in found.notes[0]
