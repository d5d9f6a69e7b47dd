"""What a table or a set of images is, agreed in public before anything private is touched.

A schema fixes every array shape, so that contributions of different owners always add up. One that
was drafted from private rows says so in `provenance`, and so does every certificate made with it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from fedsynth.columns import (
    Boolean,
    Categorical,
    Column,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
)
from fedsynth.errors import SchemaError
from fedsynth.validation import Agreed, plain, suggestion
from fedsynth.yaml_files import read_yaml, write_yaml

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Continuous",
    "Datetime",
    "Identifier",
    "ImageSchema",
    "Integer",
    "Modelled",
    "Schema",
    "load_schema",
]

Provenance = Literal["declared", "private-data"]
_KINDS: dict[str, type[Agreed]] = {
    "categorical": Categorical,
    "boolean": Boolean,
    "integer": Integer,
    "continuous": Continuous,
    "datetime": Datetime,
    "identifier": Identifier,
}
_Self = TypeVar("_Self", bound="_Document")


def _column(value: object) -> object:
    """Build a column from a mapping here, where its kind and place can be named."""
    if not isinstance(value, Mapping):
        return value
    kind, name = value.get("kind"), value.get("name", "(unnamed)")
    if kind is None:
        raise SchemaError(f"column {name!r}: `kind` is needed, one of {', '.join(_KINDS)}")
    if kind not in _KINDS:
        raise SchemaError(f"column {name!r}: unknown kind {kind!r}{suggestion(kind, _KINDS)}")
    return _KINDS[kind](**{str(key): entry for key, entry in value.items()})


class _Document(Agreed):
    """What tables' and images' schemas share: a name, a provenance, a file, a digest."""

    name: Annotated[str | None, Field(description="a text")] = None
    description: Annotated[str | None, Field(description="a text")] = None
    provenance: Annotated[Provenance, Field(description="declared or private-data")] = "declared"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able content without the keys at their defaults; `from_dict` gives back an equal."""
        return {"kind": _kind_of(type(self)), **self.model_dump(mode="json", exclude_defaults=True)}

    @classmethod
    def from_dict(cls: type[_Self], content: Mapping[str, Any]) -> _Self:
        """Build from `to_dict`'s content.

        Raises:
            SchemaError: naming the column and key at fault.
        """
        values = {str(key): entry for key, entry in content.items()}
        kind = values.pop("kind", "table")
        if kind != _kind_of(cls):
            raise SchemaError(
                f"schema of kind {kind!r} where one of kind {_kind_of(cls)!r} is needed"
            )
        return cls(**values)

    @classmethod
    def load(cls: type[_Self], path: str | Path) -> _Self:
        """Read a YAML file.

        Raises:
            SchemaError: naming the file and the column and key at fault.
        """
        try:
            return cls.from_dict(read_yaml(path, SchemaError))
        except SchemaError as error:
            raise _in_file(error, path) from None

    def save(self, path: str | Path) -> None:
        """Write a YAML file that `load` reads back as an equal schema."""
        write_yaml(self.to_dict(), path)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: equal for all parties that agreed on the same."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class Schema(_Document):
    """The columns of a table, in order, the target, and the texts that mean "missing".

    `missing_values` holds for every column, except where a column declares the text as a value of
    its own (a category, a number within bounds). Empty cells always mean missing, by the same
    exception. A written table spells missing as the first of them.
    """

    columns: Annotated[
        tuple[Annotated[Column, BeforeValidator(_column)], ...],
        Field(min_length=1, description="a list of columns"),
    ]
    target: Annotated[str | None, Field(description="the name of a column")] = None
    missing_values: Annotated[
        tuple[str, ...], BeforeValidator(plain), Field(description="a list of texts, in quotes")
    ] = ("",)

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"schema {values['name']!r}" if values.get("name") else "schema"

    @model_validator(mode="after")
    def _consistent(self) -> Schema:
        names = [column.name for column in self.columns]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"columns declared twice: {', '.join(map(repr, repeated))}")
        if not self.modelled:
            raise ValueError("every column is an identifier, so there is nothing to learn")
        if self.target is not None:
            self._demand_target(names)
        return self

    def _demand_target(self, names: list[str]) -> None:
        if self.target not in names:
            raise ValueError(
                f"`target` {self.target!r} is no column{suggestion(self.target, names)}"
            )
        target = self.column(self.target)
        if isinstance(target, Identifier):
            raise ValueError(f"`target` {self.target!r} is an identifier, which is never learned")
        if isinstance(target, Categorical | Boolean) and target.missing:
            raise ValueError(
                f"`target` {self.target!r} may not be missing: drop the rows without a label, or "
                f"give it a category for them"
            )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able content without the keys at their defaults; `from_dict` gives back an equal."""
        content = super().to_dict()
        content["columns"] = [
            {"kind": column.kind, **column.model_dump(mode="json", exclude_defaults=True)}
            for column in self.columns
        ]
        return content

    @property
    def modelled(self) -> tuple[Modelled, ...]:
        """The columns without the identifiers, in order: what encodings and models see."""
        return tuple(column for column in self.columns if not isinstance(column, Identifier))

    def column(self, name: str) -> Modelled | Identifier:
        """The column of that name.

        Raises:
            SchemaError: if there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        known = [column.name for column in self.columns]
        raise SchemaError(f"column {name!r} is not in the schema{suggestion(name, known)}")

    @property
    def target_column(self) -> Modelled | None:
        """The column to predict, if there is one."""
        return next((column for column in self.modelled if column.name == self.target), None)

    @property
    def classes(self) -> int:
        """Number of categories of the target; 0 without a target or with a numeric one."""
        target = self.target_column
        return len(target.categories) if isinstance(target, Categorical | Boolean) else 0


