"""Images beside real ones: PNG by hand, grids, recalls, attacks and neighbours by hand."""

from __future__ import annotations

import base64
import json
import struct
import zlib

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.neighbours import QUANTILES
from fedsynth.evaluation.measures import pictures
from fedsynth.evaluation.measures.pictures import (
    grid,
    image_fidelity,
    image_membership,
    image_neighbours,
    png,
)
from fedsynth.evaluation.models import students
from fedsynth.schema import Categorical

DIGIT = Categorical(name="digit", values=("zero", "one"))
SCHEMA = fs.ImageSchema(shape=(6, 6), target=DIGIT)


def drawn(rows, seed, *, shape=(6, 6), maximum=255, labels=True):
    """An independent sample: the upper half is light in one class, the left half in the other."""
    rng = np.random.default_rng([5, seed])
    y = rng.integers(0, 2, rows)
    base = np.zeros((2, *shape))
    base[0, :3], base[1, :, :3] = 0.7, 0.7
    pixels = np.clip(base[y] + rng.normal(0, 0.15, (rows, *shape)), 0, 1)
    return fs.Images((pixels * maximum).astype(np.uint8), y if labels else None)


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
    assert steps == [(1, 2), (2, 2)] and found.notes == ()


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
    monkeypatch.setattr("fedsynth.evaluation.measures.pictures._TRAIN", 30)
    seen = []

    def answered(train, x, seed):
        seen.append(len(train.y))
        return np.full((len(x), 2), 0.5)

    monkeypatch.setattr(students, "image_probabilities", answered)
    found = image_fidelity(drawn(31, 0), drawn(20, 1), drawn(9, 2), SCHEMA)
    assert seen == [30, 20] and "30 images" in found.notes[0]


def attacks(made, train, real, schema=SCHEMA, seed=0):
    return image_membership(made, train, real, schema, seed)


def test_a_copy_of_images_is_caught_by_every_attack():
    train = drawn(150, 2)
    found = attacks(train.take(np.arange(150)[::-1]), train, drawn(150, 0))
    assert [one.name for one in found] == ["density ratio", "nearest row", "equal rows"]
    assert all(one.caught and one.auroc > 0.99 for one in found)
    assert (found[0].members, found[0].others) == (150, 75)


def test_copies_among_more_images_than_are_searched_are_found(monkeypatch):
    train, other, real = drawn(150, 2), drawn(600, 7), drawn(150, 0)
    pixels = np.concatenate([other.pixels, train.pixels])
    made = fs.Images(pixels, np.concatenate([other.labels, train.labels]))
    monkeypatch.setattr(pictures, "_SEARCHED", 75)
    found = attacks(made, train, real)
    assert all(one.caught and one.auroc > 0.99 for one in found)
    assert all("of the 750 synthetic rows were searched" in one.sentence for one in found[:2])
    assert not any(one.caught for one in attacks(other, train, real))


@pytest.mark.parametrize("seed", range(6))
def test_independent_images_are_caught_by_none(seed):
    parts = [drawn(150, 3 * seed + 10 + k) for k in range(3)]
    assert not any(one.caught for one in attacks(*parts, seed=seed))


def test_one_real_image_leaves_nothing_to_attack_with():
    assert attacks(drawn(9, 0), drawn(9, 1), drawn(1, 2)) == ()
    assert len(attacks(drawn(1, 0), drawn(9, 1), drawn(2, 2))) == 3


def flat(*values):
    return fs.Images(np.array(values, np.uint8).reshape(len(values), 1, 1))


def test_neighbours_by_hand():
    """Synthetic 0, 10, 90 and real 20, 40 beside training images 0, 40, 100 of white 100."""
    schema = fs.ImageSchema(shape=(1, 1), maximum=100)
    found = image_neighbours(flat(0, 10, 90), flat(0, 40, 100), flat(20, 40), schema)
    assert found.copies == pytest.approx({"train": 1 / 3, "real": 0, "expected": 1 / 2})
    made, real = [0, 0.1, 0.1], [0.2, 0]
    assert found.distance["synthetic_to_train"] == pytest.approx(np.quantile(made, QUANTILES))
    assert found.distance["real_to_train"] == pytest.approx(np.quantile(real, QUANTILES))
    assert found.ratio["synthetic"] == pytest.approx((0 + 0.1 / 0.3 + 0.1 / 0.5) / 3)
    assert found.ratio["real"] == pytest.approx((0.2 / 0.2 + 0 / 0.4) / 2)
    assert "no evidence of privacy" in found.note


