"""Images sheared upright, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.images import Images
from fedsynth.methods.embedding.coding import ImageCoding
from fedsynth.methods.embedding.upright import LARGEST, shear, slants_of
from fedsynth.schema import ImageSchema


def leaning(columns_a_row):
    """A stroke through the middle of 11 x 15, one pixel a row."""
    image = np.zeros((1, 11, 15, 1))
    for row in range(11):
        image[0, row, 7 + int(columns_a_row * (row - 5)), 0] = 1
    return image


@pytest.mark.parametrize("lean", [-1, 0, 1])
def test_a_leaning_stroke_stands_and_leans_again(lean):
    image = leaning(lean)
    np.testing.assert_allclose(slants_of(image), [lean], atol=1e-12)
    stood = shear(image, -slants_of(image))
    np.testing.assert_allclose(stood, leaning(0), atol=1e-12)
    np.testing.assert_allclose(shear(stood, slants_of(image)), image, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    seed=st.integers(0, 99),
    dark=st.floats(0, 1),
)
def test_nothing_leaves_an_image_that_is_sheared_upright(shape, seed, dark):
    images = np.random.default_rng(seed).random((4, *shape, 1)) >= dark
    weights = images.astype(np.float64)
    stood = shear(weights, -slants_of(weights))
    np.testing.assert_allclose(stood.sum(axis=(1, 2, 3)), weights.sum(axis=(1, 2, 3)), atol=1e-9)


def test_a_shape_as_wide_as_its_image_is_not_taken_for_a_lean_one():
    """A shoe: its toe is in front, below the middle; with room before and behind it may lean."""
    shoe = np.zeros((1, 4, 6, 1))
    shoe[0, 1, :3, 0] = shoe[0, 2, :, 0] = 1
    np.testing.assert_array_equal(slants_of(shoe), 0)
    assert slants_of(np.pad(shoe, ((0, 0), (0, 0), (2, 2), (0, 0)))) == 1


def test_intensities_between_two_places_are_shared_by_distance():
    image = np.zeros((1, 3, 5, 1))
    image[0, :, 2, 0] = 1
    moved = shear(image, np.array([0.25]))[0, :, :, 0]
    by_hand = [[0, 0.25, 0.75, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0.75, 0.25, 0]]
    np.testing.assert_allclose(moved, by_hand)


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3)),
    seed=st.integers(0, 99),
    dark=st.floats(0, 1),
)
def test_any_image_has_coordinates_within_bounds_and_comes_back_within_bounds(shape, seed, dark):
    """A record of one dark row, or of none at all, has no slant."""
    coding = ImageCoding(ImageSchema(shape=list(shape)), upright=True)
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (4, *shape)) * (rng.random((4, *shape)) >= dark)
    records = coding.coordinates(Images(pixels.astype(np.uint8)), np.arange(4))
    assert records.shape == (4, coding.width) and np.isfinite(records).all()
    assert np.abs(records[:, -1]).max() <= LARGEST
    assert records[:, :-1].min() >= 0 and records[:, :-1].max() <= 1 + 1e-12
    back = coding.intensities(records)
    assert back.shape == (4, coding.schema.pixels) and back.min() >= 0 and back.max() <= 1


def test_images_as_they_are_have_no_slant():
    coding = ImageCoding(ImageSchema(shape=[3, 4]), upright=False)
    pixels = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    records = coding.coordinates(Images(pixels), np.arange(1))
    np.testing.assert_allclose(records[0] * 255, np.arange(12), atol=1e-5)
    np.testing.assert_array_equal(coding.intensities(records), records)
