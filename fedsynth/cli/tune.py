"""`fedsynth tune RELEASE ..`: a model's settings, searched on synthetic rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.options import Json, Quiet
from fedsynth.cli.terminal import Display
from fedsynth.errors import ConfigError
from fedsynth.plain import print_json

if TYPE_CHECKING:
    from fedsynth.tuning.tuned import RealScores, Tuned

_SHOWN = 3


def tune(
    releases: Annotated[
        list[Path], typer.Argument(help="Folders of releases, of one schema. Two are safer.")
    ],
    model: Annotated[
        str,
        typer.Option(
            help="gradient boosting, logistic regression, ridge regression, random forest, "
            "multilayer perceptron, k nearest neighbours or support vectors."
        ),
    ] = "gradient boosting",
    trials: Annotated[int, typer.Option(help="Candidates, over all runs with one storage.")] = 50,
    rows: Annotated[
        int | None,
        typer.Option(help="Of a draw: about as many as the real rows. Default the release's."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Default auroc, or r2 where the target is a number.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Real rows to train the winner on, beside its default.")
    ] = None,
    real: Annotated[
        Path | None, typer.Option(help="Other real rows, to test both on: private figures.")
    ] = None,
    storage: Annotated[
        Path | None, typer.Option(help="An SQLite file: the same command goes on from it.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Candidates trained at once.")] = 1,
    seed: Annotated[int, typer.Option(help="Of draws, models and the search.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for settings.json and trials.csv.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search a model's settings on synthetic rows: free of privacy cost, however long."""
    from fedsynth.tuning.tuning import tune as search

    if (train is None) != (real is None):
        raise ConfigError("--train and --real go together: rows to train on, and others to test on")
    if out is not None and out.exists():
        raise ConfigError(f"{out} exists: give --out a folder that does not")
    with Display(quiet=quiet) as display:

        def show(done: int, total: int, best: float | None) -> None:
            display.show_step("candidates", done, total)

        found = search(
            [*releases],
            model,
            trials=trials,
            rows=rows,
            metric=metric,
            seed=seed,
            jobs=jobs,
            storage=storage,
            progress=show,
        )
    scores = None
    if train is not None and real is not None:
        from fedsynth.data.tables import read_table

        scores = found.compare(read_table(train, found.schema), read_table(real, found.schema))
    if out is not None:
        out.mkdir(parents=True)
        found.table().to_csv(out / "trials.csv", index=False)
        (out / "settings.json").write_text(json.dumps(_public(found), indent=1) + "\n")
    if as_json:
        content = _public(found)
        if scores is not None:
            content["private"] = {"default": scores.default, "tuned": scores.tuned}
        print_json(content)
        return
    _show(found, scores, out)


def _public(found: Tuned) -> dict[str, Any]:
    """What the search found: of synthetic rows alone."""
    return {
        "model": found.model,
        "metric": found.metric,
        "releases": list(found.releases),
        "rows": found.rows,
        "settings": _short(found.settings),
        "score": found.best.score,
        "default": found.default,
        "candidates": len(found.candidates),
        "unfinished": found.unfinished,
    }


def _short(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("model__"): value for name, value in settings.items()}


def _show(found: Tuned, scores: RealScores | None, out: Path | None) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    others = [one for one in found.candidates if one is not found.best][:_SHOWN]
    own = found.build().get_params()
    table = Table(found.model, "taken", *(f"trial {one.number}" for one in others), "default")
    shown = [found.best, *others]
    scored = [*(one.score for one in shown), found.default]
    table.add_row(found.metric, *(f"{score:.4f}" for score in scored), end_section=True)
    for name in found.settings:
        values = [*(one.settings[name] for one in shown), own[name]]
        table.add_row(name.removeprefix("model__"), *map(_spell, values))
    console.print(table)
    tried = len(found.candidates)
    lines = [f"{tried} candidates tried to the end, {found.unfinished} given up."]
    if found.best is not found.candidates[0]:
        lines.append("Of those that score alike, the one that lets the model learn least is taken.")
    if found.default > found.candidates[0].score:
        lines.append(
            "The default scores better than all of them, on synthetic rows: search longer, or keep "
            "it if real rows say so too."
        )
    lines.append(
        "Scores are of synthetic rows, and no promise for real ones: synthetic rows ask for more "
        "capacity than real rows do."
    )
    for text in lines:
        console.print(escape(text))
    if scores is not None:
        console.print(
            f"On real rows ({found.metric}): {scores.tuned:.4f} with these settings, "
            f"{scores.default:.4f} with the default. These two figures are private: no epsilon "
            f"covers them.",
            markup=False,
        )
    if out is not None:
        console.print(f"Settings: {out / 'settings.json'}", markup=False)


def _spell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if math.isfinite(value) else "-"
    return str(value)
