"""Arguments of public functions, made sure of before anything is done; errors say what to write.

Whole numbers are :func:`fedsynth.agreed.demand_whole`'s, frames `schema.frames.demand_frame`'s.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from fedsynth.agreed import plain, shown, suggestion
from fedsynth.errors import ConfigError, MachineError

T = TypeVar("T")

_LONGEST = 255
"""Bytes of a file's name, on every file system in use."""


def demand_kind(name: str, value: object, kinds: type[T] | tuple[type[T], ...], what: str) -> T:
    """The value. ConfigError ("{name} must be {what}, not ..") where it is of another kind."""
    if not isinstance(value, kinds):
        raise ConfigError(f"{name} must be {what}, not {shown(value)}")
    return value


def demand_path(name: str, value: object) -> Path:
    """The path. ConfigError for what is none, an empty text included; MachineError for a name that
    no disk holds."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ConfigError(f"{name} must be a path, as text or a Path, not {shown(value)}")
    path = Path(value)
    try:
        longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
    except UnicodeError:
        longest = _LONGEST + 1
    if "\0" in str(path) or longest > _LONGEST:
        raise MachineError(
            f"{name}: {str(path)!r:.80} can be no file's name, which has {_LONGEST} bytes at most "
            "and none that is 0: choose another"
        )
    return path


def demand_number(
    name: str,
    value: object,
    what: str = "a finite number",
    fits: Callable[[float], bool] = math.isfinite,
) -> float:
    """The value as a float. ConfigError where it is no number, or none that fits."""
    # NumPy's are Real too; texts and truth values are not meant.
    if not isinstance(value, Real) or isinstance(value, bool) or not fits(float(value)):
        raise ConfigError(f"{name} must be {what}, not {shown(value)}")
    return float(value)


def demand_flag(name: str, value: object) -> bool:
    """The value as a bool. ConfigError for anything but True and False: "no" would mean yes."""
    return demand_kind(name, plain(value), bool, "True or False")


def demand_known(name: str, value: object, known: Iterable[str]) -> str:
    """The value. ConfigError where it is none of the words that are known."""
    words = list(known)
    if not isinstance(value, str) or value not in words:
        hint = suggestion(value, words) if isinstance(value, str) else f"; known are {_list(words)}"
        raise ConfigError(f"{name} cannot be {shown(value)}{hint}")
    return value


def demand_mapping(name: str, value: object, example: str) -> Mapping[Any, Any]:
    """The value. ConfigError where it is no mapping."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be a mapping, as {example}, not {shown(value)}")
    return value


def demand_names(name: str, value: object, known: Iterable[str]) -> tuple[str, ...]:
    """Names of columns: of a list, or a single one given as a text.

    Raises:
        ConfigError: no texts, a name twice, or one that is not known.
    """
    names = (value,) if isinstance(value, str) else value
    if isinstance(names, Mapping) or not isinstance(names, Iterable) or hasattr(names, "columns"):
        raise ConfigError(f"{name} must be a column's name or a list of them, not {shown(value)}")
    found, words = list(names), list(known)
    for place, one in enumerate(found):
        if not isinstance(one, str):
            raise ConfigError(f"{name} must be names of columns: {shown(one)} is none")
        if one not in words:
            raise ConfigError(f"{name}: there is no column {one!r}{suggestion(one, words)}")
        if one in found[:place]:
            raise ConfigError(f"{name}: {one!r} is named twice; name each once")
    return tuple(found)


def _list(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
