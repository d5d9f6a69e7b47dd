"""How a table's file is written, where its kind leaves that open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from fedsynth.agreed import Agreed, shown
from fedsynth.errors import ConfigError, FedsynthError

_TABS = ("tab", "\\t")
_ENCODINGS = {"cp1252": "Windows-1252", "utf-8": "UTF-8"}


def _spell_separator(value: object) -> object:
    if value is None:
        return None
    # A shell and YAML make it hard to write one.
    text = "\t" if value in _TABS else value
    fits = isinstance(text, str) and len(text) == 1 and (text == "\t" or " " <= text < "\x7f")
    if not fits or str(text).isalnum() or text == '"':
        raise ValueError(
            f"must be one character between cells, such as ';' or tab, and no letter, digit or "
            f"quote; not {value!r:.20}"
        )
    return text


def _check_encoding(value: object) -> object:
    if value is None:
        return None
    try:
        # Some codecs turn texts into texts, or bytes into bytes: decoding tells.
        b"a".decode(str(value))
    except UnicodeDecodeError:
        # Of those that take several bytes for a letter.
        return str(value)
    except (LookupError, UnicodeError):
        raise ValueError(
            f"{shown(value)} is no encoding of texts that Python knows; common are utf-8, cp1252 "
            "(Windows), latin-1 and utf-16"
        ) from None
    return str(value)


def _spell_sheet(value: object) -> object:
    """Sheets called after a year have numbers for names in YAML."""
    return str(value) if type(value) is int else value


class Dialect(Agreed):
    """How a CSV file is written, and which sheet of an Excel workbook is meant.

    Attributes:
        separator: the character between cells.
        decimal: what stands before the decimals of a number.
        encoding: of its letters, by Python's name.
        sheet: the workbook's sheet, by name.
    """

    fault: ClassVar[type[FedsynthError]] = ConfigError

    separator: Annotated[
        str | None, BeforeValidator(_spell_separator), Field(description="one character")
    ] = None
    decimal: Annotated[Literal[",", "."] | None, Field(description='"," or "."')] = None
    encoding: Annotated[
        str | None, BeforeValidator(_check_encoding), Field(description="an encoding")
    ] = None
    sheet: Annotated[
        str | None, BeforeValidator(_spell_sheet), Field(description="a sheet's name")
    ] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return "how the table is written"

    @property
    def said(self) -> dict[str, str]:
        """What is not left open, by key."""
        values = {key: getattr(self, key) for key in Dialect.model_fields}
        return {key: value for key, value in values.items() if value is not None}


def describe_guesses(guessed: Mapping[str, str]) -> str:
    """What was found out of a file, for its reader."""
    read = [_describe(key, text) for key, text in guessed.items()]
    return "read with " + " and ".join([", ".join(read[:-1]), read[-1]] if read[1:] else read)


def _describe(key: str, text: str) -> str:
    if key == "separator":
        return f"{spell(text)} between cells"
    if key == "sheet":
        return f"its first sheet {text!r} of several"
    if key == "decimal":
        return "decimal commas" if text == "," else "decimal points"
    return f"{_ENCODINGS.get(text, text)} letters"


def spell(separator: str) -> str:
    """A separator as it is called in messages."""
    return "tabs" if separator == "\t" else f"'{separator}'"


def quote(text: str) -> str:
    """What was found out, as a job file may say it."""
    return "tab" if text == "\t" else text if text.isascii() and text[0].isalnum() else f'"{text}"'
