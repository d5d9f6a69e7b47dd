"""Looks at a generator's own samples: collapse, divergence, the state that is kept, patience."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedsynth.methods.training.generating import Conditions, GeneratorTrainer, Objective
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.saving import pack_parts, unpack_parts
from fedsynth.methods.training.watch import Watch
from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator

TABLE = Cells(columns=(4,))


def trainer(classes=0, profiles=None, cells=TABLE):
    # Without a hidden layer: the scores of a class are its column of the matrix.
    generator = Generator(cells, "mlp", 1, classes)
    source = torch.Generator().manual_seed(0)
    learner = Learner(generator.layers, 0.1, source)
    shares = np.full(classes, 1 / max(1, classes))
    tables = None if profiles is None else torch.tensor(profiles)
    return GeneratorTrainer(generator, learner, Objective(), Conditions(shares), tables, source)


def weights(*columns, bias=(0.0, 0.0, 0.0, 0.0)):
    """A flat vector whose latent vector moves nothing: columns of the classes, then the bias."""
    rows = [[0.0, *own] for own in zip(*columns, bias, strict=True)]
    return torch.tensor(rows, dtype=torch.float32).flatten()


EVEN = weights()
ALWAYS_FIRST = weights(bias=(500.0, 0.0, 0.0, 0.0))
EVEN_IN_BOTH = weights((0.0,) * 4, (0.0,) * 4)
ONE_A_CLASS = weights((500.0, 0.0, 0.0, 0.0), (0.0, 500.0, 0.0, 0.0))
BROKEN = [EVEN * float("nan"), torch.full_like(EVEN, float("inf"))]


def watched(own, *states, patience=None, every=1):
    watch = Watch(torch.zeros(own.generator.dim), patience=patience)
    for number, state in enumerate(states, 1):
        watch.look(own, state, every * number, 0)
    return watch


def test_a_healthy_generator_is_neither_and_its_last_state_is_kept():
    watch = watched(trainer(), EVEN, EVEN + 0.01)
    assert not watch.collapsed and not watch.diverged and not watch.stalled
    assert watch.remarks("the generator") == ()
    assert torch.equal(watch.kept, EVEN + 0.01) and watch.at == 2
    # Of four categories as likely, two rows have different ones three times of four.
    assert watch.looks[0].variety == pytest.approx(0.75, abs=0.08)


def test_a_generator_that_lost_its_variety_has_collapsed_and_the_state_before_is_kept():
    watch = watched(trainer(), EVEN, ALWAYS_FIRST)
    assert watch.collapsed and not watch.diverged
    assert torch.equal(watch.kept, EVEN) and watch.at == 1
    (remark,) = watch.remarks("the generator of class 3")
    assert "the generator of class 3 collapsed" in remark
    assert "by round 2" in remark and "round 1 are kept" in remark
    watch.look(trainer(), EVEN, 3, 0)
    assert not watch.collapsed and watch.at == 3


def test_rows_of_one_label_that_are_all_the_same_are_a_collapse_though_classes_differ():
    watch = watched(trainer(2), ONE_A_CLASS)
    assert watch.looks[0].variety == 0 and watch.looks[0].spread > 0.1
    assert watch.collapsed


def test_classes_that_differ_are_no_collapse():
    assert not watched(trainer(2), EVEN_IN_BOTH, EVEN_IN_BOTH).collapsed


@pytest.mark.parametrize("state", BROKEN)
def test_weights_that_are_no_numbers_have_diverged_and_the_last_good_ones_are_kept(state):
    watch = watched(trainer(), EVEN, state)
    assert watch.diverged and not watch.collapsed
    assert torch.equal(watch.kept, EVEN) and watch.at == 1
    assert "diverged by round 2" in watch.remarks("it")[0]


def test_a_table_in_which_no_two_rows_can_differ_has_not_collapsed():
    only = Cells(columns=(1, 1))
    watch = watched(trainer(cells=only), torch.zeros(4))
    assert watch.looks[0].variety == 0
    assert not watch.collapsed


@pytest.mark.parametrize(
    ("tables", "collapsed"),
    [
        # The label says all, so rows of one label are alike by right.
        ([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], False),
        ([[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]], True),
        # Tables of all rows together say nothing of one class.
        ([[0.5, 0.5, 0.0, 0.0]], True),
    ],
)
def test_variety_is_measured_by_what_released_tables_promise(tables, collapsed):
    assert watched(trainer(2, tables), ONE_A_CLASS).collapsed is collapsed


def test_the_variety_that_tables_promise_is_that_of_rows_drawn_from_them():
    shares = [0.4, 0.3, 0.2, 0.1]
    own = trainer(profiles=[shares])
    watch = watched(own, weights(bias=tuple(np.log(shares))))
    assert watch.looks[0].wanted == pytest.approx(1 - sum(share**2 for share in shares))
    assert watch.looks[0].variety == pytest.approx(watch.looks[0].wanted, abs=0.08)


def test_a_generator_that_never_had_what_the_tables_promise_has_collapsed():
    assert watched(trainer(profiles=[[0.25] * 4]), ALWAYS_FIRST).collapsed


def test_the_distance_is_the_total_variation_from_the_released_tables():
    own = trainer(profiles=[[0.7, 0.1, 0.1, 0.1]])
    near, far = weights(bias=tuple(np.log([0.7, 0.1, 0.1, 0.1]))), ALWAYS_FIRST
    watch = watched(own, EVEN, near, far)
    distances = [look.distance for look in watch.looks]
    assert distances == pytest.approx([0.45, 0.0, 0.3], abs=0.05)


def test_the_distance_is_taken_in_each_class():
    profiles = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    assert watched(trainer(2, profiles), ONE_A_CLASS).looks[0].distance == pytest.approx(0.0)
    turned = weights((0.0, 500.0, 0.0, 0.0), (500.0, 0.0, 0.0, 0.0))
    assert watched(trainer(2, profiles), turned).looks[0].distance == pytest.approx(1.0)


def test_patience_ends_by_the_distance_alone_and_keeps_the_nearest():
    own = trainer(profiles=[[0.25, 0.25, 0.25, 0.25]])
    off = [weights(bias=(step, 0.0, 0.0, 0.0)) for step in (2.0, 1.0, 0.0, 1.0, 1.1)]
    watch = watched(own, *off[:4], patience=2)
    assert not watch.stalled
    watch.look(own, off[4], 5, 0)
    assert watch.stalled
    assert torch.equal(watch.kept, off[2]) and watch.at == 3
    assert not watch.collapsed and watch.remarks("it") == ()


def test_without_patience_or_without_tables_nothing_stalls():
    assert not watched(trainer(profiles=[[0.25] * 4]), *[EVEN] * 9).stalled
    assert not watched(trainer(), *[EVEN] * 9, patience=1).stalled


def test_looking_changes_no_random_stream_and_no_weight():
    own = trainer(2)
    torch.manual_seed(3)
    before = own.source.get_state(), torch.get_rng_state(), own.learner.flat
    watched(own, ONE_A_CLASS)
    assert torch.equal(own.source.get_state(), before[0])
    assert torch.equal(torch.get_rng_state(), before[1])
    assert torch.equal(own.learner.flat, before[2])


def test_the_state_kept_is_a_copy():
    own, state = trainer(), EVEN.clone()
    watch = watched(own, state)
    state += 1
    assert torch.equal(watch.kept, EVEN)


def test_images_are_looked_at_without_tables():
    generator = Generator(Cells(shape=(2, 2)), "mlp", 3, 0, (8,))
    source = torch.Generator().manual_seed(0)
    learner = Learner(generator.layers, 0.1, source)
    own = GeneratorTrainer(generator, learner, Objective(), Conditions(np.zeros(0)), None, source)
    flat = gan.initial(generator.layers, source)
    assert watched(own, flat * 3).looks[0].distance is None
    assert watched(own, flat * 3, torch.zeros_like(flat)).collapsed


@pytest.mark.parametrize("tables", [None, [[0.25] * 4]])
def test_a_restored_watch_goes_on_as_if_nothing_had_happened(tables):
    own = trainer(profiles=tables)
    watch = watched(own, EVEN, ALWAYS_FIRST, BROKEN[0], patience=2)
    parts = {"watch": Watch(torch.zeros(own.generator.dim), patience=2)}
    unpack_parts(parts, {"other": np.zeros(1), **pack_parts({"watch": watch})})
    again = parts["watch"]
    # Where all is broken there is no distance either.
    assert repr(again.looks[:2]) == repr(watch.looks[:2])
    assert again.diverged and again.at == watch.at and torch.equal(again.kept, watch.kept)
    for one in (watch, again):
        one.looks.pop()
        one.look(own, EVEN, 4, 0)
    assert repr(again.looks) == repr(watch.looks)
    assert (again.stalled, again.collapsed, again.at) == (watch.stalled, watch.collapsed, watch.at)


def test_a_watch_that_has_not_looked_yet_can_be_saved():
    again = Watch(torch.zeros(4))
    again.restore(Watch(torch.ones(4)).state())
    assert again.looks == [] and torch.equal(again.kept, torch.ones(4))
