"""Attacks on images, and neighbours by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.evaluation.attacks import images
from fedsynth.evaluation.attacks.images import image_membership, image_neighbours
from fedsynth.evaluation.attacks.neighbours import QUANTILES
from tests.evaluation.image_samples import SCHEMA, drawn


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
    monkeypatch.setattr(images, "_SEARCHED", 75)
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
