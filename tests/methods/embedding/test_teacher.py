"""The quadratic discriminant of released Gaussians."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

from fedsynth.methods.embedding import teacher
from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.generator import Generator, Start
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.methods.embedding.teacher import Teacher, draw_spreads
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema


def test_scores_are_log_densities_where_all_directions_were_told():
    rng = np.random.default_rng(0)
    basis = np.stack([np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2)])
    variances = rng.uniform(0.1, 1.0, (2, 4))
    variances[1, 2] = 0.0
    means, priors = rng.standard_normal((2, 4)), np.array([0.3, 0.7])
    roots = basis * np.sqrt(variances)[:, None, :]
    vectors = rng.standard_normal((5, 4))
    scores = Teacher.of(means, roots, priors).scores(vectors)
    # What was not told has the floor's variance.
    variances[1, 2] = teacher._FLOOR
    for code in range(2):
        covariance = (basis[code] * variances[code]) @ basis[code].T
        density = multivariate_normal(means[code], covariance).logpdf(vectors)
        by_hand = density + np.log(priors[code]) + 2 * np.log(2 * np.pi)
        np.testing.assert_allclose(scores[:, code], by_hand)


def test_a_class_without_a_share_is_never_said():
    given = Teacher.of(np.zeros((2, 3)), np.zeros((2, 3, 3)), np.array([1.0, 0.0]))
    assert given.classes_of(np.random.default_rng(0).standard_normal((9, 3))).tolist() == [0] * 9


def test_gaussians_that_noise_has_widened_are_drawn_no_wider():
    schema = ImageSchema(shape=[4, 4])
    settings = MeanEmbeddingSettings(components=8, hidden=2, channels=0, patch=0)
    embedding = Embedding(schema, settings.resolved(Budget(epsilon=1.0, delta=1e-5), schema))
    size = embedding.components
    means = np.zeros((4, size), np.float32)
    means[:, 0] = 0.6
    # Variances in all: no vectors of norm 1 with that mean have more than 1 - 0.36.
    variances = np.array([0.1, 0.64, 1.0, 4.0])
    roots = np.sqrt(variances / size)[:, None, None] * np.eye(size)
    generator = Generator(embedding, Start(means, roots.astype(np.float32)), None)
    classes = np.repeat(np.arange(4), 200)
    spreads = draw_spreads(generator, classes, np.random.default_rng(0))
    for code, factor in enumerate([1, 1, 0.8, 0.4]):
        expected = np.unique(np.maximum(1, factor * np.array(teacher._SPREADS)))
        np.testing.assert_allclose(np.unique(spreads[classes == code]), expected, rtol=1e-6)
