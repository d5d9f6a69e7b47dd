"""What users give a synthesizer, made sure of before anything is done; errors say what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedsynth.agreed import demand_whole, suggestion
from fedsynth.errors import ConfigError
from fedsynth.privacy.budget import Budget


def budget_of(given: Budget | Mapping[str, Any] | float) -> Budget:
    """A budget, from its fields or epsilon alone too.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(given, Budget):
        return given
    if isinstance(given, Mapping):
        known = [own.name for own in fields(Budget)]
        for word in given:
            if word not in known:
                raise ConfigError(f"a budget has no field {word!r}{suggestion(word, known)}")
        if "epsilon" not in given:
            raise ConfigError("a budget needs epsilon: Budget(epsilon=1.0)")
        return Budget(**given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Budget(epsilon=given)
    raise ConfigError(f"budget must be a Budget, as Budget(epsilon=1.0), not {given!r:.80}")


def folder_of(given: str | Path) -> Path:
    """Raises ConfigError for what is no path."""
    if not isinstance(given, str | Path):
        raise ConfigError(f"folder must be a path, as text or a Path, not {given!r:.80}")
    return Path(given)


def demand_none(what: str, unknown: Iterable[str], known: Iterable[str]) -> None:
    """Raises ConfigError for keywords that are unknown, with the known one that is near."""
    for word in unknown:
        raise ConfigError(f"{what} has no option {word!r}{suggestion(word, known)}")


def demand_draw(rows: object, where: object, proportions: object, seed: object) -> None:
    """Raises ConfigError where a draw's arguments are not of their kinds."""
    demand_whole("rows", rows, 1)
    if seed is not None:
        demand_whole("seed", seed, 0)
    for name, value, example in (
        ("where", where, "{'column': value}"),
        ("proportions", proportions, "{'value': share}"),
    ):
        if not isinstance(value, Mapping | None):
            raise ConfigError(f"{name} must be a mapping, as {example}, not {value!r:.80}")
