"""`fedsynth evaluate`: what synthetic rows are worth, and what they give away."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.queries import demand_new
from fedsynth.errors import ConfigError, DataError
from fedsynth.plain import print_json

if TYPE_CHECKING:
    import pandas as pd

    from fedsynth.data.images import Images
    from fedsynth.evaluation.evaluating import Evaluation
    from fedsynth.evaluation.federated import FederatedScores
    from fedsynth.jobs.data import Prepared
    from fedsynth.privacy.budget import Budget
    from fedsynth.privacy.trail.certificate import Certificate
    from fedsynth.schema import ImageSchema, Schema

    Data = pd.DataFrame | Images

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
    target: Annotated[
        str | None, typer.Option(help="The column to predict, where no schema tells it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for report.html and .json.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="All real rows are public: so is the report.")
    ] = False,
    models: Annotated[str, typer.Option(help="Models to train: standard or all.")] = "all",
    secret: Annotated[
        Columns, typer.Option(help="A column that attackers infer. Repeatable.")
    ] = None,
    quasi_identifier: Annotated[
        Columns, typer.Option(help="A column that people are known by. Repeatable.")
    ] = None,
    sensitive: Annotated[
        Columns, typer.Option(help="A column to keep from those who know these. Repeatable.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Release a few scores of a RELEASE through the door, for so much."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Goes with --epsilon; default the job's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of samples and models.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Score synthetic rows against real ones, attack them, write a report.

    The report is private unless --public: no epsilon covers it. With --epsilon, a small fixed set
    of scores is asked through the door instead, charged to a ledger of its own, and may be
    published.
    """
    if (release is None) == (synthetic is None):
        raise ConfigError("say what to evaluate: the folder of a release, or --synthetic FILE")
    out = out or _default(release)
    _demand_place(out, release)
    if epsilon is not None:
        if release is None or real is not None:
            raise ConfigError("--epsilon needs a RELEASE, whose job file tells owners and trust")
        if epsilon == math.inf:
            raise ConfigError(
                "--epsilon inf would give exact scores, which nothing covers: leave it away for a "
                "report, which is private"
            )
        _demand_none(
            {
                "--target": target,
                "--public": public,
                "--models": models != "all",
                "--secret": secret,
                "--quasi-identifier": quasi_identifier,
                "--sensitive": sensitive,
            }
        )
        compared = _compared(release, real, synthetic, schema, train)
        _ask_scores(compared, release, epsilon, delta, out, seed, as_json=as_json, quiet=quiet)
        return
    if delta is not None:
        raise ConfigError("--delta belongs to --epsilon: give both")
    if models not in ("standard", "all"):
        raise ConfigError(f"--models is standard or all, not {models!r}")
    found = _evaluated(
        _compared(release, real, synthetic, schema, train),
        quiet=quiet,
        target=target,
        public=public,
        models=models,
        secrets=secret,
        quasi_identifiers=quasi_identifier or (),
        sensitive=sensitive or (),
        title=(release or synthetic or out).resolve().name,
        seed=seed,
    )
    page, _ = found.save(out)
    if as_json:
        print_json(found.to_dict())
        return
    from fedsynth.cli.terminal import show_evaluation

    show_evaluation(found, page)


def _demand_place(out: Path, release: Path | None) -> None:
    """Raises ConfigError where a report would overwrite something or lie among what is released."""
    demand_new(out)
    if release is not None and out.resolve().is_relative_to(release.resolve()):
        raise ConfigError(
            f"{out}: reports go beside the release, not into it, since no certificate names them: "
            "name another folder by --out"
        )


