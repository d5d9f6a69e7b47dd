"""Images as intensities and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedsynth.data.tables import Images
from fedsynth.encoding import image
from fedsynth.errors import DataError
from fedsynth.schema import ImageSchema


@given(st.data(), st.sampled_from(((4, 4), (2, 3, 3))), st.integers(1, 255), st.booleans())
def test_pixels_survive_the_round_trip(data, shape, maximum, by_chance):
    schema = ImageSchema(shape=shape, maximum=maximum)
    pixels = data.draw(arrays(np.uint8, (5, *shape), elements=st.integers(0, maximum)))
    intensities = image.encode(Images(pixels), schema)
    assert intensities.dtype == np.float32
    assert intensities.shape == (5, schema.pixels)
    assert intensities.min() >= 0 and intensities.max() <= 1
    # By chance, float32 may fall a hair short of the whole number: one pixel in a million at most.
    rng = np.random.default_rng(0) if by_chance else None
    assert (image.decode(intensities, schema, rng) == pixels).all()


@given(arrays(np.float32, (3, 6), elements=st.floats(0, 1, width=32)), st.integers(0, 99))
def test_decoded_pixels_stay_within_the_schema(intensities, seed):
    schema = ImageSchema(shape=(2, 3), maximum=16)
    for rng in (None, np.random.default_rng(seed)):
        pixels = image.decode(intensities, schema, rng)
        assert pixels.dtype == np.uint8
        assert pixels.shape == (3, 2, 3)
        assert pixels.max() <= 16


def test_rounding_by_chance_keeps_the_mean_intensity():
    schema = ImageSchema(shape=(1, 100_000), maximum=1)
    pixels = image.decode(np.full((1, 100_000), 0.3), schema, np.random.default_rng(0))
    assert abs(pixels.mean() - 0.3) < 5 * np.sqrt(0.21 / 100_000)


def test_brighter_than_white_is_white():
    pixels = np.full((1, 2, 2), 200, np.uint8)
    assert (image.encode(Images(pixels), ImageSchema(shape=(2, 2), maximum=16)) == 1).all()


def test_wrong_shapes_and_values_are_refused():
    schema = ImageSchema(shape=(2, 2))
    with pytest.raises(DataError, match="schema says"):
        image.encode(Images(np.zeros((1, 3, 3), np.uint8)), schema)
    with pytest.raises(DataError, match="expected"):
        image.decode(np.zeros((1, 5)), schema)
    for wrong in (np.nan, -0.1, 1.1):
        with pytest.raises(DataError, match="0, 1"):
            image.decode(np.full((1, 4), wrong), schema)
