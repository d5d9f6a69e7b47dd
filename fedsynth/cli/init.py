"""`fedsynth init TABLE ..`: a job file and a schema from one's own tables, to look at first."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.options import TABLE, Decimal, Encoding, Reader, Separator, Sheet
from fedsynth.cli.queries import demand_new
from fedsynth.errors import ConfigError
from fedsynth.plain import print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

JOB, SCHEMA = "job.yaml", "schema.yaml"
_HEAD = """\
# A job for fedsynth. Look at {schema} first. What it would ask, cost and be worth, asking nobody:
# fedsynth run {job} --dry-run. Every key, and those that are left out here: docs/job-file.md.
"""
_OWN_HEAD = """\
# How this owner's table is read: its owner's, and no part of a release. Keys: docs/job-file.md.
"""


def init(
    tables: Annotated[list[Path], typer.Argument(help=f"For each owner {TABLE}.")],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    column: Annotated[
        str | None, typer.Option(help="Of one table: the column that names each row's owner.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Of the whole job; default 1, smaller protects more.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Synthetic rows to release; default 10,000.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the new files.")] = Path(),
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
) -> None:
    """Write job.yaml and schema.yaml from your own tables; on a terminal, ask what is not said.

    Nothing is overwritten. The schema is drafted from the rows, and no epsilon covers what it
    tells: review it.
    """
    from fedsynth.cli.drafting import tell_draft
    from fedsynth.data.agreeing import agree
    from fedsynth.jobs.config import Config
    from fedsynth.schema.drafting import draft

    job, schema = out / JOB, out / SCHEMA
    for file in (job, schema):
        demand_new(file)
    owners = _by_owner(tables)
    if column is not None and len(owners) > 1:
        raise ConfigError("--column is of one table: of several, each is an owner's")
    reader = Reader(separator, decimal, encoding, sheet)
    frames, guesses = _read_tables(owners, column, reader)
    agreement = agree(frames)
    for sentence in agreement.told:
        print_note(sentence)
    translated = {name: agreement.translation_of(name).translated for name in owners}
    words = {name: told for name, told in translated.items() if told}
    for name in words:
        demand_new(out / _own_file(name))
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if asked and target is None:
        names = ", ".join(map(str, next(iter(agreement.tables.values()))))
        print_note(f"Columns: {names}")
        target = _ask("Which column is to be predicted (none: leave empty)", "") or None
    found = draft(agreement.tables, target)
    if epsilon is None:
        epsilon = _ask("Epsilon of the whole job", 1.0) if asked else 1.0
    if rows is None:
        rows = _ask("Synthetic rows to release", 10_000) if asked else 10_000
    places, own = _places(owners, column, out, reader.said, guesses, words)
    content = {
        **places,
        "schema": SCHEMA,
        "privacy": _privacy(len(owners), column, epsilon, found.schema.person),
        "sample": {"rows": rows},
    }
    # What could not be run is told now, and nothing is written.
    Config(**content)
    _write(job, schema, content, own, found)
    tell_draft(found)
    for file in own:
        print_note(f"{file}: how this owner's table is read")
    print_note(f"{schema}: review it. Then: fedsynth run {job} --dry-run")


def _read_tables(
    owners: dict[str, Path], column: str | None, reader: Reader
) -> tuple[dict[str, pd.DataFrame], dict[str, dict[str, str]]]:
    """Owners' tables, without the column that names owners, and what was guessed of their files."""
    frames, guesses = {}, {}
    for name, path in owners.items():
        frames[name], guesses[name] = reader.read_guessing(path)
        if column is None:
            continue
        if column not in frames[name]:
            listed = ", ".join(map(str, frames[name]))
            raise ConfigError(f"{path}: has no column {column!r}; it has {listed}")
        frames[name] = frames[name].drop(columns=column)
    return frames, guesses


def _by_owner(tables: Sequence[Path]) -> dict[str, Path]:
    """Tables by their files' names without endings."""
    owners: dict[str, Path] = {}
    for path in tables:
        name = path.name.split(".")[0]
        if name in owners:
            raise ConfigError(
                f"{owners[name]} and {path} would both be the owner {name!r}: rename one"
            )
        owners[name] = path
    return owners


def _ask(question: str, default: Any) -> Any:
    return typer.prompt(question, default=default, show_default=default != "", err=True)


def _places(
    owners: dict[str, Path],
    column: str | None,
    out: Path,
    said: dict[str, str],
    guesses: dict[str, dict[str, str]],
    words: dict[str, dict[str, Any]],
) -> tuple[dict[str, Any], dict[Path, dict[str, Any]]]:
    """Whose rows lie where, seen from the job file's folder, and how the files are written, so that
    no run has to guess it anew: from other rows it might guess otherwise. And the file of each
    owner whose table has other words than the schema, which are no part of a release."""
    own_files = {name: out / _own_file(name) for name in words}
    paths = {name: os.path.relpath(path, out) for name, path in owners.items()}
    first, *others = guesses.values()
    if all(guessed == first for guessed in others):
        said, guesses = {**said, **first}, {}
    if len(paths) > 1:
        entries = {
            name: own_files[name].name
            if name in own_files
            else {"path": path, **guesses[name]}
            if guesses.get(name)
            else path
            for name, path in paths.items()
        }
        own = {
            own_files[name]: {"path": paths[name], **guesses.get(name, {}), **told}
            for name, told in words.items()
        }
        return {**({"data": said} if said else {}), "sites": {"paths": entries}}, own
    (path,) = paths.values()
    alone = {"clients": 1, "scheme": "uniform"}
    sites = alone if column is None else {"column": column}
    return {"data": {"path": path, **said}, "sites": sites}, {}


def _privacy(owners: int, column: str | None, epsilon: float, person: str | None) -> dict[str, Any]:
    """One owner alone adds the noise itself; several trust nobody. Whoever has several rows is
    protected with all of them."""
    unit = {} if person is None else {"unit": "person"}
    if owners == 1 and column is None:
        return {"epsilon": epsilon, **unit, "trust": "central"}
    # Of two it must be said whether one is held off the other; of a column's nobody knows yet.
    two = {"curious": 1} if owners == 2 or column is not None else {}
    return {"epsilon": epsilon, **unit, "trust": "distributed", **two}


def _own_file(owner: str) -> str:
    """Where it stands how an owner's table is read."""
    name = f"{owner}.yaml"
    return name if name not in (JOB, SCHEMA) else f"{owner}-table.yaml"


def _write(
    job: Path,
    schema: Path,
    content: dict[str, Any],
    own: dict[Path, dict[str, Any]],
    found: Any,
) -> None:
    from fedsynth.durable import make_folder, write_whole
    from fedsynth.files import private, writing
    from fedsynth.yaml_files import yaml_text

    with private(), writing(job.parent):
        make_folder(job.parent)
        found.schema.save(schema)
        for file, told in own.items():
            write_whole(file, (_OWN_HEAD + yaml_text(told)).encode())
        text = _HEAD.format(job=job, schema=schema) + yaml_text(content)
        write_whole(job, text.encode())