@pytest.fixture
def look(tmp_path):
    def run(*images, **options):
        found = fs.evaluate(*images, **options)
        json.dumps(found.to_dict(), allow_nan=False)
        assert found.save(tmp_path / "report")[0].read_text(encoding="utf-8")
        assert len(found.summary.headlines) == 4
        return found

    return run


def test_images_have_every_part(look):
    found = look(drawn(120, 0), drawn(120, 1), SCHEMA, train=drawn(120, 2))
    assert found.fidelity is None and found.utility is None and found.caught == []
    assert found.images.student["synthetic"] > 0.9
    assert found.about == {
        "kind": "image",
        "columns": 36,
        "target": "digit",
        "task": "classification",
        "rows": {"real": 120, "synthetic": 120, "train": 120},
    }
    assert "reads" in found.summary.verdict and "No attack told" in found.summary.verdict
    copied = look(drawn(120, 0), drawn(120, 2), SCHEMA, train=drawn(120, 2))
    assert copied.caught == [
        f"membership, {name}" for name in ("density ratio", "nearest row", "equal rows")
    ]
    assert "Do not hand these rows out: 3 attacks" in copied.summary.verdict


def test_images_without_training_ones_are_halved(look):
    found = look(drawn(41, 0), drawn(40, 1), SCHEMA)
    assert "one half of the real rows" in found.notes[0]
    assert found.privacy.membership == () and "No attack was run" in found.summary.verdict


@pytest.mark.parametrize(
    ("options", "schema"),
    [
        ({"labels": False}, fs.ImageSchema(shape=(6, 6))),
        ({}, fs.ImageSchema(shape=(6, 6))),
        ({"maximum": 16}, fs.ImageSchema(shape=(6, 6), maximum=16, target=DIGIT)),
        ({"shape": (6, 6, 3)}, fs.ImageSchema(shape=(6, 6, 3), target=DIGIT)),
        ({"shape": (6, 6, 2)}, fs.ImageSchema(shape=(6, 6, 2))),
    ],
    ids=["no labels", "labels not declared", "sixteen", "colour", "two channels"],
)
def test_images_of_every_kind(look, options, schema):
    parts = [drawn(60, seed, **options) for seed in range(3)]
    found = look(parts[0], parts[1], schema, train=parts[2])
    assert (found.images.student is None) == (schema.target is None) and found.caught == []
    look(parts[0], parts[1], schema)


@pytest.mark.parametrize("rows", [10, 5, 2, 1])
def test_few_images(look, rows):
    found = look(drawn(rows, 0), drawn(rows, 1), SCHEMA, train=drawn(rows, 2))
    assert found.caught == []
    if rows == 1:
        assert "needs two real images" in found.privacy.skipped[1]
        with pytest.raises(DataError, match="real: one row"):
            look(drawn(1, 0), drawn(1, 1), SCHEMA)


def test_images_that_do_not_fit_are_named_with_their_side():
    good = drawn(9, 0)
    for bad, message in (
        (drawn(9, 1, shape=(5, 5)), r"images of shape \(5, 5\) and a schema of shape \(6, 6\)"),
        (drawn(0, 1), "there are no images"),
        (drawn(9, 1, labels=False), "carry no labels"),
    ):
        with pytest.raises(DataError, match=f"synthetic: .*{message}"):
            fs.evaluate(good, bad, SCHEMA)
    with pytest.raises(DataError, match="synthetic: the schema is an image schema"):
        fs.evaluate(good, pd.DataFrame({"a": [1]}), SCHEMA)
    for options in ({"quasi_identifiers": ["a"], "sensitive": ["b"]}, {"secrets": ["a"]}):
        with pytest.raises(ConfigError, match="images have no quasi-identifiers"):
            fs.evaluate(good, good, SCHEMA, **options)
    with pytest.raises(ConfigError, match="without a schema"):
        fs.evaluate(good, good)
