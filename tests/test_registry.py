"""Methods by name, and the choice among them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fedsynth.errors import ConfigError
from fedsynth.jobs.config import load_config
from fedsynth.privacy.budget import Budget
from fedsynth.registry import ENTRIES, METHODS, SETTINGS, by_name, choose, make, synthesizer
from fedsynth.schema import Categorical, ImageSchema, Schema
from tests.methods.small import SCHEMA

IMAGES = ImageSchema(shape=(8, 8))
WIDE = Schema(columns=[Categorical(name=f"c{k}", values=["a", "b"]) for k in range(400)])


@pytest.mark.parametrize("name", ENTRIES)
def test_a_method_is_what_its_entry_says(name):
    entry, method = ENTRIES[name], METHODS[name]
    assert (method.name, method.__name__) == (name, entry.kind)
    assert method.settings_type is SETTINGS[name]
    assert isinstance(make(name, SCHEMA).settings, SETTINGS[name])
    assert entry.description


def test_a_look_at_names_imports_no_method():
    code = (
        "import sys; from fedsynth.registry import METHODS, SETTINGS; "
        "found = list(METHODS), 'aim' in SETTINGS, len(METHODS); "
        "print([m for m in sys.modules if m.startswith(('fedsynth.methods', 'fedsynth.papers'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("taken", [{"name": "aim"}, {"kind": "AIM"}])
def test_no_name_is_registered_twice(taken):
    other = replace(ENTRIES["mst"], **{"name": "new", "kind": "New", **taken})
    message = r"cannot be registered beside 'aim' \(fedsynth\.methods\.marginal\.aim\.AIM\)"
    with pytest.raises(ConfigError, match=message):
        by_name([*ENTRIES.values(), other])


def test_a_misspelt_method_is_told_the_right_one(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'aim'"):
        synthesizer("aims", SCHEMA)
    with pytest.raises(ConfigError, match="did you mean 'privbayes'"):
        load_config("demo", ["method=privbaies"])
    with pytest.raises(KeyError):
        _ = METHODS["aims"]


def test_a_synthesizer_by_name_takes_the_settings_of_its_class():
    assert synthesizer("aim", SCHEMA, bins=9).settings.bins == 9
    assert synthesizer("auto", SCHEMA).name == choose(SCHEMA).method
    with pytest.raises(ConfigError, match="unknown key 'bin'; did you mean 'bins'"):
        synthesizer("aim", SCHEMA, bin=9)


def test_what_makes_no_rows_is_no_synthesizer():
    with pytest.raises(ConfigError, match="makes no rows"):
        synthesizer("federated-classifier", SCHEMA)


def test_the_docs_tell_of_every_method_and_of_no_other():
    text = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")
    table = text.split("## Which method")[1].split("\n\n")[1].splitlines()[2:]
    told = [name.strip("` ") for row in table for name in row.split("|")[1].split(",")]
    assert sorted(told) == sorted(ENTRIES)


def test_the_choice_rests_on_public_facts_and_says_why():
    budget = Budget(epsilon=1.0)
    assert choose(SCHEMA, budget).method == "aim"
    assert "5 columns" in choose(SCHEMA, budget).reason
    images = choose(IMAGES, budget)
    assert (images.method, "images" in images.reason) == ("mean-embedding", True)
    assert choose(WIDE, budget).method == "fedvae"
    assert "79,800 pairs" in choose(WIDE, budget).reason


@pytest.mark.parametrize("schema", [SCHEMA, IMAGES, WIDE], ids=["table", "images", "wide"])
def test_a_chosen_method_is_registered(schema):
    assert choose(schema, Budget(epsilon=1.0)).method in ENTRIES