class ImageSchema(_Document):
    """Images of one shape, (height, width) or (height, width, channels), and perhaps a label.

    `maximum` is the pixel value that means white: 255, or 16 for scikit-learn's digits.
    """

    shape: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        BeforeValidator(plain),
        Field(min_length=2, max_length=3, description="[height, width] or with channels third"),
    ]
    maximum: Annotated[int, Field(ge=1, le=255, description="an integer from 1 to 255")] = 255
    target: Annotated[
        Categorical | None,
        BeforeValidator(_column),
        Field(description="a categorical column"),
    ] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"image schema {values['name']!r}" if values.get("name") else "image schema"

    @model_validator(mode="after")
    def _consistent(self) -> ImageSchema:
        if self.target is not None and self.target.missing:
            raise ValueError("`target` may not be missing: drop the images without a label")
        return self

    def to_dict(self) -> dict[str, Any]:
        """JSON-able content without the keys at their defaults; `from_dict` gives back an equal."""
        content = super().to_dict()
        if self.target is not None:
            content["target"] = {"kind": "categorical", **content["target"]}
        return content

    @property
    def pixels(self) -> int:
        """Numbers in one image: height x width x channels."""
        return math.prod(self.shape)

    @property
    def classes(self) -> int:
        """Number of labels, 0 without a target."""
        return len(self.target.categories) if self.target is not None else 0


def load_schema(path: str | Path) -> Schema | ImageSchema:
    """Read a YAML file whose `kind` is `table` (the default) or `image`.

    Raises:
        SchemaError: naming the file and the column and key at fault.
    """
    content = read_yaml(path, SchemaError)
    kind = content.get("kind", "table")
    if kind not in ("table", "image"):
        raise SchemaError(f"{path}: unknown kind {kind!r}{suggestion(kind, ('table', 'image'))}")
    return ImageSchema.load(path) if kind == "image" else Schema.load(path)


def _kind_of(document: type[_Document]) -> str:
    return "image" if issubclass(document, ImageSchema) else "table"


def _in_file(error: SchemaError, path: str | Path) -> SchemaError:
    message = str(error)
    return error if message.startswith(str(path)) else SchemaError(f"{path}: {message}")
