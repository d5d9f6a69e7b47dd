"""`fedsynth select-privately JOB`: try methods and settings on private rows, release the best."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedsynth.cli.options import Json, Quiet
from fedsynth.errors import ConfigError
from fedsynth.plain import print_json, print_note
from fedsynth.progress import Display

if TYPE_CHECKING:
    from fedsynth.jobs.config import Config
    from fedsynth.tuning.privately import PrivatelySelected


def select_privately(
    config: Annotated[str, typer.Argument(help="A job file with the section `select_privately`.")],
    out: Annotated[Path, typer.Option(help="A new folder for the release.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a key: privacy.epsilon=1."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try methods and settings on private rows within the budget; release the best try alone.

    How many tries there were is secret, and so is all of the others. What is interrupted stays
    charged, and is not resumed.
    """
    from fedsynth.jobs.config import load_config

    # Before what takes long to import: a mistake in the job file is told at once.
    job, base = load_config(config, changes or [])
    if job.select_privately is None:
        raise ConfigError(
            f"{config} has no section `select_privately`, such as "
            "select_privately: {candidates: [{method: aim}, {method: aim, settings: {bins: 12}}]}"
        )
    _demand_taken(job)
    with Display(quiet=quiet, lines=True) as display:
        try:
            found = _select(job, base, out, display, quiet=quiet)
        except KeyboardInterrupt:
            asked = (out / "ledger.jsonl").exists()
            left = f"What {out / 'ledger.jsonl'} charges is spent" if asked else "Nothing was asked"
            print_note(f"Interrupted. {left}; a selection is not resumed")
            raise typer.Exit(130) from None
    if as_json:
        print_json(_plain(found, out))
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print(found)
    console.print(f"\nRelease: {out}", markup=False)


def _demand_taken(job: Config) -> None:
    """Raises ConfigError for keys that trials would not obey."""
    keys: list[str] = [
        key for key in ("method", "settings", "public") if key in job.model_fields_set
    ]
    for name, taken in (("federation", "ledgers"), ("sample", "rows")):
        keys += [f"{name}.{key}" for key in getattr(job, name).model_fields_set - {taken}]
    if keys:
        raise ConfigError(
            f"a job with `select_privately` takes no {', '.join(sorted(keys))}: methods and "
            "settings are its candidates', federation has ledgers alone, and sample rows alone"
        )
    if not job.holdout:
        raise ConfigError("holdout is the share that trials are scored on: give it, such as 0.2")


def _select(
    job: Config, base: Path, out: Path, display: Display, *, quiet: bool
) -> PrivatelySelected:
    from fedsynth.jobs.accounts import open_accounts
    from fedsynth.jobs.data import prepare
    from fedsynth.privacy.trail.certificate import not_covered
    from fedsynth.registry import synthesizer
    from fedsynth.tuning.privately import select_privately

    wanted = job.select_privately
    assert wanted is not None
    # It is drawn by secret coins, not by the seed.
    data = prepare(job.model_copy(update={"holdout": 0.0}), base, display.caution)
    candidates = [
        synthesizer(one.method, data.schema).set_params(**(one.settings or {}))
        for one in wanted.candidates
    ]
    for sentence in not_covered(data.schema.provenance, data.owners_provenance):
        display.caution(sentence)
    with ExitStack() as open_files:
        ledgers = open_accounts(job, data.owners, base)
        for ledger in ledgers.values():
            open_files.callback(ledger.close)
        if not quiet:
            print_note("Trying in secret: nothing is shown of it but the best, at the end")
        return select_privately(
            candidates,
            data.owners,
            out,
            job.privacy.budget,
            trials=wanted.trials,
            score=wanted.score,
            holdout=job.holdout,
            rows=job.sample.rows,
            outside=job.outside,
            owners_ledgers=ledgers,
            owners_provenance=data.owners_provenance,
            caution=display.caution,
        )


def _plain(found: PrivatelySelected, out: Path) -> dict[str, Any]:
    certificate = found.certificate
    return {
        "release": str(out),
        "chosen": found.chosen,
        "candidates": [dict(one) for one in found.settings],
        "score": found.score,
        "measure": found.measure,
        "trials": {"mean": found.trials.mean, "law": found.trials.kind},
        "epsilon_of_a_trial": found.each,
        "epsilon": certificate.content["guarantee"]["epsilon"],
        "delta": certificate.content["guarantee"]["delta"],
        "sentence": certificate.sentence,
        "adversaries": certificate.content["adversaries"],
        "head": certificate.content["ledger"]["head"],
    }
