"""What users give a synthesizer, made sure of before anything is done; errors say what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from fedsynth.agreed import demand_whole, shown, suggestion
from fedsynth.demands import demand_mapping
from fedsynth.errors import ConfigError
from fedsynth.privacy.budget import Budget

OTHER_NAMES = {"num_rows": "rows", "n": "rows", "random_state": "seed"}
"""Arguments as SDV, pandas and scikit-learn call them, and as they are called here."""


def budget_of(given: Budget | Mapping[str, Any] | float | None, **words: Any) -> Budget:
    """A budget, from its fields or epsilon alone too.

    Args:
        given: the budget, a mapping of its fields, or epsilon.
        words: its fields, instead; None where one was not given.

    Raises:
        ConfigError: it is none, there is none, or there are two.
    """
    said = {name: value for name, value in words.items() if value is not None}
    if given is not None and said:
        raise ConfigError(
            f"a budget was given, and {', '.join(said)} beside it: say all of it in one place, as "
            "epsilon=1.0, delta=1e-5 or Budget(epsilon=1.0, delta=1e-5)"
        )
    if isinstance(given, Budget):
        return given
    if given is None or isinstance(given, Mapping):
        named = said if given is None else given
        known = [own.name for own in fields(Budget)]
        for word in named:
            if word not in known:
                raise ConfigError(f"a budget has no field {word!r}{suggestion(word, known)}")
        if "epsilon" not in named:
            raise ConfigError(
                "say what it may cost, epsilon=1.0 or Budget(epsilon=1.0): there is no default "
                "budget (common epsilons: 0.3 to 10)"
            )
        return Budget(**named)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Budget(epsilon=given)
    raise ConfigError(f"budget must be a Budget, as Budget(epsilon=1.0), not {shown(given)}")


def demand_none(what: str, unknown: Iterable[str], known: Iterable[str]) -> None:
    """Raises ConfigError for keywords that are unknown, with the known one that is near."""
    words = list(known)
    for word in unknown:
        ours = OTHER_NAMES.get(word)
        hint = f"; it is called {ours!r} here" if ours in words else suggestion(word, words)
        raise ConfigError(f"{what} has no option {word!r}{hint}")


def rename(what: str, given: dict[str, Any], words: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of ``given``, with those in place that came under another tool's names.

    Args:
        what: is called.
        given: arguments by name; None where one was not given.
        words: keywords that it does not know by these names.

    Raises:
        ConfigError: a keyword that is none, or an argument that was given twice.
    """
    for word, value in words.items():
        name = OTHER_NAMES.get(word, word)
        if name not in given:
            demand_none(what, (word,), given)
        if given[name] is not None:
            raise ConfigError(f"{what}: {word} is {name}, given already, by another name")
        given[name] = value
    return tuple(given.values())


def demand_rows(what: str, rows: object) -> int:
    """How many rows, at least 1. ConfigError for no such number, or none at all."""
    if rows is None:
        raise ConfigError(f"say how many rows to draw, as {what}(1_000)")
    return demand_whole("rows", rows, 1)


def demand_draw(where: object, proportions: object, seed: object) -> int | None:
    """The seed of a draw. ConfigError where its arguments are not of their kinds."""
    for name, value, example in (
        ("where", where, "{'column': value}"),
        ("proportions", proportions, "{'value': share}"),
    ):
        if value is not None:
            demand_mapping(name, value, example)
    return demand_seed(seed)


def demand_seed(seed: object) -> int | None:
    """The seed. ConfigError for what is no whole number of at least 0, nor None."""
    return None if seed is None else demand_whole("seed", seed, 0)
