"""`fedsynth schema draft TABLE ..`: a schema to review, and what to look at in it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fedsynth.cli.options import Reader
from fedsynth.cli.queries import demand_new
from fedsynth.cli.terminal import on_stderr
from fedsynth.errors import ConfigError
from fedsynth.files import private
from fedsynth.plain import print_json
from fedsynth.schema.drafting import Draft, draft
from fedsynth.schema.showing import DRAFTED
from fedsynth.views import Said
from fedsynth.yaml_files import yaml_text


def draft_tables(
    tables: list[str], target: str | None, output: Path | None, reader: Reader, *, as_json: bool
) -> None:
    """Write the schema to a file or to stdout; findings go to stderr, or beside it as JSON.

    Findings quote private cells, so they never stand in the schema's file.
    """
    if output is not None:
        demand_new(output)
    if len(set(tables)) < len(tables):
        raise ConfigError("a table is named twice: name each owner's once")
    found = draft({table: reader.read(table) for table in tables}, target)
    if output is not None:
        with private():
            found.schema.save(output)
    if as_json:
        print_json(
            {
                "path": None if output is None else str(output),
                "schema": found.schema.to_dict(),
                "differences": [asdict(one) for one in found.differences],
                "findings": [asdict(one) for one in found.findings[len(found.differences) :]],
                "note": DRAFTED,
            }
        )
        return
    if output is None:
        print(yaml_text(found.schema.to_dict()), end="")
    tell_draft(found)


def tell_draft(found: Draft) -> None:
    """Print on stderr what to look at in a draft."""
    out = on_stderr()
    for finding in found.findings:
        out.print(Said(str(finding)))
    out.print(Said(DRAFTED, "caution"))
