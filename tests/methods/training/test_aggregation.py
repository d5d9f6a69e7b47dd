"""How the server steps, against rounds worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import fedsynth as fs
from fedsynth.errors import ConfigError
from fedsynth.methods.training.aggregation.choosing import aggregation_of
from fedsynth.methods.training.aggregation.fedadagrad import FedAdagrad
from fedsynth.methods.training.aggregation.fedadam import FedAdam
from fedsynth.methods.training.aggregation.fedavg import FedAvg
from fedsynth.methods.training.aggregation.fedavgm import FedAvgM
from fedsynth.methods.training.aggregation.fednag import FedNAG
from fedsynth.methods.training.aggregation.fednova import FedNova
from fedsynth.methods.training.aggregation.fedyogi import FedYogi
from fedsynth.methods.training.aggregation.local import Accelerated, Controlled, Normalised
from fedsynth.methods.training.aggregation.scaffold import Scaffold2
from tests.methods.small import SCHEMA, table

# Means of two rounds, of two weights.
ROUNDS = [(0.4, -0.2), (0.1, 0.3)]
CLIENT = fs.Budget(epsilon=math.inf, unit="client", trust="central")


def two_rounds(aggregation):
    weights = np.array([1.0, 2.0], np.float32)
    memory, seen = aggregation.start(2), []
    for moved in ROUNDS:
        aggregation.step(weights, np.array(moved, np.float32), memory)
        seen.append(weights.tolist())
    return seen


def test_the_mean_is_added():
    first, second = two_rounds(FedAvg())
    assert first == pytest.approx([1.4, 1.8]) and second == pytest.approx([1.5, 2.1])


def test_momentum_carries_the_last_round_on():
    """v: (.4, -.2), then half of it and (.1, .3), (.3, .2); twice of each is added."""
    first, second = two_rounds(FedAvgM(learning_rate=2.0, momentum=0.5))
    assert first == pytest.approx([1.8, 1.6]) and second == pytest.approx([2.4, 2.0])


@pytest.mark.parametrize(
    ("aggregation", "squares"),
    [
        # From .25, the floor's square: the squared means .16, .04 and .01, .09.
        (FedAdagrad, [(0.41, 0.29), (0.42, 0.38)]),
        # 3/4 of the last and 1/4 of the new: .1875 + .04, ..
        (FedAdam, [(0.2275, 0.1975), (0.173125, 0.170625)]),
        # Always below the last here: a quarter of the new is taken off.
        (FedYogi, [(0.21, 0.24), (0.2075, 0.2175)]),
    ],
)
def test_an_adaptive_server_divides_by_the_root_of_its_second_moments(aggregation, squares):
    """m: half of (.4, -.2), then half of that and half of (.1, .3), (.15, .1)."""
    told = {"learning_rate": 0.3, "momentum": 0.5, "floor": 0.5}
    if aggregation is not FedAdagrad:
        told["decay"] = 0.75
    means, place, wanted = [(0.2, -0.1), (0.15, 0.1)], [1.0, 2.0], []
    for mean, square in zip(means, squares, strict=True):
        place = [
            w + 0.3 * m / (math.sqrt(v) + 0.5) for w, m, v in zip(place, mean, square, strict=True)
        ]
        wanted.append(list(place))
    np.testing.assert_allclose(two_rounds(aggregation(**told)), wanted, rtol=1e-6)


def test_yogi_adds_where_the_new_square_is_the_larger():
    yogi = FedYogi(learning_rate=1.0, momentum=0.0, decay=0.75, floor=0.1)
    weights, memory = np.zeros(1, np.float32), yogi.start(1)
    yogi.step(weights, np.array([1.0], np.float32), memory)
    assert memory[1, 0] == pytest.approx(0.01 + 0.25)


@pytest.mark.parametrize("method", [fs.FedVAE, fs.FedGAN, fs.FederatedClassifier])
def test_settings_of_an_aggregation_are_filled_in_and_others_refused(method):
    full = method(SCHEMA, aggregation="fedadam", server_decay=0.9).resolved(CLIENT)
    assert aggregation_of(full) == FedAdam(decay=0.9)
    assert full.server_floor == FedAdam().floor
    for settings, said in (
        ({"aggregation": "fedavgm", "server_floor": 0.1}, "fedavgm has no server_floor"),
        ({"server_learning_rate": 0.1}, "fedavg has no server_learning_rate"),
        ({"aggregation": "fedmedian"}, "no client's own is seen"),
        ({"aggregation": "fedavgopt"}, "no client's own is seen"),
    ):
        with pytest.raises(ConfigError, match=said):
            method(SCHEMA, **settings).resolved(CLIENT)
    for settings in ({"aggregation": "fedadam"}, {"proximal": 0.1}):
        with pytest.raises(ConfigError, match="for records a round is one step"):
            method(SCHEMA, **settings).resolved(fs.Budget(epsilon=1.0))


class _Kept:
    """A client's own vector, as its view gives it."""

    def __init__(self, values):
        self.values, self.vector = np.array(values, np.float32), self

    def load(self):
        return self.values

    def save(self, values):
        self.values = values


