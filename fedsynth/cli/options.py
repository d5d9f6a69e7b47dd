"""Arguments and options that more than one command takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from fedsynth.schema import Schema

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

TABLE = "a .csv, .tsv (also .gz), .parquet, .feather or .xlsx file"
OWN_TABLE = f"{TABLE}, or an owner's file (.yaml) that says how one is read"
Separator = Annotated[
    str | None, typer.Option(help="What stands between a CSV file's cells, such as ';' or tab.")
]
Decimal = Annotated[
    str | None, typer.Option(help="What stands before a CSV file's decimals: , or .")
]
Encoding = Annotated[
    str | None, typer.Option(help="Of a CSV file's letters: utf-8, cp1252, latin-1, utf-16, ..")
]
Sheet = Annotated[str | None, typer.Option(help="Of an .xlsx file; default its first.")]
Query = Annotated[
    str | None,
    typer.Option(help="Of a database, whose address stands in place of a file: sqlite:///a.db"),
]


@dataclass(frozen=True)
class Reader:
    """Reads a user's tables as its options say; what it had to guess is said on stderr."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    query: str | None = None

    @property
    def said(self) -> dict[str, Any]:
        """How files are written, where it is not left open."""
        keys = ("separator", "decimal", "encoding", "sheet")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    def read_guessing(self, path: Path) -> tuple[pd.DataFrame, dict[str, str]]:
        """A file's table, and what was guessed of how it is written, for a job file to say.

        Raises:
            ConfigError, DataError: as `read`.
        """
        from fedsynth.data.dialect import Dialect, describe_guesses
        from fedsynth.data.tables import read_guessing
        from fedsynth.progress import Display

        caution = Display(quiet=True).caution
        frame, guessed = read_guessing(path, Dialect(**self.said), caution=caution)
        if guessed:
            caution(f"{path}: {describe_guesses(guessed)}; what is written says so")
        return frame, guessed

    def read(self, table: str | Path, schema: Schema | None = None) -> pd.DataFrame:
        """A table of a file, as a site file tells of it or, with `query`, of a database's address.

        Raises:
            ConfigError: options of another kind of table.
            DataError: it cannot be read.
        """
        from fedsynth.data.tables import read_sql, read_table
        from fedsynth.jobs.inputs import Origin, expand_url
        from fedsynth.jobs.reading import is_own, read_origin
        from fedsynth.progress import Display

        if "://" in str(table):
            if self.query is None:
                raise ConfigError("an address of a database needs --query 'SELECT ..'")
            # Shells keep what is typed, so a password has no more place here than in a job file.
            origin = Origin(url=str(table), query=self.query, **self.said)
            return read_sql(expand_url(str(origin.url), Path()), self.query, schema)
        if self.query is not None:
            raise ConfigError(f"--query is of a database, and {table} is a file: leave it away")
        caution = Display(quiet=True).caution
        if is_own(str(table)):
            return read_origin(Origin(path=str(table), **self.said), schema, Path(), caution)
        return read_table(table, schema, caution=caution, **self.said)
