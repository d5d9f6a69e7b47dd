"""Schemas and drafts as a person sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fedsynth.schema.columns import Boolean, Categorical, Continuous, Datetime, Identifier, Modelled
from fedsynth.schema.constraints import Constraint, Equal, Never, Ordered, rule_of, spell
from fedsynth.views import Grid, Said, View, listed

if TYPE_CHECKING:
    from fedsynth.schema.drafting import Draft
    from fedsynth.schema.image import ImageSchema
    from fedsynth.schema.table import Schema

DRAFTED = (
    "Drafted from private rows: categories are theirs, bounds are theirs rounded outwards. "
    "Review each, replace them by what is publicly known, then set `provenance: declared`."
)
_QUOTED = "The findings quote private cells: for the eyes of who owns the rows, and for no log."
_HEAD = ("column", "kind", "values", "missing", "also")


def view_schema(schema: Schema, kind: str = "Schema") -> View:
    """A line a column, the target marked, then constraints and provenance.

    kind: what the title calls it.
    """
    names = [column.name for column in schema.columns]
    strong = [place for place, name in enumerate(names) if name == schema.target]
    parts: list[Said | Grid] = [Said(schema.description)] if schema.description else []
    lines = [_line(column, schema.target, schema.person) for column in schema.columns]
    parts.append(Grid(_HEAD, lines, strong=strong))
    if schema.constraints:
        parts.append(Grid(("constraint", ""), [_rule(one) for one in schema.constraints]))
    if schema.missing_values != ("",):
        texts = listed((repr(text) for text in schema.missing_values), 200)
        parts.append(Said(f"Missing is spelled {texts}."))
    return View(_title(kind, schema, f"{len(names):,} columns"), [*parts, *_drafted(schema)])


def view_images(schema: ImageSchema) -> View:
    """Shape, pixels, labels and provenance."""
    size = " x ".join(map(str, schema.shape))
    title = _title("Image schema", schema, f"images of {size}, pixels from 0 to {schema.maximum}")
    parts: list[Said | Grid] = [Said(schema.description)] if schema.description else []
    if schema.target is not None:
        parts.append(Grid(_HEAD, [_line(schema.target, schema.target.name)], strong=[0]))
    if schema.person is not None:
        parts.append(Said(f"The array {schema.person!r} says whose an image is."))
    return View(title, [*parts, *_drafted(schema)])


def view_draft(draft: Draft) -> View:
    """The findings, and the schema that is proposed."""
    schema = view_schema(draft.schema, "Draft")
    rows = [(one.column, one.text, listed(map(repr, one.cells), 80)) for one in draft.findings]
    if not rows:
        return View(schema.title, [*schema.parts, Said("Nothing odd was found.")])
    findings: list[Said | Grid] = [
        Said("To look at:", "strong"),
        Grid(("column", "finding", "cells"), rows),
        Said(_QUOTED, "caution"),
    ]
    return View(schema.title, [*schema.parts, *findings])


def _title(kind: str, schema: Schema | ImageSchema, what: str) -> str:
    name = f"{kind} {schema.name!r}" if schema.name else kind
    target = schema.target if isinstance(schema.target, str | None) else schema.target.name
    aim = "no target" if target is None else f"target {target}"
    return f"{name}: {what}, {aim}, provenance {schema.provenance}"


def _drafted(schema: Schema | ImageSchema) -> list[Said]:
    return [] if schema.provenance == "declared" else [Said(DRAFTED, "caution")]


def _line(
    column: Modelled | Identifier, target: str | None, person: str | None = None
) -> tuple[str, ...]:
    name = column.name
    if name in (target, person):
        name += " (target)" if name == target else " (person)"
    missing = "" if isinstance(column, Identifier) or not column.missing else "may be"
    return name, column.kind, _values(column), missing, "; ".join(_beside(column))


def _values(column: Modelled | Identifier) -> str:
    if isinstance(column, Identifier):
        return "made anew" + (f", after {column.prefix!r}" if column.prefix else "")
    if isinstance(column, Boolean):
        return "false, true"
    if isinstance(column, Categorical):
        return listed(column.values, 50)
    if isinstance(column, Datetime):
        return f"{column.lower:{column.pattern}} to {column.upper:{column.pattern}}"
    return f"{_number(column.lower)} to {_number(column.upper)}"


def _number(value: float) -> str:
    return f"{value:,.15g}"


def _beside(column: Modelled | Identifier) -> Iterator[str]:
    """What else the column declares."""
    if column.of is not None:
        yield f"of a {column.of}"
    if isinstance(column, Categorical) and column.other is not None:
        yield f"others become {column.other}"
    if not isinstance(column, Categorical | Boolean | Identifier) and column.step is not None:
        yield f"in steps of {_number(column.step)}"
    if isinstance(column, Continuous):
        yield f"decimals {column.decimals}"
    if isinstance(column, Datetime):
        yield f"by the {column.resolution}"
        if column.format is not None:
            yield f"format {column.format}"
    if not isinstance(column, Categorical | Boolean | Datetime | Identifier):
        if column.edges is not None:
            yield f"edges {listed(map(_number, column.edges), 30)}"
        if column.spikes:
            yield f"spikes {listed(map(_number, column.spikes), 30)}"
    if column.dtype is not None:
        yield f"dtype {column.dtype}"


def _rule(constraint: Constraint) -> tuple[str, str]:
    if isinstance(constraint, Never):
        met = (f"{name}: {spell(given)}" for name, given in constraint.never.items())
        return "never", ", ".join(met)
    if isinstance(constraint, Ordered):
        return "ordered", " <= ".join(constraint.ordered)
    if isinstance(constraint, Equal):
        return "equal", " = ".join(constraint.equal)
    return rule_of(constraint), constraint.words()