def steps_of(rule, gradients, actives):
    """The rows after steps along given gradients, of two clients with one weight each."""
    start = torch.tensor([[1.0], [1.0]])
    weights, taken = start, torch.zeros(2, 1)
    for gradient, active in zip(gradients, actives, strict=True):
        given = torch.tensor(active)[:, None]
        weights = rule.step(weights, torch.tensor(gradient)[:, None], given)
        taken += given
    return rule.rows(weights - start, taken, lambda at: 10 * at).tolist()


# The second client comes to the end of its records after one step.
GRADIENTS, ACTIVE = [(1.0, 2.0), (3.0, 99.0)], [(1.0, 1.0), (1.0, 0.0)]


def test_fednova_sends_the_mean_step():
    rows = steps_of(Normalised(0.1), GRADIENTS, ACTIVE)
    np.testing.assert_allclose(rows, [[-0.2], [-0.2]], rtol=1e-6)
    weights = np.array([1.0], np.float32)
    FedNova(learning_rate=3.0).step(weights, np.array([-0.2], np.float32), np.zeros((0, 1)))
    assert weights[0] == pytest.approx(0.4)


def test_fednag_sends_weights_and_momentum():
    """v: half of -.4, less .1, is -.3; w by half of v, less .1: -.25. Then -.45, and -.525 more."""
    rule = Accelerated(0.1, 0.5, torch.tensor([-0.4]), 2)
    rows = steps_of(rule, GRADIENTS, ACTIVE)
    # The second: v -.4, and w by -.4.
    np.testing.assert_allclose(rows, [[-0.775, -0.05], [-0.4, 0.0]], rtol=1e-5, atol=1e-7)
    weights, memory = np.array([1.0], np.float32), np.array([[-0.4]], np.float32)
    FedNAG().step(weights, np.array([-0.5, 0.1], np.float32), memory)
    assert weights[0] == pytest.approx(0.5) and memory[0, 0] == pytest.approx(-0.3)


@pytest.mark.parametrize("by_gradient", [False, True])
def test_scaffold_corrects_steps_and_sends_the_change_of_a_clients_variate(by_gradient):
    """Of variates .3 (the server's), .5 and .1: steps are .2 more and .2 less."""
    views = [_Kept([0.5]), _Kept([0.1])]
    rule = Controlled(0.1, torch.tensor([0.3]), views, torch.tensor([1.0]), by_gradient)
    rows = steps_of(rule, GRADIENTS, ACTIVE)
    # First -.1 + .2 and -.3 + .2; second -.2 - .2. Option ii: minus the mean step, and .2 more or
    # less; option i: .1 times a gradient of 10.
    fresh = [1.0, 1.0] if by_gradient else [0.2, 0.2]
    wanted = [[0.0, fresh[0] - 0.5], [-0.4, fresh[1] - 0.1]]
    np.testing.assert_allclose(rows, wanted, rtol=1e-5, atol=1e-6)
    assert [view.values.tolist() for view in views] == [pytest.approx([one]) for one in fresh]
    weights, memory = np.array([1.0], np.float32), np.array([[0.3]], np.float32)
    Scaffold2(share=0.5).step(weights, np.array([-0.2, 0.1], np.float32), memory)
    assert weights[0] == pytest.approx(0.8) and memory[0, 0] == pytest.approx(0.35)


def test_a_client_without_records_keeps_its_variate():
    views = [_Kept([0.5])]
    rule = Controlled(0.1, torch.tensor([0.3]), views, torch.tensor([1.0]), by_gradient=True)
    rows = rule.rows(torch.zeros(1, 1), torch.zeros(1, 1), lambda at: at)
    assert rows.tolist() == [[0.0, 0.0]] and views[0].values.tolist() == [0.5]


def test_what_changes_clients_own_steps_is_the_classifiers_alone():
    for method, said in ((fs.FedVAE, "classifier alone"), (fs.FedGAN, "classifier alone")):
        with pytest.raises(ConfigError, match=said):
            method(SCHEMA, aggregation="scaffold-2").resolved(CLIENT)
    with pytest.raises(ConfigError, match="say as server_learning_rate"):
        fs.FederatedClassifier(SCHEMA, aggregation="fednova").resolved(CLIENT)


def test_of_a_client_alone_no_aggregation_changes_the_way():
    """Without noise and clipping, what corrects for others comes to nothing: SCAFFOLD's variates
    are the same, FedNova's steps are put together again, FedNAG has no momentum."""

    def weights(**settings):
        told = {"rounds": 2, "rate": 1.0, "clip": 1e3, "scaled_by": "schema", "batch_size": 60}
        model = fs.FederatedClassifier(SCHEMA, **told, local_epochs=3, **settings)
        return model.fit([table(60, 1)], CLIENT, seed=1, progress=False).learned.weights

    plain = weights()
    for settings in (
        {"aggregation": "scaffold-2"},
        {"aggregation": "fednova", "server_learning_rate": 3.0},
        {"aggregation": "fednag", "server_momentum": 0.0},
    ):
        np.testing.assert_allclose(weights(**settings), plain, atol=1e-5)
    half = weights(aggregation="fedavgm", server_learning_rate=0.5, server_momentum=0.0)
    assert np.abs(half - plain).max() > 0.01
