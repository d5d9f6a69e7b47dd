"""What the schemas of tables and of images share: provenance, file, digest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from fedsynth.agreed import Agreed, suggestion
from fedsynth.errors import SchemaError
from fedsynth.plain import hash_plain
from fedsynth.schema.columns import Boolean, Categorical, Continuous, Datetime, Identifier, Integer
from fedsynth.views import Shown
from fedsynth.yaml_files import read_yaml, write_yaml

Provenance = Literal["declared", "private-data"]
_KINDS: dict[str, type[Agreed]] = {
    "categorical": Categorical,
    "boolean": Boolean,
    "integer": Integer,
    "continuous": Continuous,
    "datetime": Datetime,
    "identifier": Identifier,
}
_Self = TypeVar("_Self", bound="Document")


def build_column(value: object) -> object:
    """Build a column from a mapping here, where its kind and place can be named."""
    if not isinstance(value, Mapping):
        return value
    kind, name = value.get("kind"), value.get("name", "(unnamed)")
    if kind is None:
        raise SchemaError(f"column {name!r}: `kind` is needed, one of {', '.join(_KINDS)}")
    if kind not in _KINDS:
        raise SchemaError(f"column {name!r}: unknown kind {kind!r}{suggestion(kind, _KINDS)}")
    return _KINDS[kind](**{str(key): entry for key, entry in value.items()})


def column_keys(kind: str) -> frozenset[str]:
    """The keys of a kind of column; none of an unknown one."""
    return frozenset(_KINDS[kind].model_fields if kind in _KINDS else ())


class Document(Shown, Agreed):
    """What tables' and images' schemas share: a name, a provenance, a file, a digest."""

    document_kind: ClassVar[Literal["table", "image"]]

    name: Annotated[str | None, Field(description="a text")] = None
    description: Annotated[str | None, Field(description="a text")] = None
    provenance: Annotated[Provenance, Field(description="declared or private-data")] = "declared"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able content without the keys at their defaults; `from_dict` gives back an equal."""
        return {"kind": self.document_kind, **self.model_dump(mode="json", exclude_defaults=True)}

    @classmethod
    def from_dict(cls: type[_Self], content: Mapping[str, Any]) -> _Self:
        """Build from `to_dict`'s content.

        Raises:
            SchemaError: naming the column and key at fault.
        """
        values = {str(key): entry for key, entry in content.items()}
        kind = values.pop("kind", "table")
        if kind != cls.document_kind:
            raise SchemaError(
                f"schema of kind {kind!r} where one of kind {cls.document_kind!r} is needed"
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
            raise _name_file(error, path) from None

    def save(self, path: str | Path) -> None:
        """Write a YAML file that `load` reads back as an equal schema."""
        write_yaml(self.to_dict(), path)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: equal for all parties that agreed on the same."""
        return hash_plain(self.to_dict())


def _name_file(error: SchemaError, path: str | Path) -> SchemaError:
    message = str(error)
    return error if message.startswith(str(path)) else SchemaError(f"{path}: {message}")
