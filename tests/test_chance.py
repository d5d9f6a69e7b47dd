"""Chance has no part in a run of the tests, but where it is asked for."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import settings

from fedsynth.privacy.noise import NoiseSource

pytestmark = pytest.mark.skipif(
    settings.get_current_profile_name() == "explore", reason="chance is asked for"
)


def named(name: str) -> list[int]:
    return np.frombuffer(np.random.default_rng(list(name.encode())).bytes(16), np.uint64).tolist()


@pytest.fixture(scope="module")
def drawn() -> list[int]:
    return NoiseSource().words(2).tolist()


@pytest.mark.parametrize("again", [False, True])
def test_noise_is_a_tests_or_fixtures_own_whatever_ran_before(request, drawn, again):
    assert not NoiseSource().insecure
    assert drawn == named("tests/test_chance.py::drawn")
    assert NoiseSource().words(2).tolist() == named(request.node.nodeid)
    assert NoiseSource().words(2).tolist() != named(request.node.nodeid)


@pytest.mark.fresh_noise
def test_noise_is_the_operating_systems_where_it_is_the_matter(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or bytes(count))
    assert NoiseSource().words(2).tolist() == [0, 0] and asked == [16]


def test_examples_are_the_same_in_every_run():
    assert settings().derandomize
