"""`fedsynth drift RELEASE TABLE`: an owner's own look at whether a release still describes it."""

from __future__ import annotations

from typing import Annotated

import typer

from fedsynth.cli.options import (
    OWN_TABLE,
    Decimal,
    Encoding,
    Json,
    Query,
    Reader,
    Release,
    Separator,
    Sheet,
)
from fedsynth.plain import print_json


def drift(
    release: Release,
    table: Annotated[str, typer.Argument(help=f"One's own rows: {OWN_TABLE}.")],
    least: Annotated[
        float,
        typer.Option(help="A column's distance that does not matter, at least 0 and below 1."),
    ] = 0.05,
    alpha: Annotated[
        float, typer.Option(help="Chance of naming a column that differs by no more, in (0, 1).")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Of samples and permutations.")] = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    query: Query = None,
    as_json: Json = False,
) -> None:
    """Say in which columns one's own rows differ from a release; nothing is sent or written.

    A column differs if its distance from the released one is surely more than --least and the
    release's own error together. The answer is as private as the rows.
    """
    from fedsynth.jobs.drifting import drift as hold_against
    from fedsynth.jobs.drifting import read_tables

    _, schema = read_tables(release)
    rows = Reader(separator, decimal, encoding, sheet, query).read(table, schema)
    found = hold_against(release, rows, least=least, alpha=alpha, seed=seed)
    if as_json:
        print_json(found.to_dict())
        return
    from fedsynth.cli.terminal import on_stdout

    on_stdout().print(found)
