"""Units of privacy, a module each, and their registry: terms and budgets name one of these."""

from __future__ import annotations

from fedsynth.errors import ConfigError
from fedsynth.privacy.units.client import CLIENT
from fedsynth.privacy.units.person import PERSON
from fedsynth.privacy.units.record import RECORD
from fedsynth.privacy.units.unit import Unit

_UNITS: dict[str, Unit] = {}


def register(unit: Unit) -> None:
    """Make a unit known under its name. Raises ConfigError where the name is taken."""
    if unit.name in _UNITS:
        raise ConfigError(f"there is a unit {unit.name!r} already")
    _UNITS[unit.name] = unit


def names() -> tuple[str, ...]:
    """Of all units that are known."""
    return tuple(_UNITS)


def unit_of(name: str) -> Unit:
    """The unit of that name. Raises ConfigError for an unknown one."""
    if name not in _UNITS:
        raise ConfigError(f"unit must be one of {', '.join(_UNITS)}, not {name!r}")
    return _UNITS[name]


for _unit in (RECORD, CLIENT, PERSON):
    register(_unit)
