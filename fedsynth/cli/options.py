"""Arguments and options that more than one command takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Release = Annotated[Path, typer.Argument(help="The folder of a release.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        help="What every row meets: income='>50K', age=30..40, state=[NY,NJ]. Repeatable.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Makes the draw repeatable.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
