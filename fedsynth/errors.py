"""Errors that reach a user: each says what is wrong, where, and what to do.

The command line prints the message alone and exits with the class's code, so no message may carry a
private value that could end in a log handed on, and none is a library's bare text.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import ClassVar

Caution = Callable[[str], None]
"""Called with what whoever runs a job is to know before anything is asked, a sentence each."""


class PrivacyWarning(UserWarning):
    """What to know of a job before it asks anybody."""


class Figures(str):
    """A caution with exact figures of private rows, for their owner's eyes.

    Attributes:
        bare: the same without the figures, for what may end in a log.
    """

    __slots__ = ("bare",)

    bare: str

    def __new__(cls, text: str, bare: str) -> Figures:
        figures = super().__new__(cls, text)
        figures.bare = bare
        return figures


def warn_of(sentence: str) -> None:
    """Caution by a :class:`PrivacyWarning`, as Python users get it; warnings end in logs."""
    said = sentence.bare if isinstance(sentence, Figures) else sentence
    # At the line of whoever called fedsynth, however deep it is said.
    frame, level = sys._getframe(1), 2  # noqa: SLF001
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("fedsynth."):
        frame, level = frame.f_back, level + 1
    warnings.warn(said, PrivacyWarning, stacklevel=level)


class FedsynthError(Exception):
    """Any failure that fedsynth foresees."""

    exit_code: ClassVar[int] = 1


class ConfigError(FedsynthError):
    """A job file, an option or an argument is wrong."""

    exit_code: ClassVar[int] = 2


class DataError(FedsynthError):
    """A table or an image file cannot be used as it is."""

    exit_code: ClassVar[int] = 3


class SchemaError(DataError):
    """A schema contradicts itself, or a table contradicts its schema."""


class PrivacyError(FedsynthError):
    """A step would weaken or void the guarantee, so it is refused."""

    exit_code: ClassVar[int] = 4


class BudgetExceeded(PrivacyError):
    """A release would cost more than the budget that is left; nothing was asked of anybody."""


class FederationError(FedsynthError):
    """Too few clients gave a usable answer."""

    exit_code: ClassVar[int] = 5


class ReleaseError(FedsynthError):
    """A release directory is damaged, incomplete or does not verify."""

    exit_code: ClassVar[int] = 6


class MachineError(FedsynthError):
    """The machine refuses: a full disk, a missing permission or folder, too little memory."""

    exit_code: ClassVar[int] = 7


class UnwrittenError(MachineError, PrivacyError):
    """The disk does not take a charge, or what it paid for: nothing is asked or given then."""
