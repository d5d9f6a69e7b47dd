"""What the schemas of tables and of images share: provenance, file, digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from fedsynth.agreed import Agreed, suggestion
from fedsynth.demands import demand_flag, demand_mapping, demand_path
from fedsynth.errors import SchemaError
from fedsynth.files import writing
from fedsynth.plain import hash_plain
from fedsynth.schema.columns import Boolean, Categorical, Continuous, Datetime, Identifier, Integer
from fedsynth.views import Shown
from fedsynth.yaml_editing import edit_yaml, find_comments
from fedsynth.yaml_files import parse_yaml, read_text, yaml_text

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


@dataclass(frozen=True)
class Written:
    """The text that a schema was read from, and the names of columns in it that are others now."""

    text: str
    renamed: Mapping[str, str] = field(default_factory=dict)

    def rename(self, names: Mapping[str, str]) -> Written:
        """With the names that columns have had until now replaced."""
        before = {now: first for first, now in self.renamed.items()}
        changed = {before.get(now, now): later for now, later in names.items()}
        return Written(self.text, {**self.renamed, **changed})


def build_column(value: object) -> object:
    """Build a column from a mapping here, where its kind and place can be named."""
    if not isinstance(value, Mapping):
        return value
    kind, name = value.get("kind"), value.get("name", "(unnamed)")
    if kind is None:
        raise SchemaError(f"column {name!r}: `kind` is needed, one of {', '.join(_KINDS)}")
    if not isinstance(kind, str) or kind not in _KINDS:
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
        demand_mapping("the content of a schema", content, "to_dict gives one")
        values = {str(key): entry for key, entry in content.items()}
        kind = values.pop("kind", "table")
        if kind != cls.document_kind:
            raise SchemaError(
                f"schema of kind {kind!r} where one of kind {cls.document_kind!r} is needed"
            )
        return cls(**values)

    @cached_property
    def written(self) -> Written | None:
        """What it was read from, edits included; no part of what it is, nor of its pickle."""
        return None

    def __getstate__(self) -> dict[Any, Any]:
        state = dict(super().__getstate__())
        kept = {key: value for key, value in state["__dict__"].items() if key != "written"}
        return {**state, "__dict__": kept}

    @classmethod
    def load(cls: type[_Self], path: str | Path) -> _Self:
        """Read a YAML file.

        Raises:
            SchemaError: naming the file and the column and key at fault.
        """
        text = read_text(path, SchemaError)
        try:
            schema = cls.from_dict(parse_yaml(text, path, SchemaError))
        except SchemaError as error:
            raise _name_file(error, path) from None
        schema.__dict__["written"] = Written(text)
        return schema

    def save(self, path: str | Path, *, comments: bool = True) -> None:
        """Write a YAML file that `load` reads back as an equal schema.

        A schema that was loaded, and perhaps edited, keeps the comments, order and layout of its
        file: those of dropped columns go with them.

        Args:
            comments: False writes the content alone, over whatever stood there.

        Raises:
            SchemaError: comments would be lost: the file has some that this schema was not loaded
                with, or the text that it was loaded from cannot be changed in place.
            MachineError: the file cannot be written.
        """
        path = demand_path("path", path)
        if demand_flag("comments", comments) and path.exists():
            self._demand_comments(path)
        # Before the file is opened, which empties it.
        text = self._text(path) if comments else yaml_text(self.to_dict())
        with writing(path), path.open("w", encoding="utf-8", newline="") as file:
            file.write(text)

    def _demand_comments(self, path: str | Path) -> None:
        known = [] if self.written is None else find_comments(self.written.text)
        for comment in find_comments(read_text(path, SchemaError)):
            if comment not in known:
                raise SchemaError(
                    f"{path}: holds the comment {comment!r}, which would be lost, since this "
                    f"schema was not loaded from it: load and edit that file, or write another; "
                    f"`comments=False` overwrites it"
                )

    def _text(self, path: str | Path) -> str:
        """The text that it was read from, changed where it has changed since."""
        content = self.to_dict()
        if self.written is None:
            return yaml_text(content)
        text, renamed = self.written.text, self.written.renamed
        old = type(self).from_dict(parse_yaml(text, path, SchemaError)).to_dict()
        try:
            edited = edit_yaml(text, old, content, renamed)
            again = type(self).from_dict(parse_yaml(edited, path, SchemaError))
        except (SchemaError, LookupError, ValueError):
            again = None
        if again is not None and again.digest == self.digest:
            return edited
        if find_comments(text):
            raise SchemaError(
                f"{path}: the file that this schema was loaded from cannot be changed in place, "
                f"and its comments would be lost (does it use anchors?): edit it by hand, or "
                f"write the schema without them (`comments=False`)"
            )
        return yaml_text(content)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical JSON: equal for all parties that agreed on the same."""
        return hash_plain(self.to_dict())

    def __hash__(self) -> int:
        # Field by field there would be none: constraints have mappings.
        return hash(self.digest)


def _name_file(error: SchemaError, path: str | Path) -> SchemaError:
    message = str(error)
    return error if message.startswith(str(path)) else SchemaError(f"{path}: {message}")
