"""A space of settings as people write it: in a file, or on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedsynth.agreed import suggestion
from fedsynth.errors import ConfigError
from fedsynth.tuning.spaces import Choice
from fedsynth.yaml_files import parse_value, read_yaml

_FILES = (".yaml", ".yml", ".json")
_RANGE = ("from", "to", "log")
_FORM = (
    "settings with a range or a list of values each, such as "
    "{learning_rate: {from: 0.01, to: 0.3, log: true}, l2_regularization: [0, 1, 10]}"
)


def read_space(given: str) -> dict[str, Choice]:
    """Choices by setting, as :func:`fedsynth.tune` takes them.

    Args:
        given: a .yaml or .json file, or the same as text: by setting {from: low, to: high} (with
            log: true on a logarithmic scale), or a list of values.

    Raises:
        ConfigError: it is neither, or a choice of another form.
    """
    path = Path(given)
    found = read_yaml(path, ConfigError) if path.suffix in _FILES else parse_value(given)
    if not isinstance(found, Mapping) or not found:
        raise ConfigError(f"space: give a .yaml or .json file, or {_FORM}")
    return {str(name): _choice(str(name), choice) for name, choice in found.items()}


def _choice(name: str, choice: object) -> Choice:
    if isinstance(choice, list):
        # Layers of a network are one value.
        return [tuple(value) if isinstance(value, list) else value for value in choice]
    if not isinstance(choice, Mapping):
        raise ConfigError(f"space: {name} is {choice!r}; give {_FORM}")
    for key in choice:
        if key not in _RANGE:
            raise ConfigError(
                f"space: {name} has a range with {key!r}{suggestion(str(key), _RANGE)}; it "
                "takes from, to and log"
            )
    missing = [key for key in ("from", "to") if key not in choice]
    if missing:
        raise ConfigError(f"space: {name} has a range without {' and '.join(missing)}")
    log: Any = choice.get("log", False)
    if not isinstance(log, bool):
        raise ConfigError(f"space: {name}: log is true or false, not {log!r}")
    ends = choice["from"], choice["to"]
    return (*ends, "log") if log else ends
