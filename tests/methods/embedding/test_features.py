"""Features of the mean embedding: their norms, their kernels, and the way back."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dctn

from fedsynth.data.images import Images
from fedsynth.data.tables import conform
from fedsynth.methods.embedding.coding import ImageCoding, TableCoding
from fedsynth.methods.embedding.features import Embedding, embedding_of, flatten, unflatten
from fedsynth.methods.embedding.messages import announcement
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Boolean, Categorical, Continuous, ImageSchema, Integer, Schema

LABEL = Categorical(name="digit", values=[0, 1, 2])
TABLE = Schema(
    columns=[
        Integer(name="age", lower=18, upper=90, missing=True),
        Continuous(name="dose", lower=-1e15, upper=1e15, decimals=0),
        Categorical(name="colour", values=["red", "green", "blue"], missing=True),
        Boolean(name="smoker"),
        Integer(name="one", lower=4, upper=4),
        Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)


def embedding(schema, **overrides):
    given = MeanEmbeddingSettings(**{"random_features": 60, "patch_features": 20, **overrides})
    return Embedding(schema, given.resolved(Budget(epsilon=1.0), schema))


def frame(rows, seed=0):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows).astype(float),
            "dose": rng.choice([-1e300, 1e300, np.inf, 0.0, 3.0], rows),
            "colour": rng.choice(["red", "green", "blue"], rows).astype(object),
            "smoker": rng.random(rows) < 0.5,
            "one": 4,
            "outcome": rng.choice(["well", "ill"], rows),
        }
    )
    made.loc[rng.random(rows) < 0.2, "age"] = np.nan
    made.loc[rng.random(rows) < 0.2, "colour"] = None
    return made


@settings(max_examples=15, deadline=None)
@given(
    height=st.integers(1, 14),
    width=st.integers(1, 14),
    channels=st.integers(1, 3),
    components=st.integers(1, 60),
    scale=st.sampled_from([0.0, 1e-3, 0.5, 1.0]),
)
def test_a_record_of_any_image_schema_has_norm_at_most_one(
    height, width, channels, components, scale
):
    schema = ImageSchema(shape=[height, width, channels], target=LABEL)
    made = embedding(schema, components=components)
    records = np.random.default_rng(0).random((5, made.coding.width)) * scale
    own, shared = made.rows(records)
    assert own.shape == (5, made.own)
    assert shared.shape == (5, made.shared)
    norms = (own**2).sum(axis=1) + (shared**2).sum(axis=1)
    assert (norms <= 1 + 1e-12).all()
    # The constant and the random Fourier features are there however faint the image is.
    assert (norms >= made.shares[1]).all()


def test_a_table_with_gaps_and_huge_bounds_has_finite_rows_of_norm_at_most_one():
    made = embedding(TABLE)
    data = conform(frame(200), TABLE)
    coordinates = made.coding.coordinates(data, np.arange(200))
    assert np.abs(coordinates).max() <= 1
    own, shared = made.rows(coordinates)
    assert shared.shape == (200, 0)
    assert ((own**2).sum(axis=1) <= 1 + 1e-12).all()


def test_columns_come_back_from_their_coordinates():
    coding = TableCoding(TABLE)
    data = conform(frame(300), TABLE)
    back = coding.columns(coding.coordinates(data, np.arange(300)))
    for name, values in back.items():
        np.testing.assert_allclose(values, data.columns[name], rtol=1e-12, atol=0.3, err_msg=name)
    assert set(back) == {"age", "dose", "colour", "smoker", "one"}


def test_second_moments_keep_their_norm_and_come_back():
    vectors = np.random.default_rng(0).standard_normal((4, 7))
    outer = vectors[:, :, None] * vectors[:, None, :]
    triangles = flatten(vectors)
    np.testing.assert_allclose((triangles**2).sum(axis=1), (outer**2).sum(axis=(1, 2)))
    np.testing.assert_allclose(unflatten(triangles, 7), outer, atol=1e-12)


def test_random_features_approach_the_mean_of_the_gaussian_kernels():
    """Rahimi and Recht: inner products are exp(-|x - y|^2 / 2h^2), here mixed over bandwidths."""
    schema = ImageSchema(shape=[4, 4])
    made = embedding(schema, random_features=40_000, bandwidths=[0.2, 0.5], upright=False)
    x, y = np.random.default_rng(1).random((2, 16))
    features = made.fourier(torch.as_tensor(np.stack([x, y])))
    widths = np.array([0.2, 0.5]) * 4
    kernel = np.exp(-((x - y) @ (x - y)) / (2 * widths**2)).mean()
    assert float(features[0] @ features[1]) == pytest.approx(kernel, abs=0.02)
    assert float(features[0] @ features[0]) == pytest.approx(1.0)


def test_few_coordinates_of_an_image_are_its_lowest_cosine_frequencies():
    made = embedding(ImageSchema(shape=[6, 8]), components=3, tilt=0.0, upright=False)
    pixels = np.random.default_rng(0).random((6, 8))
    few = pixels.ravel() @ made.projection.matrix
    waves = dctn(pixels, norm="ortho")
    np.testing.assert_allclose(few, [waves[0, 0], waves[0, 1], waves[1, 0]])


@pytest.mark.parametrize(
    "schema", [ImageSchema(shape=[9, 7]), ImageSchema(shape=[5, 5, 3], target=LABEL), TABLE]
)
@pytest.mark.parametrize("components", [1, 4, 500])
def test_lifting_is_a_right_inverse_of_projecting(schema, components):
    made = embedding(schema, components=components)
    product = made.projection.lift @ made.projection.matrix
    np.testing.assert_allclose(product, np.eye(made.components), atol=1e-12)


def test_patches_are_averaged_over_all_places():
    schema = ImageSchema(shape=[12, 12, 2])
    made = embedding(schema, patch=3, patch_features=4)
    pixels = np.random.default_rng(0).random((1, 12, 12, 2))
    features = made.patches(torch.as_tensor(pixels.reshape(1, -1)))[0].numpy()
    phases = np.array(
        [
            [
                (pixels[0, i : i + 3, j : j + 3].transpose(2, 0, 1) * one).sum()
                for i in range(0, 10, 2)
                for j in range(0, 10, 2)
            ]
            for one in made.filters
        ]
    )
    by_hand = np.concatenate([np.cos(phases).mean(axis=1), np.sin(phases).mean(axis=1)])
    np.testing.assert_allclose(features, by_hand / math.sqrt(2), atol=1e-12)


@pytest.mark.parametrize("schema", [TABLE, ImageSchema(shape=[9, 7], target=LABEL)])
def test_clients_compute_the_servers_features_from_what_was_announced(schema):
    made = embedding(schema)
    theirs = embedding_of(announcement(made))
    records = np.random.default_rng(0).random((3, made.coding.width))
    for ours, other in zip(made.rows(records), theirs.rows(records), strict=True):
        np.testing.assert_array_equal(ours, other)


def test_unlabelled_images_are_of_one_class():
    coding = ImageCoding(ImageSchema(shape=[4, 4]), upright=True)
    images = Images(np.zeros((3, 4, 4), np.uint8), None)
    assert coding.classes_of(images, np.arange(3)).tolist() == [0, 0, 0]


def test_drawn_categories_follow_the_softmax_and_pass_gradients():
    schema = Schema(columns=[Categorical(name="a", values=["x", "y"])])
    coding = TableCoding(schema)
    raw = torch.tensor([[math.log(3.0), 0.0]]).repeat(20_000, 1).requires_grad_()
    drawn = coding.finish(raw, torch.Generator().manual_seed(0))
    np.testing.assert_allclose(drawn.detach().unique().numpy(), [-0.5, 0.5], atol=1e-6)
    assert float((drawn[:, 0] > 0).double().mean()) == pytest.approx(0.75, abs=0.015)
    torch.autograd.backward(drawn[:, 0].sum())
    assert raw.grad is not None and float(raw.grad.abs().sum()) > 0


def test_numbers_far_below_wide_bounds_have_places_far_apart_and_come_back():
    """Cents of 1e9: of equal places all of these would be within 2e-6 of the lowest."""
    amounts = np.array([0.0, 0.5, 20.0, 500.0, 1e6, 1e9])
    schema = Schema(columns=[Continuous(name="x", lower=0, upper=1e9, decimals=2)])
    coding = TableCoding(schema)
    data = conform(pd.DataFrame({"x": amounts}), schema)
    places = coding.coordinates(data, np.arange(len(amounts)))
    assert places[0, 0] == -1 and places[-1, 0] == 1 and (np.diff(places[:, 0]) > 0.1).all()
    np.testing.assert_allclose(coding.columns(places)["x"], amounts, rtol=1e-9, atol=1e-9)
