"""`fedsynth evaluate`: fidelity and utility of synthetic rows, and attacks on their privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.options import Decimal, Encoding, Json, Quiet, Reader, Separator, Sheet
from fedsynth.cli.queries import demand_new
from fedsynth.cli.score import load_job, score_release
from fedsynth.errors import ConfigError
from fedsynth.plain import print_json

if TYPE_CHECKING:
    from fedsynth.evaluation.evaluating import Evaluation
    from fedsynth.jobs.data import JobData, Rows
    from fedsynth.schema import ImageSchema, Schema

Columns = list[str] | None


def evaluate(
    release: Annotated[
        Path | None,
        typer.Argument(
            help="The folder of a release. Its job file tells the real rows; --real replaces them."
        ),
    ] = None,
    real: Annotated[
        Path | None, typer.Option(help="Real rows that the generator never saw.")
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(help="Synthetic rows of any tool, instead of a release.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="A schema file; default drafted from the real rows.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="The rows that were learned from; attacks need them.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Of a release that was moved: where its job's data lie, as data.path=FILE.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column to predict, where no schema tells it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for report.html and .json.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="All real rows are public: so is the report.")
    ] = False,
    models: Annotated[
        str, typer.Option(help="Models to train: standard, or thorough, which takes longer.")
    ] = "standard",
    secret: Annotated[
        Columns, typer.Option(help="A column that attackers infer. Repeatable.")
    ] = None,
    quasi_identifier: Annotated[
        Columns, typer.Option(help="A column that people are known by. Repeatable.")
    ] = None,
    sensitive: Annotated[
        Columns, typer.Option(help="A column to keep from those who know these. Repeatable.")
    ] = None,
    against: Annotated[
        Columns,
        typer.Option(
            metavar="NAME",
            help="Score SDV's copula, ctgan or tvae beside, which learn without privacy. "
            "Repeatable.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Release a few scores of a RELEASE through the door, for so much."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Goes with --epsilon; default the job's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of samples and models.")] = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score synthetic rows against real ones, attack them, write a report.

    The report is private unless --public: no epsilon covers it. With --epsilon, a small fixed set
    of scores is asked through the door instead, charged to a ledger of its own, and may be
    published.
    """
    if (release is None) == (synthetic is None):
        raise ConfigError("say what to evaluate: the folder of a release, or --synthetic FILE")
    out = out or _default_folder(release)
    _demand_place(out, release)
    options: dict[str, Any] = {
        "target": target,
        "public": public,
        "secrets": secret,
        "quasi_identifiers": quasi_identifier or (),
        "sensitive": sensitive or (),
        "against": against or (),
    }
    if epsilon is not None:
        if release is None or real is not None:
            raise ConfigError("--epsilon needs a RELEASE, whose job file tells owners and trust")
        _demand_none({**options, "schema": schema, "train": train, "models": models != "standard"})
        score_release(
            release,
            epsilon,
            delta,
            changes=changes or [],
            out=out,
            seed=seed,
            as_json=as_json,
            quiet=quiet,
        )
        return
    if changes and (release is None or real is not None):
        raise ConfigError("--set goes with a RELEASE whose own job's rows are looked at")
    if delta is not None:
        raise ConfigError("--delta belongs to --epsilon: give both")
    if models not in ("standard", "thorough"):
        raise ConfigError(f"--models is standard or thorough, not {models!r}")
    title = (release or synthetic or out).resolve().name
    options |= {"models": models, "title": title, "seed": seed}
    reader = Reader(separator, decimal, encoding, sheet)
    if release is not None:
        if schema is not None:
            raise ConfigError("a release brings its schema along: leave --schema away")
        evaluation = evaluate_release(
            release, real, train, reader, changes=changes or [], quiet=quiet, **options
        )
    else:
        evaluation = evaluate_pair(real, synthetic, schema, train, reader, quiet=quiet, **options)
    page, _ = evaluation.save(out)
    if as_json:
        print_json(evaluation.to_dict())
        return
    from fedsynth.cli.terminal import show_evaluation

    show_evaluation(evaluation, page)


