"""Mechanisms, a module each, and their registry: terms name one of these."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.mechanisms.exponential import Exponential
from fedsynth.privacy.mechanisms.gaussian import Gaussian
from fedsynth.privacy.mechanisms.laplace import Laplace
from fedsynth.privacy.mechanisms.mechanism import Mechanism
from fedsynth.privacy.mechanisms.stable import Stable
from fedsynth.privacy.rows.clipping import Norm

_KINDS: dict[str, type[Any]] = {}


def register(kind: type[Any]) -> None:
    """Make a mechanism known under its name. Raises ConfigError where the name is taken."""
    if kind.name in _KINDS:
        raise ConfigError(f"there is a mechanism {kind.name!r} already")
    _KINDS[kind.name] = kind


def names() -> tuple[str, ...]:
    """Of all mechanisms that are known."""
    return tuple(_KINDS)


@lru_cache(maxsize=256)
def mechanism_of(name: str, alpha: float | None = None) -> Mechanism:
    """The mechanism of that name, of the index ``alpha`` where it is one of a family.

    Raises:
        ConfigError: an unknown name.
        PrivacyError: an index without a family, or the other way round.
    """
    kind = _kind_of(name)
    if bool(fields(kind)) != (alpha is not None):
        raise PrivacyError("stable noise needs its index alpha, and no other mechanism has one")
    made: Mechanism = kind() if alpha is None else kind(alpha)
    return made


def norm_of(name: str) -> Norm:
    """The norm of the clip that goes with a mechanism. Raises ConfigError for an unknown one."""
    norm: Norm = _kind_of(name).norm
    return norm


def _kind_of(name: str) -> type[Any]:
    if name not in _KINDS:
        raise ConfigError(f"mechanism must be one of {', '.join(_KINDS)}, not {name!r}")
    return _KINDS[name]


for _kind in (Gaussian, Laplace, Exponential, Stable):
    register(_kind)
