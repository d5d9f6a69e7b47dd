"""Pages of the reference, made of the product: nothing is copied, so nothing goes stale."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import click
import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import fedsynth as fs
from fedsynth.cli.app import app
from fedsynth.cli.methods import settings_of
from fedsynth.data.dialect import Dialect
from fedsynth.jobs.clients import Federation, Ledgers
from fedsynth.jobs.config import Config, Privacy, Sample
from fedsynth.jobs.inputs import Data, Origin, Public, Sites
from fedsynth.jobs.joining import Account, Limits, SiteFile, SiteRules
from fedsynth.jobs.sections import Candidate, Select
from fedsynth.privacy.trail import certificate, job
from fedsynth.registry import ENTRIES, SETTINGS
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema import columns as kinds

ROOMS = {
    "schema": "Schemas",
    "data": "Tables and images",
    "privacy": "Budgets and certificates",
    "planning": "Before a fit",
    "queries": "Before a fit",
    "registry": "Methods",
    "methods": "Methods",
    "papers": "Methods",
    "jobs": "Releases",
    "federation": "Owners",
    "evaluation": "What the rows are worth",
    "tuning": "Settings, of methods and of classifiers",
}
"""Headings of the public names, by the package that they live in."""


def write_python() -> str:
    """Every public name; what all methods can do once."""
    home = {name: getattr(fs, name).__module__.split(".")[1] for name in fs.__all__}
    order = list(dict.fromkeys(ROOMS.values()))
    names = sorted(fs.__all__, key=lambda name: (order.index(ROOMS[home[name]]), name))
    methods = {entry.kind: entry.name for entry in ENTRIES.values()}
    text = ["# Python", "All names of `import fedsynth as fs`."]
    for room, group in groupby(names, lambda name: ROOMS[home[name]]):
        text.append(f"## {room}")
        if room == "Methods":
            text += [
                "What all of them can do:",
                _entry("fedsynth.methods.synthesizer.Synthesizer", inherited_members="true"),
            ]
        for name in group:
            if name in methods:
                text += [_bare(name), f"[Its settings](settings.md#{methods[name]})."]
            elif name in kinds.__all__:
                text += [_bare(name), f"[Its keys](schema.md#a-column-of-kind-{name.lower()})."]
            else:
                text.append(_entry(f"fedsynth.{name}"))
    return "\n\n".join(text)


def write_commands() -> str:
    """Every command, with its arguments and options."""
    text = [
        "# Commands",
        "As `fedsynth COMMAND --help` says. Tasks: [on the command line](../command-line.md).",
    ]
    root: Any = typer.main.get_command(app)
    for name, command in _leaves(root, "fedsynth"):
        context = click.Context(command, info_name=name)
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        text += [f"## {name}", str(inspect.cleandoc(command.help or "")), f"```\n{usage}\n```"]
        rows = [
            (f"`{record[0]}`", record[1])
            for one in command.get_params(context)
            if (record := _record(one, context))
        ]
        text.append(_grid(("option", "what it is"), rows))
    return "\n\n".join(text)


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for part, one in getattr(command, "commands", {}).items():
        yield from _leaves(one, f"{name} {part}")
    if not hasattr(command, "commands"):
        yield name, command


def _record(parameter: Any, context: click.Context) -> tuple[str, str] | None:
    if isinstance(parameter, click.Argument):
        return parameter.make_metavar(context), getattr(parameter, "help", None) or ""
    found: tuple[str, str] | None = parameter.get_help_record(context)
    return found


def write_settings() -> str:
    """Every setting of every method."""
    text = [
        "# Settings of every method",
        "In a job file under `settings`, in Python a keyword: `fs.AIM(schema, bins=12)`. A default "
        "of - follows from the schema and the budget. [Which method to take](../methods.md).",
    ]
    for entry in ENTRIES.values():
        text += [
            f"## {entry.name}",
            f"`fs.{entry.kind}`: {entry.description}.",
            _keys(SETTINGS[entry.name]),
        ]
    return "\n\n".join(text)


def write_job_file() -> str:
    """Every key of job files, and of owners' site files."""
    text = ["# Keys of a job file", "With comments, as one file: [a job file](../job-file.md)."]
    text += _sections(
        [
            ("The file", Config),
            ("data", Data),
            ("sites", Sites),
            ("sites: paths, public, and wherever a table is named", Origin),
            ("public", Public),
            ("How a file is written", Dialect),
            ("privacy", Privacy),
            ("federation", Federation),
            ("federation: ledgers", Ledgers),
            ("sample", Sample),
            ("select_privately", Select),
            ("select_privately: candidates", Candidate),
        ]
    )
    text += ["## A site's own file", "Of an owner [on its own machine](../deploying.md)."]
    own = [
        ("A site", SiteFile),
        ("account", Account),
        ("rules", SiteRules),
        ("rules: limits", Limits),
    ]
    return "\n\n".join([*text, *(part.replace("## ", "### ", 1) for part in _sections(own))])