def evaluate_release(
    release: Path,
    real: Path | None,
    train: Path | None,
    reader: Reader,
    *,
    changes: Sequence[str],
    quiet: bool,
    **options: Any,
) -> Evaluation:
    """A release against the rows that its job held out, or against others.

    changes: of where these lie.
    options: of `fs.evaluate`.
    """
    from fedsynth.evaluation.evaluating import evaluate as evaluate_rows
    from fedsynth.evaluation.reading.released import errors_of
    from fedsynth.jobs.loading import load
    from fedsynth.progress import Display
    from fedsynth.release import read_release

    rows, schema, certificate = read_release(release)
    errors = errors_of(load(release))
    options |= {"certificate": certificate}
    if real is not None:
        options["train"] = None if train is None else _read(train, schema, reader)
        table = _read(real, schema, reader)
        with Display(quiet=quiet, lines=True) as display:
            evaluation = evaluate_rows(table, rows, schema, progress=display, **options)
            return replace(evaluation, errors=errors)
    if train is not None:
        raise ConfigError("--train goes with --real: the release's job file tells both")
    job = load_job(release, Display(quiet=True).caution, changes)
    options["train"] = job.data.train
    with Display(quiet=quiet, lines=True) as display:
        evaluation = evaluate_rows(job.test, rows, schema, progress=display, **options)
        clients = _client_scores(job.data, rows, evaluation.seed)
        return replace(evaluation, clients=clients, errors=errors)


def _client_scores(data: JobData, rows: Rows, seed: int) -> tuple[dict[str, Any], ...] | None:
    """Exact scores on each owner's own rows: like the rest of a report, for the eyes of those who
    hold the rows. None of a single owner."""
    from fedsynth.evaluation.federated import federated_scores
    from fedsynth.privacy.budget import Budget

    if len(data.held_out) < 2:
        return None
    exact = Budget(epsilon=math.inf, delta=1e-5, unit="record", trust="central")
    return tuple(federated_scores(data.held_out, rows, data.schema, exact, seed=seed).clients)


def evaluate_pair(
    real: Path | None,
    synthetic: Path | None,
    schema: Path | None,
    train: Path | None,
    reader: Reader,
    *,
    quiet: bool,
    **options: Any,
) -> Evaluation:
    """Synthetic rows of any tool against real ones.

    options: of `fs.evaluate`.
    """
    from fedsynth.evaluation.evaluating import evaluate as evaluate_rows
    from fedsynth.progress import Display
    from fedsynth.schema import load_schema

    if real is None or synthetic is None:
        raise ConfigError("give the real rows to hold the synthetic ones against: --real FILE")
    agreed = None if schema is None else load_schema(schema)
    options["train"] = None if train is None else _read(train, agreed, reader)
    tables = _read(real, agreed, reader), _read(synthetic, agreed, reader)
    with Display(quiet=quiet, lines=True) as display:
        return evaluate_rows(*tables, agreed, progress=display, **options)


def _read(path: Path, schema: Schema | ImageSchema | None, reader: Reader) -> Rows:
    from fedsynth.data.images import read_images
    from fedsynth.schema import ImageSchema

    if isinstance(schema, ImageSchema):
        return read_images(path, schema)
    if path.suffix == ".npz":
        raise ConfigError(f"{path}: images need a schema: give --schema FILE")
    return reader.read(path, schema)


def _default_folder(release: Path | None) -> Path:
    if release is None:
        return Path("report")
    # Of "." or "..", neither name nor parent is what it says.
    place = release if release.name not in ("", "..") else release.resolve()
    return place.parent / f"{place.name}-report"


def _demand_place(out: Path, release: Path | None) -> None:
    """Raises ConfigError where a report would overwrite something or lie among what is released."""
    demand_new(out)
    if release is not None and out.resolve().is_relative_to(release.resolve()):
        raise ConfigError(
            f"{out}: reports go beside the release, not into it, since no certificate names them: "
            "name another folder by --out"
        )


_FLAGS = {"secrets": "--secret", "quasi_identifiers": "--quasi-identifier"}
"""Of options that the command line calls otherwise than Python."""


def _demand_none(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise ConfigError(
                f"{_FLAGS.get(option, f'--{option}')} has no meaning with --epsilon, whose scores "
                "are always the same few: leave it away"
            )
