"""The server half of a fit: what it divides by, and what matching the label tables does."""

import math

import numpy as np
import pytest
import torch

from fedsynth.errors import FederationError
from fedsynth.federation.request import Released
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.vae import server
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.models import vae
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import LEDGER
from fedsynth.privacy.trail.ledger import Ledger
from tests.methods.small import SCHEMA, answering, owners, table


@pytest.mark.parametrize(
    ("settings", "clients", "expected"),
    [
        ({"rate": 1.0}, 4, 4.0),
        ({"rate": 0.4}, 4, 1.6),
        ({"rate": 0.1, "sampling": "fixed"}, 3, 1.0),
        ({"rate": 0.5, "sampling": "fixed"}, 4, 2.0),
    ],
)
@pytest.mark.parametrize("answered", [0, 1, 3])
def test_a_client_step_is_the_sum_over_the_expected_number_whoever_answered(
    monkeypatch, settings, clients, expected, answered
):
    # Dividing by those who answered would need the number that coin flips keep secret.
    genuine = Channel.sum

    def ones(self, task, terms, dim, **rest):
        if task != "vae-training":
            return genuine(self, task, terms, dim, **rest)
        return Released(np.ones(dim), clients, answered)

    monkeypatch.setattr(Channel, "sum", ones)
    began = []
    begun = server.Training._begin

    def remembered(self):
        state = begun(self)
        began.append(state.descent.optimiser.weights.copy())
        return state

    monkeypatch.setattr(server.Training, "_begin", remembered)
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=clients)
    synth = FedVAE(SCHEMA, rounds=3, hidden=(4,), latent=2, **settings)
    synth.fit({f"c{i}": table(5, seed=i) for i in range(clients)}, budget)
    moved = synth.learned.theta - began[0]
    np.testing.assert_allclose(moved, 3 / expected, rtol=1e-5)


def decoded(spec, theta, label):
    """One-way distributions of all columns given a class, [cells], over many latent draws."""
    u = torch.randn(20_000, spec.latent, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        logits = vae.decode(spec, torch.from_numpy(theta), u, torch.full((len(u),), label))
        return vae.probabilities(spec, logits).mean(0).numpy()


def test_the_released_decoder_has_the_label_tables_one_way_distributions(monkeypatch):
    seen = []
    genuine = server.Training._match

    def watched(self, spec, theta, profiles):
        after = genuine(self, spec, theta, profiles)
        seen.append((spec, theta.copy(), profiles, after))
        return after

    monkeypatch.setattr(server.Training, "_match", watched)
    settings = {"rounds": 6, "rate": 1.0, "hidden": (8,), "latent": 2, "learning_rate": 3.0}
    synth = FedVAE(SCHEMA, **settings, pair_share=0.0)
    synth.fit(owners(200, 100), Budget(epsilon=1.0, curious=1))
    ((spec, before, profiles, after),) = seen
    np.testing.assert_array_equal(synth.learned.theta, after)
    for label in range(spec.classes):
        off_before = np.abs(decoded(spec, before, label) - profiles[label]).sum()
        off_after = np.abs(decoded(spec, after, label) - profiles[label]).sum()
        # Noisy training moved the decoder away from the tables; matching brings it back.
        assert off_before > 0.2
        assert off_after < 0.25 * off_before
        assert off_after < 0.1


def test_a_failed_fit_lets_go_of_its_ledger_in_the_same_process(monkeypatch, tmp_path):
    made = FedVAE(SCHEMA, rounds=3, hidden=(4,), latent=2, pair_share=0.0)
    budget = Budget(epsilon=math.inf)
    with monkeypatch.context() as few, pytest.raises(FederationError):
        answering(few, 1)
        made.fit(owners(20, 20, 20), budget, folder=tmp_path)
    # `made` is still there, and with it everything that the failed fit held.
    made.fit(owners(20, 20, 20), budget, folder=tmp_path, resume=True)
    labels = [event.label for event in Ledger.read(tmp_path / LEDGER).events]
    assert labels == ["histogram", "histogram", "label-tables", *["vae-gradient"] * 3]