def _demand_none(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise ConfigError(
                f"{option} has no meaning with --epsilon, whose scores are always the same few: "
                "leave it away"
            )


@dataclass(frozen=True, eq=False)
class _Compared:
    """What is evaluated; `job`: the release's own data, where they are what it is held against."""

    real: Data
    synthetic: Data
    schema: Schema | ImageSchema | None
    train: Data | None
    certificate: Certificate | None
    job: Prepared | None


def _compared(
    release: Path | None,
    real: Path | None,
    synthetic: Path | None,
    schema: Path | None,
    train: Path | None,
) -> _Compared:
    from fedsynth.jobs.loading import released
    from fedsynth.schema import load_schema

    if release is None:
        if real is None or synthetic is None:
            raise ConfigError("give the real rows to hold the synthetic ones against: --real FILE")
        agreed = None if schema is None else load_schema(schema)
        beside = None if train is None else _read(train, agreed)
        return _Compared(_read(real, agreed), _read(synthetic, agreed), agreed, beside, None, None)
    if schema is not None:
        raise ConfigError("a release brings its schema along: leave --schema away")
    rows, own, certificate = released(release)
    if real is not None:
        beside = None if train is None else _read(train, own)
        return _Compared(_read(real, own), rows, own, beside, certificate, None)
    if train is not None:
        raise ConfigError("--train goes with --real: the release's job file tells both")
    job = _job(release)
    if job.test is None:
        raise ConfigError(
            f"{release}: its job held no rows out, so there is nothing to hold the rows against: "
            "give --real FILE, with rows that it did not learn from"
        )
    return _Compared(job.test, rows, own, job.train, certificate, job)


def _job(release: Path) -> Prepared:
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.data import prepare
    from fedsynth.release import CONFIG

    try:
        config, base = load_config(str(release / CONFIG), [])
        return prepare(config, base)
    except (ConfigError, DataError) as error:
        # Its last words tell of an option that this command lacks.
        reason, _, _ = str(error).rstrip(".").partition(", or name the file by --set")
        raise type(error)(f"{reason}; or give other real rows: --real FILE") from None


def _read(path: Path, schema: Schema | ImageSchema | None) -> Data:
    from fedsynth.data.images import read_images
    from fedsynth.data.tables import read_table
    from fedsynth.schema import ImageSchema

    if isinstance(schema, ImageSchema):
        return read_images(path, schema)
    if path.suffix == ".npz":
        raise ConfigError(f"{path}: images need a schema: give --schema FILE")
    return read_table(path, schema)


def _evaluated(compared: _Compared, *, quiet: bool, **options: Any) -> Evaluation:
    from fedsynth.cli.terminal import Display
    from fedsynth.evaluation.evaluating import evaluate as look

    with Display(quiet=quiet) as display:
        found = look(
            compared.real,
            compared.synthetic,
            compared.schema,
            train=compared.train,
            certificate=compared.certificate,
            progress=display.of,
            **options,
        )
        job = compared.job
        if job is None or len(job.held) < 2:
            return found
        from fedsynth.evaluation.federated import federated_scores
        from fedsynth.privacy.budget import Budget

        # Exact: like the rest of this report, for the eyes of those who hold the rows.
        nothing = Budget(epsilon=math.inf, delta=1e-5, unit="record", trust="central")
        scores = federated_scores(
            job.held, compared.synthetic, job.schema, nothing, seed=found.seed
        )
    return replace(found, clients=tuple(scores.clients))


def _ask_scores(
    compared: _Compared,
    release: Path,
    epsilon: float,
    delta: float | None,
    out: Path,
    seed: int,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from fedsynth.cli.terminal import Display, show_scores
    from fedsynth.evaluation.federated import federated_scores

    assert compared.job is not None
    budget, ledgers, survivors = _terms(release, epsilon, delta, compared.job)
    try:
        with Display(quiet=quiet) as display:
            scores: FederatedScores = federated_scores(
                compared.job.held,
                compared.synthetic,
                compared.job.schema,
                budget,
                folder=out,
                owners_ledgers=ledgers,
                survivors=survivors,
                seed=seed,
                progress=display,
            )
    finally:
        for ledger in ledgers.values():
            ledger.close()
    who = _WHO_PAID[budget.protects.per_record]
    if as_json:
        print_json({**scores.to_dict(), "who_paid": who})
        return
    show_scores(scores, out)
    print(who, file=sys.stderr)


_WHO_PAID = {
    True: (
        "Held-out records paid for these scores; those that the generator learned from paid for "
        "the release alone, if nobody has records among both. Every such run adds its epsilon and "
        "its delta to what the same held-out records paid before."
    ),
    False: (
        "Every client paid for these scores besides the release: add both epsilons and both "
        "deltas, and those of every other such run."
    ),
}
_LARGEST_DELTA = 1e-3


def _terms(
    release: Path, epsilon: float, delta: float | None, job: Prepared
) -> tuple[Budget, dict[str, Any], float]:
    """The scores' budget, the owners' own accounts and the share that is sure to answer."""
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.run import owners_ledgers
    from fedsynth.privacy.budget import Budget
    from fedsynth.release import CONFIG

    config, base = load_config(str(release / CONFIG), [])
    privacy = config.privacy
    nobodys = "holdout" in job.held and "holdout" not in job.owners
    whole = not privacy.budget.protects.per_record
    if nobodys and (whole or config.federation.ledgers is not None):
        raise ConfigError(
            "the held-out rows of this job are no owner's (its owners are simulated, or the rows "
            "came apart): scores that protect clients, or that are charged to owners' accounts, "
            "need an owner for every row; fs.federated_scores takes any in Python"
        )
    if delta is not None and delta > _LARGEST_DELTA:
        raise ConfigError(f"--delta {delta:g} promises nothing: give at most {_LARGEST_DELTA:g}")
    budget = Budget(
        epsilon=epsilon,
        delta=privacy.budget.resolved_delta if delta is None else delta,
        unit=privacy.unit,
        trust=privacy.trust,
    )
    return budget, owners_ledgers(config, job.held, base), config.federation.survivors


def _default(release: Path | None) -> Path:
    if release is None:
        return Path("report")
    # Of "." or "..", neither name nor parent is what it says.
    place = release if release.name not in ("", "..") else release.resolve()
    return place.parent / f"{place.name}-report"
