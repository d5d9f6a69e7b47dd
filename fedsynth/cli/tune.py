"""`fedsynth tune RELEASE ..`: a model's settings, searched on synthetic rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedsynth.cli.options import Decimal, Encoding, Json, Quiet, Reader, Separator, Sheet
from fedsynth.errors import ConfigError
from fedsynth.plain import print_json, print_note
from fedsynth.progress import Display

if TYPE_CHECKING:
    from fedsynth.tuning.real import RealScores
    from fedsynth.tuning.rows import AnySchema, Rows
    from fedsynth.tuning.tuned import Tuned


def tune(
    releases: Annotated[
        list[Path],
        typer.Argument(help="Folders of releases of one schema, or one that holds them."),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="gradient boosting (default), logistic regression, ridge regression, random "
            "forest, multilayer perceptron, k nearest neighbours, support vectors; of images "
            "student network (default)."
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Ranges and lists in place of some of the model's own: a .yaml or .json file, or "
            "as text: '{max_iter: {from: 50, to: 200, log: true}, l2_regularization: [0, 1]}'.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Candidates, over all runs with one storage.")] = 50,
    rows: Annotated[
        int | None,
        typer.Option(help="Of a draw: about as many as the real rows. Default the release's."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Default auroc, or r2 where the target is a number.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(help="Draws to learn from and to be scored on, of each release. Default 1."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Real rows to train the winner on, beside its default.")
    ] = None,
    real: Annotated[
        Path | None, typer.Option(help="Other real rows, to test both on: private figures.")
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(help="Also choose among the candidates by so many folds of --train."),
    ] = None,
    federated: Annotated[
        str | None,
        typer.Option(
            "--federate",
            metavar="JOB",
            help="A job file: its owners' rows train the winner once, at the job's epsilon, into a "
            "release in --out. Of logistic regression or multilayer perceptron.",
        ),
    ] = None,
    storage: Annotated[
        Path | None, typer.Option(help="An SQLite file: the same command goes on from it.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Candidates trained at once.")] = 1,
    seed: Annotated[int, typer.Option(help="Of draws, models and the search.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="A new folder for settings.json, trials.csv and search.html."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A new .svg or .png file: scores by candidate and setting.")
    ] = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search a model's settings on synthetic rows: free of privacy cost, however long."""
    from fedsynth.cli.terminal import show_trained, trained_json
    from fedsynth.planning.drawing import demand_plot
    from fedsynth.tuning.reading import read_space
    from fedsynth.tuning.rows import supervise
    from fedsynth.tuning.tuning import find_releases, read_schema
    from fedsynth.tuning.tuning import tune as search

    if (train is None) != (real is None):
        raise ConfigError("--train and --real go together: rows to train on, and others to test on")
    if folds is not None and real is None:
        raise ConfigError("--folds goes with --train and --real: it chooses on real rows")
    if out is not None and out.exists():
        raise ConfigError(f"{out} exists already: name a new folder")
    if plot is not None:
        demand_plot(plot)
    choices = None if space is None else read_space(space)
    job = None
    if federated is not None:
        if out is None:
            raise ConfigError("--federate writes a release: name a new folder for it with --out")
        from fedsynth.jobs.config import load_config
        from fedsynth.tuning.federating import demand_federated
        from fedsynth.tuning.training import demand_job

        # Told before anything is tried.
        demand_federated(model or "gradient boosting", [f"model__{name}" for name in choices or {}])
        job = load_config(federated)
        demand_job(*job, read_schema(find_releases([*releases]))[0].digest)
    private = None
    if train is not None and real is not None:
        schema, _ = read_schema(find_releases([*releases]))
        reader = Reader(separator, decimal, encoding, sheet)
        private = _read(train, schema, reader), _read(real, schema, reader)
        for path, rows_ in zip((train, real), private, strict=True):
            # What does not fit is told before anything is tried.
            supervise(rows_, schema, str(path))
    with Display(quiet=quiet, lines=True) as display:
        try:
            found = search(
                [*releases],
                model,
                choices,
                trials=trials,
                rows=rows,
                metric=metric,
                pairs=pairs,
                seed=seed,
                jobs=jobs,
                storage=storage,
                progress=display,
            )
        except KeyboardInterrupt:
            going_on = (
                "Nothing was kept: with --storage FILE the same command goes on where it was"
                if storage is None
                else f"The same command goes on from {storage}"
            )
            print_note(f"Interrupted. {going_on}")
            raise typer.Exit(130) from None
        if out is not None:
            found.save(out)
        if plot is not None:
            found.plot(plot)
        scores = None
        if private is not None:
            scores = found.compare(*private, folds=folds, progress=display)
        trained = None
        if job is not None and out is not None:
            from fedsynth.tuning.training import train_winner

            trained = train_winner(found, *job, out / "classifier", display, display.caution)
    if as_json:
        content = found.to_dict()
        if scores is not None:
            content["private"] = scores.to_dict()
        if trained is not None:
            content["trained"] = trained_json(trained)
        print_json(content)
        return
    _show(found, scores, out)
    if trained is not None:
        show_trained(trained)


def _read(path: Path, schema: AnySchema, reader: Reader) -> Rows:
    from fedsynth.data.images import read_images
    from fedsynth.schema import ImageSchema

    return (
        read_images(path, schema) if isinstance(schema, ImageSchema) else reader.read(path, schema)
    )


def _show(found: Tuned, scores: RealScores | None, out: Path | None) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(found)
    if scores is not None:
        console.print()
        console.print(scores)
    if out is not None:
        console.print(
            f"\nSettings: {out / 'settings.json'}; a page: {out / 'search.html'}", markup=False
        )
