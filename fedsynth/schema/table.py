"""What a table or a set of images is, agreed in public before anything private is touched.

A schema fixes every array shape, so that contributions of different owners always add up. One that
was drafted from private rows says so in `provenance`, and so does every certificate made with it.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from fedsynth.agreed import plain, shown, suggestion
from fedsynth.demands import demand_kind, demand_mapping
from fedsynth.errors import ConfigError, DataError, FedsynthError, SchemaError
from fedsynth.schema.cells import missing_text
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Column,
    Identifier,
    Modelled,
)
from fedsynth.schema.constraints import Constraint, Never, Ordered, build_constraint
from fedsynth.schema.documents import Document, build_column, column_keys
from fedsynth.schema.frames import demand_frame
from fedsynth.schema.image import ImageSchema
from fedsynth.schema.persons import demand_person
from fedsynth.views import View
from fedsynth.yaml_files import read_yaml

if TYPE_CHECKING:
    import pandas as pd

    from fedsynth.schema.deriving import Derivation


class SDVMetadata(Protocol):
    """What is used of `sdv.metadata.Metadata`."""

    def to_dict(self) -> dict[str, Any]: ...


class Schema(Document):
    """The columns of a table, in order, the target, and the texts that mean "missing".

    `person` names the identifier that says whose a row is: never learned and never released, but
    what has several rows of one person keeps them together, wherever rows are split or protected.
    A column that is `of: person` has one value in all rows of a person.
    `missing_values` holds for every column, except where a column declares the text as a value of
    its own (a category, a number within bounds). Empty cells always mean missing, by the same
    exception. A written table spells missing as the first of them.
    """

    document_kind: ClassVar[Literal["table", "image"]] = "table"
    unnamed: ClassVar[str] = (
        ": fs.draft(table).schema proposes one of a table, fs.Schema.load(path) reads a file, "
        "fs.Schema.from_dict(..) a mapping"
    )

    columns: Annotated[
        tuple[Annotated[Column, BeforeValidator(build_column)], ...],
        Field(min_length=1, description="a list of columns"),
    ]
    target: Annotated[str | None, Field(description="the name of a column")] = None
    person: Annotated[str | None, Field(description="the name of an identifier")] = None
    missing_values: Annotated[
        tuple[str, ...], BeforeValidator(plain), Field(description="a list of texts, in quotes")
    ] = ("",)
    constraints: Annotated[
        tuple[Annotated[Constraint, BeforeValidator(build_constraint)], ...],
        BeforeValidator(plain),
        Field(description="a list of constraints, such as {never: {age: 0, smoker: true}}"),
    ] = ()

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        name = values.get("name")
        return f"schema {name!r}" if isinstance(name, str) and name else "schema"

    @model_validator(mode="after")
    def _check_consistency(self) -> Schema:
        names = [column.name for column in self.columns]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise ValueError(f"columns declared twice: {', '.join(map(repr, repeated))}")
        if not self.observed:
            raise ValueError("every column is an identifier, so there is nothing to learn")
        if self.target is not None:
            self._demand_target(names)
        for column in self.observed:
            if column.missing:
                missing_text(column, self.missing_values)
        for number, constraint in enumerate(self.constraints, 1):
            self._demand_constraint(number, constraint, names)
        demand_person(self)
        try:
            _ = self.rules
        except SchemaError as error:
            raise ValueError(str(error)) from None
        return self

    def _demand_constraint(self, number: int, constraint: Constraint, names: list[str]) -> None:
        for name in constraint.names():
            if name not in names:
                raise ValueError(
                    f"constraint {number}: there is no column {name!r}{suggestion(name, names)}"
                )
            if isinstance(self.column(name), Identifier):
                raise ValueError(f"constraint {number}: {name!r} is an identifier, made anew")
        try:
            constraint.demand(self._by_name)
        except FedsynthError as error:
            raise ValueError(f"constraint {number}: {error}") from None

    def _view(self) -> View:
        from fedsynth.schema.showing import view_schema

        return view_schema(self)

    @property
    def _by_name(self) -> dict[str, Modelled | Identifier]:
        return {column.name: column for column in self.columns}

    def broken(
        self,
        columns: Mapping[str, NDArray[Any]],
        constraints: Iterable[Constraint] | None = None,
    ) -> NDArray[np.bool_]:
        """Which rows [n] of conformed columns break a constraint; none where there is none.

        constraints: those of them that are meant; None for all.
        """
        rows = len(next(iter(columns.values())))
        broken = np.zeros(rows, bool)
        for constraint in self.constraints if constraints is None else constraints:
            broken |= constraint.broken(columns, self._by_name)
        return broken

    @property
    def derivations(self) -> tuple[Derivation, ...]:
        """Columns that follow from others by `equal`, `sum` or `determines`, in the order of making
        them."""
        from fedsynth.schema.deriving import plan_derivations

        return plan_derivations(self.constraints, self.target)

    @property
    def rules(self) -> tuple[Never | Ordered, ...]:
        """What the constraints say of the modelled columns, once all others follow from these."""
        from fedsynth.schema.deriving import rewrite

        return rewrite(self.constraints, self.derivations)

    def derive(self, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Conformed arrays [n] of the modelled columns, and those that follow from them."""
        from fedsynth.schema.deriving import derive

        return derive(columns, self.derivations, self._by_name)

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

    @classmethod
    def draft(
        cls, tables: pd.DataFrame | Mapping[str, pd.DataFrame], target: str | None = None
    ) -> Schema:
        """Propose a schema from a table's rows, or several owners', with provenance `private-data`.

        What is odd about them is warned of; `fedsynth.draft` returns it beside the schema.

        Raises:
            DataError: if a table has no rows.
            SchemaError: if there is no such target, or it has missing values.
        """
        from fedsynth.schema.drafting import draft

        found = draft(tables, target)
        if found.findings:
            # Warnings end in logs, and what is found tells exact counts of private rows.
            told = dict.fromkeys(f"{one.column} ({one.kind})" for one in found.findings)
            message = (
                f"the draft is to be looked at, `fs.draft` says what was found: {', '.join(told)}"
            )
            warnings.warn(message, stacklevel=2)
        return found.schema

    @classmethod
    def from_sdv(
        cls,
        metadata: SDVMetadata | Mapping[str, Any],
        table: pd.DataFrame | None = None,
        target: str | None = None,
    ) -> Schema:
        """Take over SDV's metadata (the object, or its `to_dict()`) of a single table.

        Ranges that SDV's metadata lacks are read off `table`. Since SDV reads its own ranges off
        the rows, the provenance is `private-data`.

        Raises:
            SchemaError: if there are several tables, or a column's range stands nowhere.
        """
        from fedsynth.schema.sdv_metadata import columns_from_sdv

        if not type(metadata).__module__.startswith("sdv."):
            demand_mapping("metadata", metadata, "Metadata.to_dict() gives it")
        content = metadata if isinstance(metadata, Mapping) else metadata.to_dict()
        if table is not None:
            table = demand_frame(table, "table")
        columns = columns_from_sdv(content, table)
        return cls(columns=columns, target=target, provenance="private-data")

    def to_sdv(self) -> SDVMetadata:
        """SDV's `Metadata` of this table, with ranges where the installed version knows them.

        SDV knows no notation: what is written as $1,234.50 or 1:30 is described as the number that
        it is (`edit` with `dtype=None` gives it back as one), and moments by their offset from UTC.
        Steps and constraints have no place in it, nor has whose rows are together; decimals are a
        rule there that cells must keep, and are left out.

        Raises:
            DataError: if sdv is not installed.
        """
        try:
            from sdv.metadata import Metadata
        except ImportError:
            raise DataError("SDV is not installed: pip install fedsynth[sdv]") from None
        from fedsynth.schema.sdv_metadata import sdv_content

        version = "V1" if Metadata.METADATA_SPEC_VERSION == "V1" else "V2"
        metadata: SDVMetadata = Metadata.load_from_dict(
            sdv_content(self.columns, version, self.person)
        )
        return metadata

    def to_dict(self) -> dict[str, Any]:
        """JSON-able content without the keys at their defaults; `from_dict` gives back an equal."""
        content = super().to_dict()
        content["columns"] = [
            {"kind": column.kind, **column.model_dump(mode="json", exclude_defaults=True)}
            for column in self.columns
        ]
        return content

    def edit(self, name: str, /, **changes: object) -> Schema:
        """The schema with keys of one column replaced: `edit("age", lower=0, upper=120)`.

        `kind` makes it a column of another kind, which keeps the keys that both have. The
        provenance stays: whoever knows that nothing private is left says `declared`.

        Raises:
            SchemaError: if there is no such column, or the column or schema contradicts itself.
        """
        before = self.column(name)
        if str(changes.get("name", name)) != name:
            raise SchemaError(f"column {name!r}: `rename` changes names, in constraints as well")
        entry = _entry(before)
        if changes.get("kind", before.kind) != before.kind:
            known = column_keys(str(changes["kind"]))
            entry = {key: entry[key] for key in entry if key in known and key != "dtype"}
            if "datetime" in (before.kind, changes["kind"]):
                # A date's format is none of a number.
                entry.pop("format", None)
        after = build_column({**entry, **changes})
        columns = [after if column is before else column for column in self.columns]
        return self._replace(columns=columns)

    def drop(self, *names: str) -> Schema:
        """The schema without these columns; without target or person where it is one of them, and
        without the person no column is of one.

        Raises:
            SchemaError: if there is no such column, none is left, or a constraint is about one.
        """
        gone = {self.column(name).name for name in names}
        for number, constraint in enumerate(self.constraints, 1):
            if about := sorted(gone.intersection(constraint.names())):
                raise SchemaError(
                    f"constraint {number} is about {', '.join(map(repr, about))}: take the "
                    f"constraint out first"
                )
        columns = [column for column in self.columns if column.name not in gone]
        if self.person in gone:
            columns = [column.model_copy(update={"of": None}) for column in columns]
        left = {key: None for key in ("target", "person") if getattr(self, key) in gone}
        return self._replace(columns=columns, **left)

    def rename(self, names: Mapping[str, str]) -> Schema:
        """The schema with columns called otherwise, by their names until now, everywhere.

        Raises:
            SchemaError: if there is no such column, or two would have one name.
        """
        for name in demand_mapping("names", names, "{'before': 'after'}"):
            self.column(name)
        columns = [
            build_column({**_entry(column), "name": names.get(column.name, column.name)})
            for column in self.columns
        ]
        constraints = [constraint.rename(names) for constraint in self.constraints]
        called = {
            key: names.get(name, name)
            for key in ("target", "person")
            if (name := getattr(self, key)) is not None
        }
        renamed = self._replace(columns=columns, constraints=constraints, **called)
        if self.written is not None:
            renamed.__dict__["written"] = self.written.rename(names)
        return renamed

    def with_column(self, column: Column | Mapping[str, Any]) -> Schema:
        """The schema with one more column, the last: `with_column({"kind": "integer", ..})`.

        Raises:
            SchemaError: if it contradicts itself, or there is one of its name.
        """
        return self._replace(columns=[*self.columns, column])

    def with_constraint(self, constraint: Constraint | Mapping[str, Any]) -> Schema:
        """The schema with one more constraint: `with_constraint({"never": {"age": 0}})`.

        Raises:
            SchemaError: if it does not fit the columns.
        """
        return self._replace(constraints=[*self.constraints, constraint])

    def _replace(self, **changes: object) -> Schema:
        """A checked copy, unlike `model_copy`."""
        kept = {key: getattr(self, key) for key in type(self).model_fields}
        changed = type(self)(**{**kept, **changes})
        changed.__dict__["written"] = self.written
        return changed

    @property
    def observed(self) -> tuple[Modelled, ...]:
        """The columns without the identifiers, in order: what tables tell."""
        return tuple(column for column in self.columns if not isinstance(column, Identifier))

    @property
    def modelled(self) -> tuple[Modelled, ...]:
        """Those of :attr:`observed` that follow from no others: what encodings and models see."""
        following = {one.name for one in self.derivations}
        return tuple(column for column in self.observed if column.name not in following)

    @property
    def of_person(self) -> tuple[str, ...]:
        """The names of the modelled columns that have one value in all rows of a person."""
        return tuple(column.name for column in self.modelled if column.of == "person")

    @property
    def whole(self) -> Schema:
        """Without the constraints by which columns follow from others, so that none does."""
        if not self.derivations:
            return self
        rest = [one for one in self.constraints if isinstance(one, Never | Ordered)]
        return self.model_copy(update={"constraints": tuple(rest)})

    def column(self, name: str) -> Modelled | Identifier:
        """The column of that name.

        Raises:
            SchemaError: if there is none.
        """
        demand_kind("a column's name", name, str, "a text")
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


def _entry(column: Modelled | Identifier) -> dict[str, Any]:
    """The column as a mapping that `build_column` takes."""
    return {"kind": column.kind, **column.model_dump(exclude_defaults=True)}


def demand_schema(given: object, name: str = "this") -> Schema | ImageSchema:
    """The schema. ConfigError, which says how to come by one, for what is none.

    Args:
        name: of what needs one.
    """
    if isinstance(given, Schema | ImageSchema):
        return given
    hint = 'fs.draft(table).schema proposes one, fs.Schema.load("schema.yaml") reads one'
    if isinstance(given, str | os.PathLike):
        hint = f"fs.load_schema({str(given)!r:.80}) reads one from a file"
    elif isinstance(getattr(given, "schema", None), Schema | ImageSchema):
        hint = f"the {type(given).__name__} has one: give its .schema"
    raise ConfigError(f"{name} needs a schema, not {shown(given)}: {hint}")


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


def build_schema(content: Mapping[str, Any]) -> Schema | ImageSchema:
    """Build from the `to_dict` of either kind of schema.

    Raises:
        SchemaError: naming the column and key at fault.
    """
    return (ImageSchema if content.get("kind") == "image" else Schema).from_dict(content)