def write_schema() -> str:
    """Every key of schemas."""
    text = [
        "# Keys of a schema",
        "How cells are written, and what no row can be: [schemas](../schemas.md).",
    ]
    own: list[tuple[str, type[BaseModel]]] = [("A table", Schema), ("Images", ImageSchema)]
    names = ("Categorical", "Boolean", "Integer", "Continuous", "Datetime", "Identifier")
    own += [(f"A column of kind {name.lower()}", getattr(kinds, name)) for name in names]
    return "\n\n".join([*text, *_sections(own)])


def write_formats() -> str:
    """What the files of a release say, and for how long they are read."""
    described = json.loads(_beside(certificate, "certificate.schema.json"))
    text = [
        "# Certificate and ledger",
        "A release's files are read and verified by every later version, whatever its number; an "
        "example of each format is [kept and tested](../changes.md) for good. A file of a later "
        "version may be refused, in words; the certificate's page is written anew.",
        "## certificate.json",
        f"{described['description']} As [JSON Schema]"
        "(../../fedsynth/privacy/trail/certificate.schema.json), which `verify` holds it to.",
        _grid(("key", "what it says"), _properties(described)),
        "## ledger.jsonl",
        "A JSON object a line. Each holds besides `line`, its number from 0; `previous`, the hash "
        "of the line before (64 zeros before the first); and `hash`, SHA-256 of the line without "
        "it, as JSON with sorted keys and no spaces. The last line's hash is the release's head.",
    ]
    for heading, kind in (
        ("The first line: the job", job.Job),
        ("Then a line for every release: an event", job.Event),
        ("The last line: closing", job.Closing),
    ):
        text += [
            f"### {heading}",
            inspect.cleandoc(kind.__doc__ or "").partition("\n")[0],
            _attributes(kind),
        ]
    return "\n\n".join(text)


def _beside(module: Any, name: str) -> str:
    return (importlib.resources.files(module.__package__) / name).read_text("utf-8")


def _properties(schema: Any, above: str = "") -> Iterator[tuple[str, str]]:
    for name, one in schema.get("properties", {}).items():
        says = one.get("description", "")
        if "enum" in one:
            says = f"{says} One of {', '.join(map(str, one['enum']))}.".strip()
        yield f"`{above}{name}`", says or one.get("title", "")
        yield from _properties(one, f"{above}{name}.")
        yield from _properties(one.get("items", {}), f"{above}{name}[].")


def _attributes(kind: type[Any]) -> str:
    listed = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    return "" if not listed else _grid(("attribute", "what it says"), _read(listed))


def _read(listed: str) -> Iterator[tuple[str, str]]:
    blocks = ("\n" + inspect.cleandoc(listed)).split("\n")
    name, words = "", ""
    for line in [*blocks[1:], "end: "]:
        if line.startswith(" "):
            words += f" {line.strip()}"
            continue
        if name:
            yield f"`{name}`", words
        name, _, words = line.partition(": ")


def _sections(listed: Iterable[tuple[str, type[BaseModel]]]) -> list[str]:
    text = []
    for heading, kind in listed:
        said = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")[0].strip()
        text += [f"## {heading}", said, _keys(kind)]
    return text


def _keys(kind: type[BaseModel]) -> str:
    rows = []
    for one in settings_of(kind):
        name = kind.model_fields[one.name].alias or one.name
        if one.default is PydanticUndefined:
            default = "needed"
        elif one.default is None or isinstance(one.default, BaseModel):
            default = "-"
        else:
            default = f"`{json.dumps(one.default, default=str)}`"
        rows.append((f"`{name}`", default, one.allowed, one.meaning))
    return _grid(("key", "default", "allowed", "what it is"), rows) if rows else "It has none."


def _grid(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    def line(cells: Iterable[str]) -> str:
        spelled = (" ".join(cell.split()).replace("|", r"\|") for cell in cells)
        return f"| {' | '.join(spelled)} |"

    return "\n".join([line(heads), line("---" for _ in heads), *map(line, rows)])


REFERENCE: dict[str, Callable[[], str]] = {
    "reference/python.md": write_python,
    "reference/commands.md": write_commands,
    "reference/settings.md": write_settings,
    "reference/job-file.md": write_job_file,
    "reference/schema.md": write_schema,
    "reference/formats.md": write_formats,
}


def _bare(name: str) -> str:
    return _entry(f"fedsynth.{name}", members="false", show_signature="false")


def _entry(name: str, **options: str) -> str:
    lines = (
        [f"    options: {{{', '.join(f'{key}: {value}' for key, value in options.items())}}}"]
        if options
        else []
    )
    return "\n".join([f"::: {name}", *lines])
