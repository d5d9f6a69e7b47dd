"""Training the generator: an unbiased distance, and what it brings nearer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.generator import Generator, Start
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.methods.embedding.targets import Targets
from fedsynth.methods.embedding.training import Matching, train
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema

SCHEMA = ImageSchema(shape=[10, 10])


def setting(**overrides):
    """An embedding, and the exact targets of images with a bright half."""
    chosen = MeanEmbeddingSettings(
        **{"components": 5, "random_features": 30, "patch_features": 10, "hidden": 8, **overrides},
        upright=False,
    )
    made = Embedding(SCHEMA, chosen.resolved(Budget(epsilon=1.0), SCHEMA))
    rng = np.random.default_rng(0)
    records = rng.random((400, 100)) * 0.2
    records[:200].reshape(200, 10, 10)[:, :, :5] += 0.7
    records[200:].reshape(200, 10, 10)[:, :, 5:] += 0.7
    given = torch.as_tensor(records)
    vectors = made.vectors(given).numpy()
    targets = Targets(
        frequencies=np.zeros(0),
        moments=(vectors.T @ vectors / 400)[None],
        fourier=made.fourier(given).numpy().mean(axis=0)[None],
        patches=made.patches(given).numpy().mean(axis=0),
        means=np.zeros((1, 5)),
        roots=np.eye(5)[None] * 0.3,
    )
    return made, targets, records.astype(np.float32)


def test_the_distance_between_samples_of_one_distribution_is_zero_on_average():
    """A batch's own mean alone would be off by its variance."""
    made, targets, records = setting()
    matching = Matching(made, targets)
    rng, coins = np.random.default_rng(1), torch.Generator().manual_seed(0)
    result = {"moments": [], "fourier": [], "patches": []}
    plain = []
    for _ in range(300):
        batch = torch.from_numpy(records[rng.integers(0, 400, 6)])
        result["moments"].append(float(matching.of_moments(batch)))
        result["fourier"].append(float(matching.of_fourier(batch)))
        result["patches"].append(float(matching.of_patches(batch, coins)))
        mean = made.fourier(batch).mean(dim=0)
        plain.append(float(((mean - matching.fourier[0]) ** 2).sum()))
    for name, values in result.items():
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values)) < 4 * error, name
    assert np.mean(plain) > 10 * np.std(plain) / np.sqrt(len(plain))


def test_the_distance_to_other_targets_is_what_it_is():
    made, targets, records = setting()
    matching = Matching(made, targets)
    matching.fourier = torch.zeros_like(matching.fourier)
    rng = np.random.default_rng(1)
    batches = [torch.from_numpy(records[rng.integers(0, 400, 50)]) for _ in range(200)]
    distance = np.mean([float(matching.of_fourier(batch)) for batch in batches])
    assert distance == pytest.approx(float((targets.fourier**2).sum()), rel=0.02)


def test_training_brings_the_generator_nearer_and_reports_every_step():
    made, targets, _ = setting(steps=25, batch=20, channels=2, learning_rate=2e-2)
    coins = torch.Generator().manual_seed(0)
    generator = Generator(made, Start.of(targets), coins)
    matching = Matching(made, targets)

    def distance():
        with torch.no_grad():
            drawn = torch.from_numpy(generator.draw(np.zeros(300, np.int64), 7)).float()
            return float(matching.loss(drawn, torch.Generator().manual_seed(1)))

    before, seen = distance(), []
    train(generator, targets, coins, lambda done, total: seen.append((done, total)))
    assert distance() < 0.6 * before
    assert seen == [(k + 1, 25) for k in range(25)]


def test_weights_survive_as_a_flat_vector_and_no_other_length_is_taken():
    made, targets, _ = setting()
    one = Generator(made, Start.of(targets), torch.Generator().manual_seed(0))
    other = Generator(made, Start.of(targets), torch.Generator().manual_seed(1))
    assert one.vector().dtype == np.float32
    assert not np.array_equal(one.vector(), other.vector())
    other.take(one.vector())
    classes = np.zeros(7, np.int64)
    np.testing.assert_array_equal(one.draw(classes, 3), other.draw(classes, 3))
    with pytest.raises(ValueError, match="length"):
        other.take(one.vector()[:-1])


def test_no_global_randomness_is_used():
    made, targets, _ = setting(steps=2)
    result = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        coins = torch.Generator().manual_seed(0)
        generator = Generator(made, Start.of(targets), coins)
        train(generator, targets, coins, lambda done, total: None)
        result.append(generator.vector())
    np.testing.assert_array_equal(*result)


def test_records_are_as_far_apart_as_their_noise_spreads():
    """About a mean that is not 0: of images of a class all have the same norm."""
    made, targets, _ = setting()
    start = Start.of(replace(targets, means=np.full((1, 5), 0.3)))
    generator = Generator(made, start, torch.Generator().manual_seed(0))
    classes = np.zeros(300, np.int64)

    def apart(spread):
        return generator.draw(classes, 3, np.full(300, spread, np.float32)).std(axis=0).mean()

    assert apart(0.0) < 1e-6 < apart(0.5) < apart(1.0)
    np.testing.assert_array_equal(
        generator.draw(classes, 3), generator.draw(classes, 3, np.ones(300, np.float32))
    )
