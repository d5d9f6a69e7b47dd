"""`fedsynth evaluate RELEASE --epsilon E`: a few scores of a release, asked through the door."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsynth.errors import Caution, ConfigError, DataError
from fedsynth.plain import print_json, print_note

if TYPE_CHECKING:
    from fedsynth.jobs.config import Config
    from fedsynth.jobs.data import JobData, Rows
    from fedsynth.privacy.budget import Budget

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
_PLACES = ("data.path=", "data.url=", "data.query=", "sites.path=", "sites.paths.", "public.path=")


@dataclass(frozen=True, eq=False)
class Job:
    """The job that made a release; base: the folder that its paths are relative to.

    test: the rows that it held out.
    """

    config: Config
    base: Path
    data: JobData
    test: Rows


def load_job(release: Path, caution: Caution, changes: Sequence[str] = ()) -> Job:
    """The job of a release, with its data; `caution` is called with how these were read.

    Args:
        changes: of where its data lie ("data.path=table.csv"), of a release that was moved.

    Raises:
        ConfigError, DataError: its job file or its data cannot be read, or it held no rows out; or
            changes of anything else.
    """
    for change in changes:
        if not change.startswith(_PLACES):
            raise ConfigError(
                f"--set {change}: the rows that a job held out hang on all that it agreed on; only "
                "where its data lie can change: data.path, sites.path, sites.paths.NAME"
            )
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.data import prepare
    from fedsynth.plain import hash_plain
    from fedsynth.privacy.trail.agreement import agreement_of
    from fedsynth.privacy.trail.certificate import CONFIG

    try:
        config, base = load_config(str(release / CONFIG), changes)
        data = prepare(config, base, caution)
    except (ConfigError, DataError) as error:
        raise type(error)(
            f"{release}: the rows of its own job cannot be had. Were they moved, or the release, "
            "say where they are: --set data.path=FILE (sites.paths.NAME=FILE for each owner); else "
            f"give others: --real FILE. `fedsynth run` would say: {error}"
        ) from None
    # An owner's name that none had would deal the rows out anew.
    if changes and hash_plain(agreement_of(config.to_dict())) != _agreed(release):
        raise ConfigError(f"{release}: its job knows no such owner: {', '.join(changes)}")
    if data.test is None:
        raise ConfigError(
            f"{release}: its job held no rows out, so there is nothing to hold the rows against: "
            "give --real FILE, with rows that it did not learn from"
        )
    return Job(config, base, data, data.test)


def _agreed(release: Path) -> str:
    from fedsynth.privacy.trail.certificate import LEDGER
    from fedsynth.privacy.trail.ledger import Ledger

    return Ledger.read(release / LEDGER).job.agreed_digest


def score_release(
    release: Path,
    epsilon: float,
    delta: float | None,
    *,
    changes: Sequence[str],
    out: Path,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Ask for the scores, charge them to a ledger of their own in `out`, print them.

    delta: the job's, if None.
    changes: of :func:`load_job`.

    Raises:
        ConfigError: an epsilon or a delta that promises nothing, or rows that are no owner's.
    """
    from fedsynth.cli.terminal import show_scores
    from fedsynth.evaluation.federated import federated_scores
    from fedsynth.jobs.accounts import open_accounts
    from fedsynth.privacy.trail.certificate import not_covered
    from fedsynth.progress import Display
    from fedsynth.release import read_release

    if epsilon == math.inf:
        raise ConfigError(
            "--epsilon inf would give exact scores, which nothing covers: leave it away for a "
            "report, which is private"
        )
    rows, _, _ = read_release(release)
    job = load_job(release, Display(quiet=True).caution, changes)
    budget = _budget(job, epsilon, delta)
    ledgers: dict[str, Any] = open_accounts(job.config, job.data.held_out, job.base)
    try:
        with Display(quiet=quiet, lines=True) as display:
            exempt = not_covered(job.data.schema.provenance, job.data.owners_provenance)
            known = budget.for_clients(len(job.data.held_out))
            for sentence in (*exempt, *known.cautions()):
                display.caution(sentence)
            scores = federated_scores(
                job.data.held_out,
                rows,
                job.data.schema,
                budget,
                folder=out,
                owners_ledgers=ledgers,
                survivors=job.config.federation.survivors,
                secure=job.config.federation.secure,
                seed=seed,
                progress=display,
                owners_provenance=job.data.owners_provenance,
            )
    finally:
        for ledger in ledgers.values():
            ledger.close()
    who = _WHO_PAID[budget.protects.per_record]
    if as_json:
        print_json({**scores.to_dict(), "who_paid": who})
        return
    show_scores(scores, out)
    print_note(who)


def _budget(job: Job, epsilon: float, delta: float | None) -> Budget:
    """The scores' budget: unit and trust are the job's."""
    from fedsynth.privacy.budget import Budget

    privacy, data = job.config.privacy, job.data
    ownerless = "holdout" in data.held_out and "holdout" not in data.owners
    if ownerless and (
        not privacy.budget.protects.per_record or job.config.federation.ledgers is not None
    ):
        raise ConfigError(
            "the held-out rows of this job are no owner's (its owners are simulated, or the rows "
            "came apart): scores that protect clients, or that are charged to owners' accounts, "
            "need an owner for every row; fs.federated_scores takes any in Python"
        )
    if delta is not None and delta > _LARGEST_DELTA:
        raise ConfigError(f"--delta {delta:g} promises nothing: give at most {_LARGEST_DELTA:g}")
    return Budget(
        epsilon=epsilon,
        delta=privacy.budget.resolved_delta if delta is None else delta,
        unit=privacy.unit,
        trust=privacy.trust,
        # One that scores rows of nobody's has no fellow.
        curious=None if ownerless else privacy.curious,
    )
