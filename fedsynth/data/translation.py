"""In which words an owner's table is written, where they are not the schema's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from fedsynth.agreed import Agreed, plain, shown
from fedsynth.errors import ConfigError, FedsynthError


def _texts(value: object) -> object:
    """Names are texts, whatever YAML took them for."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"must be a mapping such as {{AGE: age}}, not {shown(value)}")
    return {str(plain(key)): str(plain(entry)) for key, entry in value.items()}


def _by_column(value: object) -> object:
    """By column, texts as they stand in a cell, a number as its text; null is a missing cell."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(
        isinstance(words, Mapping) and words for words in value.values()
    ):
        raise ValueError("must have a mapping for each column, such as {sex: {female: F}}")
    # Job files are read without numbers.
    from fedsynth.schema.columns import text_of

    return {
        str(plain(name)): {
            text_of(plain(theirs)): None if ours is None else text_of(plain(ours))
            for theirs, ours in words.items()
        }
        for name, words in value.items()
    }


def _listed(value: object) -> object:
    if value is None:
        return None
    given = plain(value)
    if not isinstance(given, list) or not given:
        raise ValueError(f"must be a list of the table's columns, not {shown(value)}")
    return tuple(str(name) for name in given)


class Translation(Agreed):
    """What a table has in other words than the schema: names, notations, values.

    Attributes:
        drop: columns, by the table's own names, that are not read.
        rename: the schema's name of a column, by the table's own.
        formats: of dates and numbers that are written otherwise, by the schema's name: what the
            column's `format` would be, such as "%d.%m.%Y" or "1.234,50". A cell that is written in
            no such way is read as the schema has it.
        recode: by the schema's name of a column, the schema's value by the table's own; null is a
            missing cell. What is not named stays as it is.
    """

    fault: ClassVar[type[FedsynthError]] = ConfigError

    drop: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_listed),
        Field(description="a list of the table's columns"),
    ] = None
    rename: Annotated[
        dict[str, str] | None,
        BeforeValidator(_texts),
        Field(description="a mapping of the schema's names by the table's own"),
    ] = None
    formats: Annotated[
        dict[str, str] | None,
        BeforeValidator(_texts),
        Field(description='a mapping of columns to formats, such as "%d.%m.%Y"'),
    ] = None
    recode: Annotated[
        dict[str, dict[str, str | None]] | None,
        BeforeValidator(_by_column),
        Field(description="a mapping of columns to the schema's values by the table's own"),
    ] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return "how the table is translated"

    @property
    def translated(self) -> dict[str, Any]:
        """What is said, by key."""
        values = {key: getattr(self, key) for key in Translation.model_fields}
        return {key: value for key, value in values.items() if value is not None}
