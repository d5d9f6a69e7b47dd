"""Images moved a little by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedsynth.methods.embedding import moving
from fedsynth.methods.embedding.moving import move, move_strength, warp

STILL, WHOLE = [[0.0, 0.0]], [[1.0, 1.0]]


def images(*shape):
    return np.random.default_rng(0).random(shape)


def warped(image, shift=STILL, turn=0.0, sizes=WHOLE):
    return warp(image, np.array(shift), np.array([turn]), np.array(sizes))


def test_nothing_moves_by_nothing():
    image = images(1, 5, 7, 3)
    np.testing.assert_allclose(warped(image), image, atol=1e-12)
    np.testing.assert_array_equal(move(image, 0.0, np.random.default_rng(0)), image)
    assert move(images(0, 5, 5, 1), 1.0, np.random.default_rng(0)).shape == (0, 5, 5, 1)


def test_whole_pixels_move_right_and_down_and_the_edge_is_repeated():
    image = images(1, 4, 8, 2)
    shown = warped(image, shift=[[2 / 8, 1 / 4]])
    np.testing.assert_allclose(shown[:, 1:, 2:], image[:, :-1, :-2], atol=1e-12)
    np.testing.assert_allclose(shown[:, 0, 2:], image[:, 0, :-2], atol=1e-12)
    np.testing.assert_allclose(shown[:, 1:, 1], image[:, :-1, 0], atol=1e-12)


def test_a_quarter_turn_is_that_of_numpy():
    image = images(1, 6, 6, 1)
    shown = warped(image, turn=math.pi / 2)
    np.testing.assert_allclose(shown, np.rot90(image, -1, axes=(1, 2)), atol=1e-12)


def test_a_turn_keeps_lengths_where_sides_differ():
    """A stroke across stands after a quarter turn, as long as it lay."""
    image = np.zeros((1, 9, 13, 1))
    image[0, 4, 4:9] = 1
    shown = warped(image, turn=math.pi / 2)[0, :, :, 0]
    by_hand = np.zeros((9, 13))
    by_hand[2:7, 6] = 1
    np.testing.assert_allclose(shown, by_hand, atol=1e-12)


def test_a_stretched_image_is_larger_about_its_middle():
    image = np.zeros((1, 12, 12, 1))
    image[0, 4:8, 5:7] = 1
    shown = warped(image, sizes=[[2.0, 1.0]])[0, :, :, 0]
    assert shown[4:8, 4:8].min() > 0.7
    np.testing.assert_allclose(shown[[3, 8]], 0, atol=1e-12)
    assert shown.sum() == pytest.approx(2 * image.sum(), rel=0.1)


def test_stretched_then_turned_then_shifted():
    image = images(1, 8, 8, 1)
    at_once = warped(image, shift=[[1 / 8, 2 / 8]], turn=math.pi / 2, sizes=[[1.25, 0.75]])
    turned = warped(warped(image, sizes=[[1.25, 0.75]]), turn=math.pi / 2)
    one_by_one = warped(turned, shift=[[1 / 8, 2 / 8]])
    np.testing.assert_allclose(at_once[:, 2:, 1:], one_by_one[:, 2:, 1:], atol=1e-12)


def test_images_move_each_for_itself_and_no_further_than_they_may(monkeypatch):
    asked = []
    monkeypatch.setattr(moving, "warp", lambda shown, *moves: asked.extend(moves) or shown)
    move(images(500, 6, 6, 1), 0.5, np.random.default_rng(0))
    bounds = moving._SHIFT, moving._TURN, moving._STRETCH
    for moves, bound in zip((asked[0], asked[1], asked[2] - 1), bounds, strict=True):
        assert 0.45 * bound < np.abs(moves).max() <= 0.5 * bound
        assert len(np.unique(moves)) == moves.size


def test_moved_images_stay_within_their_range_and_hold_what_they_show():
    image = np.zeros((200, 28, 28, 1))
    image[:, 9:19, 9:19] = 1
    shown = move(image, 1.0, np.random.default_rng(0))
    assert shown.min() >= 0 and shown.max() <= 1
    # A square of 100 pixels grows or shrinks by at most 14 % a side.
    totals = shown.sum(axis=(1, 2, 3))
    assert totals.min() > 0.95 * 86**2 / 100
    assert totals.max() < 1.05 * 114**2 / 100


def roots_of(variances):
    """Of covariances with these diagonals [c, k]: roots times any rotation, as eigenvectors are."""
    variances = np.array(variances)
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((variances.shape[1],) * 2))
    return np.sqrt(variances)[:, :, None] * basis


def test_images_move_as_far_as_leaning_has_a_share_of_what_they_vary():
    half = moving._LEANING / 2
    alike = roots_of([[1 - half, half], [3 - 3 * half, 3 * half]])
    assert move_strength(alike) == pytest.approx(0.5)
    assert move_strength(roots_of([[1.0, 0.0], [1 - half, half]])) == pytest.approx(0.25)
    assert move_strength(roots_of([[0.5, 0.5]])) == 1
    assert move_strength(np.zeros((2, 3, 3))) == 0


def test_noise_that_widens_all_coordinates_alike_moves_no_image_far():
    noisy = [[0.01] * 120 + [0.01]]
    assert move_strength(roots_of(noisy)) == pytest.approx(1 / 121 / moving._LEANING)
