"""Plans to the digit: what jobs on Adult's schema cost, by the accountant as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedsynth as fs

SCHEMA = fs.load_schema(Path(__file__).parents[2] / "configs" / "schemas" / "adult.yaml")


def test_aim_distributed(exact_costs):
    found = fs.plan(fs.AIM(SCHEMA), fs.Budget(epsilon=1.0, delta=1e-5, curious=0), 10)
    assert found.epsilon == pytest.approx(0.999780456347892, rel=1e-10)
    noise = (8.34361432364653, 5.899826267855671, 11.799652535711342)
    assert [q.noise_multiplier for q in found.questions] == pytest.approx(noise, rel=1e-12)


def test_one_message(exact_costs):
    found = fs.plan(fs.FedInfer(SCHEMA), fs.Budget(epsilon=1, delta=1e-5, curious=0), 10)
    assert found.epsilon == pytest.approx(0.9997804308792654, rel=1e-10)
    assert found.questions[0].noise_multiplier == pytest.approx(3.7313777611429146, rel=1e-12)
