"""fs.evaluate on images: every part, few images, images that do not fit."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError
from tests.evaluation.image_samples import DIGIT, SCHEMA, drawn


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
