"""Labels of generated rows by released frequencies, and what a generator strives for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from scipy.stats import binom

from fedsynth.methods.training.generating import (
    Conditions,
    GeneratorTrainer,
    Objective,
    conditional_cross_entropy,
    mode_seeking_ratio,
    profile_distance,
)
from fedsynth.methods.training.learner import Learner
from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator

ALPHA = 1e-9
ROWS = 20_000


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def demand_shares(drawn, shares):
    """Counts of the values in a draw, each within what its share allows."""
    counts = torch.bincount(drawn, minlength=len(shares)).numpy()
    assert len(counts) == len(shares)
    for count, share in zip(counts, shares, strict=True):
        # A class's floor is a thousandth of the mean share.
        low = binom.ppf(ALPHA, len(drawn), share * (1 - 2e-3))
        high = binom.ppf(1 - ALPHA, len(drawn), min(1.0, share + 1e-3 / len(shares)))
        assert low <= count <= high


def test_classes_are_drawn_by_their_released_shares():
    shares = np.array([0.55, 0.3, 0.149, 0.001])
    demand_shares(Conditions(shares).draw(ROWS, source()), shares)


def test_a_class_that_noise_has_emptied_is_drawn_now_and_then():
    drawn = Conditions(np.array([0.0, 1.0])).draw(100_000, source())
    # A thousandth of the mean share, 5e-4: 50 rows of 100,000.
    low, high = binom.ppf([ALPHA, 1 - ALPHA], 100_000, 5e-4 / 1.001)
    assert low <= int((drawn == 0).sum()) <= high


def test_one_class_is_everybodys():
    assert Conditions(np.ones(1)).draw(5, source()).tolist() == [0] * 5


def test_without_classes_and_cells_there_are_no_labels():
    conditions = Conditions(np.zeros(0))
    assert conditions.count == 0
    assert conditions.draw(5, source()) is None


CELLS = np.array([[0.2, 0.8, 0.0, 0.5, 0.5], [0.9, 0.1, 0.7, 0.3, 0.0]])


def test_cells_are_drawn_by_their_shares_in_the_class_of_their_row():
    classes = np.array([0.25, 0.75])
    conditions = Conditions(classes, CELLS, (2, 3))
    assert conditions.count == 7
    drawn = conditions.draw(ROWS, source())
    assert drawn.shape == (ROWS, 2)
    demand_shares(drawn[:, 0], classes)
    for number in range(2):
        own = drawn[drawn[:, 0] == number, 1] - 2
        demand_shares(own, CELLS[number] / 2)
        # A cell that was never seen is never asked for; 1e-12 stands in for nothing.
        assert not torch.isin(own, torch.from_numpy(np.flatnonzero(CELLS[number] == 0))).any()


@pytest.mark.parametrize("classes", [np.zeros(0), np.array([0.5, 0.5])])
def test_cells_of_all_rows_together_are_drawn_whatever_the_class(classes):
    conditions = Conditions(classes, CELLS[:1], (2, 3))
    drawn = conditions.draw(ROWS, source())
    cells = drawn if not len(classes) else drawn[:, 1]
    demand_shares(cells - len(classes), CELLS[0] / 2)


def test_columns_are_asked_for_evenly_however_many_categories_they_have():
    wide = np.concatenate([[1.0], np.full(100, 0.01)])[None]
    drawn = Conditions(np.zeros(0), wide, (1, 100)).draw(ROWS, source())
    low, high = binom.ppf([ALPHA, 1 - ALPHA], ROWS, 0.5)
    assert low <= int((drawn == 0).sum()) <= high


def test_rows_whose_classes_are_known_keep_them():
    classes = torch.tensor([1, 0, 1])
    labels = Conditions(np.array([0.5, 0.5]), CELLS, (2, 3)).complete(classes, 3, source())
    assert labels[:, 0].tolist() == [1, 0, 1]
    assert Conditions(np.array([0.5, 0.5])).complete(classes, 3, source()) is classes


@effort(max_examples=20, deadline=None)
@given(st.data())
def test_labels_are_always_such_as_there_are(data):
    sizes = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    classes = data.draw(st.integers(0, 3))
    known = data.draw(st.sampled_from([1, classes])) or 1
    share = st.sampled_from([0.0, 1e-12, 0.5, 1.0])
    profile = st.lists(share, min_size=sum(sizes), max_size=sum(sizes))
    raw = data.draw(st.lists(profile, min_size=known, max_size=known))
    shares = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=classes, max_size=classes))
    conditions = Conditions(np.array(shares), np.array(raw), sizes)
    drawn = conditions.draw(200, source(data.draw(st.integers(0, 9))))
    cells = drawn[:, 1] if classes else drawn
    assert int(cells.min()) >= classes and int(cells.max()) < conditions.count
    if classes:
        assert 0 <= int(drawn[:, 0].min()) <= int(drawn[:, 0].max()) < classes


def test_a_mismatch_is_the_squared_distance_of_each_classs_means():
    cells = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    profiles = torch.tensor([[0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])
    # Class 0: means (1, 0) are off by (0.5, -0.5); class 1: (0.5, 0.5), by (0.3, -0.3); class 2 has
    # no rows, so nothing.
    distances = profile_distance(cells, torch.tensor([0, 1, 1]), profiles)
    assert float(distances) == pytest.approx(1 / 3 * 0.5 + 2 / 3 * 0.18, rel=1e-5)
    together = profile_distance(cells, None, profiles[:1])
    assert float(together) == pytest.approx((2 / 3 - 0.5) ** 2 + (1 / 3 - 0.5) ** 2, rel=1e-5)


def test_disobedience_is_the_cross_entropy_within_the_column_asked_for():
    scores = torch.tensor([[0.0, math.log(3.0), 5.0, 7.0, 7.0], [9.0, 9.0, 0.0, 0.0, 0.0]])
    result = conditional_cross_entropy(scores, torch.tensor([1, 4]), (2, 3))
    # 3 of 1 + 3, whatever the other column says; and one of three alike.
    assert float(result) == pytest.approx((math.log(4 / 3) + math.log(3)) / 2, rel=1e-5)


def test_disobedience_reaches_the_asked_column_alone():
    scores = torch.randn(1, 5, generator=source()).requires_grad_()
    (slope,) = torch.autograd.grad(
        conditional_cross_entropy(scores, torch.tensor([0]), (2, 3)), scores
    )
    assert slope[0, :2].abs().min() > 0
    assert not slope[0, 2:].any()


def test_alike_rows_of_unlike_latent_vectors_count_as_the_same():
    latent = torch.tensor([[0.0], [0.0], [2.0], [4.0]])
    cells = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # Pair (0, 2): 0 apart over 2. Pair (1, 3): 1 apart over 4.
    expected = (1 / 0.01 + 1 / (0.25 + 0.01)) / 2
    assert float(mode_seeking_ratio(latent, cells, 2)) == pytest.approx(expected, rel=1e-5)


TABLE = Cells(columns=(2, 3))


def trainer(objective, conditions, profiles=None, kind="residual", rate=0.05):
    generator = Generator(TABLE, kind, 3, conditions.count, (8,))
    learner = Learner(generator.layers, rate, source(1))
    return GeneratorTrainer(generator, learner, objective, conditions, profiles, source(2))


def indifferent(cells, labels):
    return torch.zeros(len(cells)) * cells.sum(1)


def test_matching_brings_a_generator_to_the_released_tables():
    profiles = torch.from_numpy(CELLS).float()
    own = trainer(Objective(matching=1.0), Conditions(np.array([0.5, 0.5])), profiles)
    for _ in range(150):
        own.step(200, indifferent)
    cells, labels = own.rows(4000)
    for number in range(2):
        assert (cells[labels == number].mean(0) - profiles[number]).abs().max() < 0.1


def test_obedience_makes_a_generator_draw_what_it_is_asked_for():
    conditions = Conditions(np.zeros(0), np.array([[0.5, 0.5, 0.4, 0.3, 0.3]]), (2, 3))
    own = trainer(Objective(conditional_loss=1.0), conditions)
    for _ in range(150):
        own.step(200, indifferent)
    cells, labels = own.rows(1000)
    assert cells.gather(1, labels[:, None]).mean() > 0.95


def test_guidance_makes_a_generator_draw_what_the_classifier_knows_by_its_class():
    own = trainer(Objective(auxiliary_loss=1.0), Conditions(np.array([0.5, 0.5])))
    for _ in range(100):
        own.step(100, indifferent, lambda cells: 8 * cells[:, :2])
    cells, labels = own.rows(1000)
    assert cells.gather(1, labels[:, None]).mean() > 0.95


def test_a_generator_learns_what_is_taken_for_real():
    own = trainer(Objective(), Conditions(np.zeros(0)))
    for _ in range(100):
        own.step(100, lambda cells, labels: 4 * cells[:, 4])
    assert own.rows(1000)[0][:, 4].mean() > 0.9


def test_a_step_draws_pairs_of_the_same_labels_even_where_rows_are_odd():
    seen = []

    def verdict(cells, labels):
        seen.append((len(cells), labels))
        return cells.sum(1)

    trainer(Objective(), Conditions(np.array([0.5, 0.5]))).step(7, verdict)
    ((rows, labels),) = seen
    assert rows == 8
    assert torch.equal(labels[:4], labels[4:])


def test_a_step_moves_the_generator_no_further_than_its_gradient_is_long(monkeypatch):
    own = trainer(Objective(max_gradient_norm=1e-3), Conditions(np.zeros(0)))
    stepped = []
    monkeypatch.setattr(own.learner, "_step", lambda parts: stepped.append(gan.flatten(parts)))
    own.step(10, lambda cells, labels: 1e6 * cells[:, 0])
    assert float(stepped[0].norm()) == pytest.approx(1e-3, rel=1e-4)
