"""Commands that ask a finished release more: counts, and the missing cells of a table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.options import (
    TABLE,
    Decimal,
    Encoding,
    Json,
    Reader,
    Release,
    Seed,
    Separator,
    Sheet,
    Where,
)
from fedsynth.errors import ConfigError
from fedsynth.files import private, writing
from fedsynth.plain import print_json, print_note

if TYPE_CHECKING:
    from fedsynth.methods.marginal.graphical import GraphicalSynthesizer


def count(
    release: Release,
    columns: Annotated[
        list[str] | None,
        typer.Argument(help="One or more columns; none: how far counts of all of them may be off."),
    ] = None,
    where: Where = None,
    level: Annotated[float, typer.Option(help="Of the intervals, in (0, 1).")] = 0.95,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A new .csv file; default the terminal.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count records by values, with intervals from the known noise; this costs no privacy.

    Without columns: of each, and of each pair that was measured, how far its counts may be off.
    """
    if output is not None:
        demand_new(output)
    synth = _load_graphical(release)
    if not columns and where:
        raise ConfigError("--where belongs to columns: name those to count")
    conditions = parse_conditions(where)
    counts = synth.marginal(columns, conditions, level) if columns else synth.errors(level=level)
    if output is not None:
        with writing(output):
            counts.to_csv(output, index=False)
        print_note(f"{output}: {len(counts):,} counts")
    if as_json:
        print_json([dict(zip(counts, row, strict=True)) for row in counts.itertuples(index=False)])
    if as_json or output is not None:
        return
    from fedsynth.cli.terminal import on_stdout
    from fedsynth.views import Grid

    rows = [[_format_value(value) for value in row] for row in counts.itertuples(index=False)]
    figures = range(len(columns), len(counts.columns)) if columns else range(1, 5)
    on_stdout().print(Grid([str(name) for name in counts], rows, figures=figures, most=len(rows)))


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:,.0f}"
    return str(value)


def impute(
    release: Release,
    table: Annotated[Path, typer.Argument(help=f"{TABLE.capitalize()} with gaps.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="A new .csv, .csv.gz or .parquet file.")
    ],
    seed: Seed = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
) -> None:
    """Fill a table's missing cells, each drawn given its row's other cells; costs no privacy."""
    from fedsynth.data.tables import write_table

    demand_new(output)
    synth = _load_graphical(release)
    reader = Reader(separator, decimal, encoding, sheet)
    filled = synth.impute(reader.read(table, synth.schema), seed)
    with private():
        write_table(filled, output, synth.schema)
    print_note(f"{output}: {len(filled):,} rows without gaps")


def predict(
    release: Release,
    table: Annotated[Path, typer.Argument(help=f"{TABLE.capitalize()} to classify.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="A new .csv file.")],
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
) -> None:
    """Class of every row, by a federated classifier or one that came with synthetic rows; this
    costs no privacy."""
    import pandas as pd

    from fedsynth.jobs.loading import load_model
    from fedsynth.methods.sampling.predicting import Predictor
    from fedsynth.schema import Boolean, Categorical, Schema

    demand_new(output)
    synth = load_model(release)
    if not isinstance(synth, Predictor) or not isinstance(synth.schema, Schema):
        raise ConfigError(
            f"{release} was made by {synth.name}, which brings no classifier of tables along: "
            "train one on its rows"
        )
    frame = Reader(separator, decimal, encoding, sheet).read(table)
    probabilities = synth.probabilities(frame)
    target = synth.schema.target_column
    assert isinstance(target, Categorical | Boolean)
    names = [str(category) for category in target.categories]
    shares = pd.DataFrame(probabilities, columns=[f"probability of {name}" for name in names])
    predictions = [names[k] for k in probabilities.argmax(axis=1)]
    frame = frame.assign(**{f"predicted {target.name}": predictions})
    with writing(output), private():
        pd.concat([frame, shares.round(6)], axis=1).to_csv(output, index=False)
    print_note(f"{output}: {len(frame):,} rows classified")


def _load_graphical(release: Path) -> GraphicalSynthesizer:
    """The release's model, if it is one that answers questions."""
    from fedsynth.jobs.loading import load
    from fedsynth.methods.marginal.graphical import GraphicalSynthesizer

    synth = load(release)
    if not isinstance(synth, GraphicalSynthesizer):
        raise ConfigError(
            f"{release} was made by {synth.name}, whose model knows no counts: releases of aim, "
            "mst and privbayes do"
        )
    return synth


def demand_new(path: Path) -> None:
    """Raises ConfigError where a file would be overwritten."""
    from fedsynth.demands import demand_path

    if demand_path("output", path).exists():
        raise ConfigError(f"{path} exists already: name a new file")


def parse_conditions(texts: list[str] | None) -> dict[str, Any] | None:
    """Conditions by column: a value, a list in brackets, or a range with two dots."""
    from fedsynth.yaml_files import parse_value

    conditions: dict[str, Any] = {}
    for text in texts or []:
        column, equals, value = text.partition("=")
        if not equals or not column or column in conditions:
            raise ConfigError(
                f"--where {text}: expected column=value, such as income='>50K', once a column"
            )
        low, dots, high = value.partition("..")
        if dots and " " not in value:
            ends = {"from": low, "to": high}
            conditions[column] = {key: parse_value(end) for key, end in ends.items() if end}
        else:
            conditions[column] = parse_value(value) if value.startswith("[") else value
    return conditions or None
