"""Methods by name, and the choice among them."""

from __future__ import annotations

import pytest

from fedsynth.errors import ConfigError
from fedsynth.privacy.budget import Budget
from fedsynth.registry import METHODS, SETTINGS, choose, synthesizer
from fedsynth.schema import Categorical, ImageSchema, Schema
from tests.methods.small import SCHEMA


def test_every_method_is_known_by_its_name_and_takes_its_settings():
    tables = {"aim", "mst", "privbayes", "fedinfer", "private-fusion", "fedctgan", "pate"}
    both = {"fedvae", "mean-embedding", "fusion", "hybrid-fusion", "fusion-gan"}
    both |= {"fedgan", "pate-gan"}
    assert set(METHODS) == set(SETTINGS) == tables | both
    for name, method in METHODS.items():
        assert method.name == name
        assert isinstance(synthesizer(name, SCHEMA).settings, SETTINGS[name])
    with pytest.raises(ConfigError, match="did you mean 'aim'"):
        synthesizer("aims", SCHEMA)


def test_the_choice_rests_on_public_facts_and_says_why():
    budget = Budget(epsilon=1.0)
    assert choose(SCHEMA, budget).method == "aim"
    assert "5 columns" in choose(SCHEMA, budget).reason
    images = choose(ImageSchema(shape=(8, 8)), budget)
    assert (images.method, "images" in images.reason) == ("mean-embedding", True)
    wide = Schema(columns=[Categorical(name=f"c{k}", values=["a", "b"]) for k in range(400)])
    assert choose(wide, budget).method == "fedvae"
    assert "79,800 pairs" in choose(wide, budget).reason
