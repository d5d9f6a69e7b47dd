"""Spaces of settings as people write them."""

from __future__ import annotations

import json

import pytest

from fedsynth.errors import ConfigError
from fedsynth.tuning.reading import read_space

WRITTEN = {
    "learning_rate": {"from": 0.01, "to": 0.3, "log": True},
    "max_iter": {"from": 50, "to": 200},
    "hidden_layer_sizes": [[16], [32, 32]],
    "weights": ["uniform", "distance"],
}
READ = {
    "learning_rate": (0.01, 0.3, "log"),
    "max_iter": (50, 200),
    "hidden_layer_sizes": [(16,), (32, 32)],
    "weights": ["uniform", "distance"],
}


def test_a_file_and_a_text_say_the_same(tmp_path):
    (tmp_path / "space.json").write_text(json.dumps(WRITTEN))
    assert read_space(str(tmp_path / "space.json")) == read_space(json.dumps(WRITTEN)) == READ


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("learning_rate", r"give a \.yaml or \.json file"),
        ("{}", r"give a \.yaml or \.json file"),
        ("missing.yaml", "missing.yaml"),
        ("{C: 3}", "C is 3; give settings with a range"),
        ("{C: {from: 1, two: 3}}", "did you mean 'to'"),
        ("{C: {from: 1}}", "without to"),
        ("{C: {from: 1, to: 3, log: 2}}", "log is true or false"),
    ],
)
def test_another_form_is_named_with_the_setting(given, said):
    with pytest.raises(ConfigError, match=said):
        read_space(given)
