"""With privacy: what a record adds to a step, whatever the record and the networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from torch.nn import functional

from fedsynth.methods.training.generating import mode_seeking_ratio
from fedsynth.methods.training.rows import Row, Seen, Weights
from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.papers.fusion_gan.networks import Networks, Records
from fedsynth.privacy.rows.clipping import clip_and_sum

CELLS = Cells(columns=(0, 3, 0))


def row_of(nets, clip):
    return Row(nets.discriminator, nets.classifier, clip, marks=nets.counts_dim)


def seen(nets, drawn):
    labels = drawn.y if nets.conditional else None
    return Seen(drawn.x, drawn.x, labels, drawn.y)


def networks(classes=2, conditional=True):
    known = classes if conditional else 0
    return Networks(
        Generator(CELLS, "mlp", 2, known, (4,)),
        Scorer(CELLS, "mlp", 1 + known, (6,)),
        Scorer(CELLS, "mlp", classes, (6,)) if classes else None,
    )


def weights_of(nets, scale=1.0):
    source = torch.Generator().manual_seed(1)

    def of(scorer):
        flat = gan.initial(scorer.layers, source) * scale
        return gan.leaves(flat, scorer.layers)

    return Weights(of(nets.discriminator), of(nets.classifier) if nets.classifier else [])


def records(count, classes=2, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy((size * rng.standard_normal((count, CELLS.width))).astype(np.float32))
    return Records(x, torch.from_numpy(rng.integers(0, classes, count)) if classes else None)


@effort(max_examples=20, deadline=None)
@given(
    st.sampled_from([0.0, 1.0, 1e3, 1e20]),
    st.sampled_from([1.0, 1e3, 1e30]),
    st.sampled_from([(2, True), (2, False), (0, False)]),
    st.floats(1e-3, 1e3),
)
def test_no_record_adds_more_than_the_clip(size, scale, kind, clip):
    nets = networks(*kind)
    row = row_of(nets, clip)
    drawn = records(5, kind[0], size=size)
    rows = row.of(seen(nets, drawn), weights_of(nets, scale))
    assert rows.dim == row.dim
    for at in range(5):
        one = drawn.take(torch.tensor([at]))
        alone = clip_and_sum(row.of(seen(nets, one), weights_of(nets, scale)), clip)
        assert np.linalg.norm(alone) <= clip * (1 + 1e-5)
        if scale < 1e20:
            # The parts were clipped already, so that the door leaves the marks whole.
            assert rows.norms("l2")[at] <= clip * (1 + 1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_record_that_is_not_finite_moves_nothing_beyond_the_clip(bad):
    # Conformed rows never hold such cells; the door must hold even so.
    nets = networks()
    row, weights = row_of(nets, 1.0), weights_of(nets)
    drawn = records(3)
    drawn.x[1, 0] = bad
    with_bad = clip_and_sum(row.of(seen(nets, drawn), weights), 1.0)
    rest = drawn.take(torch.tensor([0, 2]))
    without = clip_and_sum(row.of(seen(nets, rest), weights), 1.0)
    assert np.isfinite(with_bad).all()
    assert np.linalg.norm(with_bad - without) <= 1 + 1e-5


def test_the_sum_is_that_of_gradients_clipped_one_by_one():
    nets, clip = networks(), 0.7
    weights, drawn = weights_of(nets), records(4)
    row = row_of(nets, clip)
    total = clip_and_sum(row.of(seen(nets, drawn), weights), clip)
    expected = np.zeros(row.dim)
    half = clip * np.sqrt(0.99 / 2)
    for at in range(4):
        one = drawn.take(torch.tensor([at]))
        verdict = nets.discriminator.logits(weights.discriminator, one.x)
        real = functional.softplus(-verdict[0, 0] - verdict[0, 1 + one.y[0]])
        known = functional.cross_entropy(nets.classifier.logits(weights.classifier, one.x), one.y)
        parts = []
        for loss, own in ((real, weights.discriminator), (known, weights.classifier)):
            gradient = gan.flatten(torch.autograd.grad(loss, own)).double().numpy()
            parts.append(gradient * min(1.0, half / np.linalg.norm(gradient)))
        marks = np.zeros(2)
        marks[one.y[0]] = 0.1 * clip
        expected += np.concatenate([*parts, marks])
    assert np.allclose(total, expected, atol=1e-5)


def test_no_records_sum_to_nothing():
    nets = networks()
    drawn = records(0)
    rows = row_of(nets, 1.0).of(seen(nets, drawn), weights_of(nets))
    assert len(rows) == 0
    total = clip_and_sum(rows, 1.0)
    assert total.shape == (row_of(nets, 1.0).dim,)
    assert not total.any()


def test_rows_do_not_depend_on_other_records():
    nets = networks()
    row, weights, drawn = row_of(nets, 1.0), weights_of(nets), records(6)
    together = row.of(seen(nets, drawn), weights)
    for at in range(6):
        one = drawn.take(torch.tensor([at]))
        alone = row.of(seen(nets, one), weights).weighted_sum(np.ones(1))
        picked = together.weighted_sum(np.eye(6)[at])
        assert np.allclose(alone, picked, atol=1e-6)


def test_pairs_count_as_alike_by_their_distance_for_that_of_their_latent_vectors():
    latent = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
    cells = torch.tensor([[0.0], [0.5], [1.0], [0.5]])
    # First pair: 1 apart over 2; second: not apart at all.
    expected = (1 / (0.5 + 0.01) + 1 / 0.01) / 2
    assert float(mode_seeking_ratio(latent, cells, 2)) == pytest.approx(expected, rel=1e-5)
