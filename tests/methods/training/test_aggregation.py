"""How the server steps, against rounds worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError
from fedsynth.methods.training.aggregation.choosing import aggregation_of
from fedsynth.methods.training.aggregation.fedadagrad import FedAdagrad
from fedsynth.methods.training.aggregation.fedadam import FedAdam
from fedsynth.methods.training.aggregation.fedavg import FedAvg
from fedsynth.methods.training.aggregation.fedavgm import FedAvgM
from fedsynth.methods.training.aggregation.fedyogi import FedYogi
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


def test_a_client_alone_is_followed_as_the_aggregation_says():
    """Without noise and clipping two rounds of FedAvgM without momentum, at half the rate, go half
    as far as the client did; with FedAvg all the way."""

    def weights(**settings):
        told = {"rounds": 1, "rate": 1.0, "clip": 1e3, "scaled_by": "schema", "batch_size": 60}
        model = fs.FederatedClassifier(SCHEMA, **told, **settings)
        return model.fit([table(60, 1)], CLIENT, seed=1, progress=False).learned.weights

    start = weights(learning_rate=1e-30)
    whole = weights() - start
    half = weights(aggregation="fedavgm", server_learning_rate=0.5, server_momentum=0.0) - start
    assert np.abs(whole).max() > 0.01
    np.testing.assert_allclose(half, whole / 2, atol=1e-6)
