"""What the command line says of methods is what their settings are."""

from __future__ import annotations

import json

import pytest

from fedsynth.cli.methods import settings_of
from fedsynth.methods.settings import MethodSettings
from fedsynth.registry import ENTRIES, SETTINGS


@pytest.mark.parametrize("name", ENTRIES)
def test_every_setting_has_a_meaning_and_says_what_it_may_be(name):
    settings = settings_of(SETTINGS[name])
    assert [one.name for one in settings] == list(SETTINGS[name].model_fields)
    assert [one.name for one in settings if not (one.meaning and one.allowed)] == []


def test_defaults_are_those_of_the_settings(call):
    code, out, _ = call("methods", "fedvae", "--json")
    told = {one["name"]: one["default"] for one in json.loads(out)["settings"]}
    assert code == 0 and told == json.loads(SETTINGS["fedvae"]().model_dump_json())


def test_attributes_that_are_named_together_share_their_meaning():
    class Settings(MethodSettings):
        """Of nothing.

        Attributes:
            low, high: ends,
                both included.
            clip: bound: of a row.
        """

        low: int = 1
        high: int = 2
        clip: float | None = None

    meanings = {one.name: one.meaning for one in settings_of(Settings)}
    both = "ends, both included."
    assert meanings == {"low": both, "high": both, "clip": "bound: of a row."}


def test_all_methods_are_listed_and_one_is_described(call):
    code, out, _ = call("methods")
    assert code == 0 and all(name in out and f"fs.{ENTRIES[name].kind}" in out for name in ENTRIES)
    assert list(json.loads(call("methods", "--json")[1])) == list(ENTRIES)
    code, out, _ = call("methods", "aim")
    assert code == 0 and "bins wanted for a numeric column; of AIM the most" in out


def test_an_unknown_method_is_answered_with_the_nearest(call):
    code, _, err = call("methods", "aimm")
    assert code == 2 and err == "Error: there is no method 'aimm'; did you mean 'aim'?\n"


def test_version_is_told_as_an_option_too(call):
    assert call("--version")[:2] == call("version")[:2]
