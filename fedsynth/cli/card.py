"""`fedsynth card`: a release for catalogues, and for an assessment of data protection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedsynth.cli.options import Release
from fedsynth.plain import print_note


def card(
    release: Release,
    out: Annotated[Path, typer.Option(help="A folder for croissant.json and annex.md.")],
    report: Annotated[
        Path | None, typer.Option(help="The folder of `fedsynth evaluate` of this release.")
    ] = None,
) -> None:
    """Write a release's metadata (Croissant), and an annex for an impact assessment."""
    from fedsynth.cards.writing import write_card

    for path in write_card(release, out, report):
        print_note(path)
