"""A job from its file to its release: fit, sample, certify, score.

The folder is made so that a crash at any moment can be resumed: the job file stands in it before
anything is asked, the ledger before anything is answered, the certificate after everything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fedsynth.errors import Caution, ConfigError, FedsynthError, MachineError, warn_of
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.local import KEPT
from fedsynth.federation.server.traffic import Traffic
from fedsynth.files import refused
from fedsynth.holding import hold
from fedsynth.jobs.accounts import account_files, caution_unkept, ledgers_of, open_accounts
from fedsynth.jobs.config import AUTO, Config, load_config
from fedsynth.jobs.data import JobData, prepare, without_rows
from fedsynth.jobs.folder import demand_new, demand_verified, forget_job, write_job
from fedsynth.jobs.inputs import expand_path
from fedsynth.jobs.scoring import Scores, score_classifier, score_rows
from fedsynth.methods.fitting import Method
from fedsynth.methods.persons import demand_invented, demand_sizes, tell_invented
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.trail.agreement import agreement_of
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER, SCHEMA, Certificate, not_covered
from fedsynth.privacy.trail.ledger import Ledger, has_begun
from fedsynth.registry import choose, make, synthesizer
from fedsynth.release import is_release, write_model_release, write_release
from fedsynth.schema import Schema

if TYPE_CHECKING:
    # It brings torch along.
    from fedsynth.methods.classifier.federated import FederatedClassifier

Progress = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Outcome:
    """A finished job.

    Attributes:
        scores: None without a holdout, or where the job was finished before.
        method: that was used; None where the job was finished before.
        reason: why `method: auto` chose it, None where it was named.
        traffic: calls and bytes of the fit; None where not all of it was made here.
        remarks: what went wrong in the fit without ending it, in sentences.
        incidents: clients whose answers the release lacks (:attr:`Synthesizer.incidents`).
        accounts: files of the owners' own across jobs, to which it was charged.
    """

    folder: Path
    certificate: Certificate
    scores: Scores | None
    method: str | None = None
    reason: str | None = None
    traffic: Traffic | None = None
    remarks: tuple[str, ...] = ()
    incidents: tuple[dict[str, Any], ...] = ()
    accounts: tuple[Path, ...] = ()


def start(
    config: Config,
    base: Path,
    folder: Path,
    progress: Progress,
    caution: Caution = warn_of,
    federation: Federation | None = None,
) -> Outcome:
    """Run a job in a new folder.

    Args:
        base: what the job's paths are relative to.
        progress: called with a step's name, rounds done and in all, and the epsilon spent
            (NaN where it was not computed).
        caution: called with how owners' files were read, what epsilon will not cover, what a budget
            promises little by, and what of owners' tables is outside the schema, before anything is
            asked.
        federation: of owners on their own machines; None reads the rows that the job names.

    Raises:
        FedsynthError: where nothing was asked yet, there is no folder.
    """
    demand_new(folder)
    demand_one_method(config)
    data = _read(config, base, caution, federation)
    reason = None
    if config.method == AUTO:
        choice = choose(data.schema, config.privacy.budget)
        reason = choice.reason
        config = config.model_copy(update={"method": choice.method})
    resolved = _resolve(config, data, folder, base)
    check_sample(resolved, data, caution)
    with ExitStack() as held:
        try:
            held.enter_context(hold(folder))
            demand_new(folder)
            with ExitStack() as failing:
                failing.callback(forget_job, folder)
                write_job(folder, resolved, data.schema)
                failing.pop_all()
        except OSError as error:
            raise refused(folder, error) from None
        try:
            outcome = _fit_and_release(
                resolved, folder, data, folder, progress, caution, federation, resume=False
            )
        except FedsynthError:
            if not has_begun(folder / LEDGER):
                forget_job(folder)
            raise
    return replace(outcome, reason=reason)


def demand_one_method(config: Config) -> None:
    """Raises ConfigError for a job that tries several."""
    if config.select_privately is not None:
        raise ConfigError(
            "`select_privately` tries several methods, by `fedsynth select-privately`: leave it out"
        )


def resume(
    folder: Path,
    progress: Progress,
    caution: Caution = warn_of,
    *,
    changes: Sequence[str] = (),
    moved: bool = False,
    federation: Federation | None = None,
) -> Outcome:
    """Continue the job that a folder holds; one that is finished already stays as it is.

    Args:
        changes: of the rows to draw, as :func:`load_config` takes them ("sample.rows=500").
        moved: the folder that the job began in is gone for good.
        federation: as of :func:`start`.

    Raises:
        ConfigError: the folder holds no job, or changes of anything but the rows to draw.
        PrivacyError: it is a copy of the folder that the job began in.
    """
    for change in changes:
        if change.partition("=")[0].strip().partition(".")[0] != "sample":
            raise ConfigError(
                f"--set {change}: a job that is resumed is the one that was agreed on, and asks "
                "what it asked; only the rows to draw can change, such as sample.rows=500. Start "
                "a new job for anything else"
            )
    if not (is_release(folder) or (folder / CONFIG).exists()):
        raise ConfigError(f"{folder} holds no job to resume ({CONFIG} is missing): start it anew")
    if is_release(folder):
        return _finished(folder, changes)
    if not os.access(folder, os.W_OK):
        raise MachineError(f"{folder}: cannot be written; see to its permissions")
    with hold(folder):
        if is_release(folder):
            return _finished(folder, changes)
        config, base = load_config(folder / CONFIG, changes)
        data = _read(config, base, caution, federation)
        check_sample(config, data, caution, folder)
        if changes:
            write_job(folder, config, data.schema)
        begun = has_begun(folder / LEDGER)
        where = config, base, data, folder, progress, caution, federation
        return _fit_and_release(*where, resume=begun, moved=begun and moved)


def _read(config: Config, base: Path, caution: Caution, federation: Federation | None) -> JobData:
    read = prepare if federation is None else without_rows
    return read(config, base, caution)


def _finished(folder: Path, changes: Sequence[str]) -> Outcome:
    """A finished job stays as it is, and is looked at again."""
    if changes:
        raise ConfigError(
            f"{folder} holds a release, which stays as it is: draw other rows from it with "
            "`fedsynth sample`"
        )
    return Outcome(folder, demand_verified(folder), None)


def _resolve(config: Config, data: JobData, folder: Path, base: Path) -> Config:
    """The job as its own folder tells it: all settings filled in, paths seen from there."""

    def seen_from_folder(text: str) -> str:
        if text.startswith("$") or Path(text).is_absolute():
            return text
        return os.path.relpath(expand_path(text, base), folder)

    method = make(config.method, data.schema, config.settings, data.public)
    settings = method.resolved(config.privacy.budget)
    content = config.map_paths(seen_from_folder).to_dict()
    content["schema"] = SCHEMA
    content["settings"] = settings.model_dump(mode="json", exclude_none=True)
    # The certificate's page tells of accounts by the job's file.
    if (ledgers := ledgers_of(config)) is not None and config.federation.ledgers is None:
        content["federation"]["ledgers"] = ledgers.model_dump(exclude_none=True)
    return Config(**content)


def check_sample(
    config: Config, data: JobData, caution: Caution, resumed: Path | None = None
) -> None:
    """Raises ConfigError for rows that could not be drawn or written, whatever is learned, and says
    what those of invented persons will not keep."""
    if not config.makes_rows:
        return
    sample = config.sample
    synth = synthesizer(config.method, data.schema, config.settings, data.public)
    try:
        synth.check_draw(sample.where, sample.proportions)
        if sample.persons:
            demand_invented(data.schema, config.method, synth.learned_type, sample.where)
            demand_sizes(config.privacy.budget)
        if sample.format == "parquet" and not isinstance(data.schema, Schema):
            raise ConfigError("format: images are released as .npz, not parquet: leave it out")
        if sample.format == "parquet" and find_spec("pyarrow.parquet") is None:
            raise ConfigError("format: this pyarrow cannot write parquet: install it whole, or csv")
    except ConfigError as error:
        raise ConfigError(f"sample: {error}{'' if resumed is None else _mend(resumed)}") from None
    if sample.persons and isinstance(data.schema, Schema):
        caution(tell_invented(data.schema))


def _mend(folder: Path) -> str:
    return (
        f"; the rows to draw can be changed: fedsynth run --resume {folder} --set sample.KEY=VALUE "
        "(null for none)"
    )


def find_answers(folder: Path) -> list[Path]:
    """Files beside owners' accounts in which an unfinished job left what they answered."""
    with suppress(FedsynthError):
        config, base = load_config(folder / CONFIG)
        owners = (config.sites and config.sites.paths) or {"": ""}
        places = {file.parent for file in account_files(config, owners, base).values()}
        if places:
            job = Ledger.read(folder / LEDGER).job.job
            files = [place / f"{job}{ending}" for place in places for ending in KEPT]
            return [file for file in files if file.exists()]
    return []


def _fit_and_release(
    config: Config,
    base: Path,
    data: JobData,
    folder: Path,
    progress: Progress,
    caution: Caution,
    federation: Federation | None,
    *,
    resume: bool,
    moved: bool = False,
) -> Outcome:
    for sentence in not_covered(data.schema.provenance, data.owners_provenance):
        caution(sentence)
    caution_unkept(config, caution)
    with ExitStack() as open_files:
        ledgers = open_accounts(config, data.owners, base)
        for ledger in ledgers.values():
            open_files.callback(ledger.close)
        fitted = make(config.method, data.schema, config.settings, data.public).fit(
            federation or data.owners,
            config.privacy.budget,
            seed=config.seed,
            folder=folder,
            resume=resume,
            moved=moved,
            survivors=config.federation.survivors,
            secure=config.federation.secure,
            most_records=config.federation.most_records,
            deadline=config.federation.patience,
            outside=config.outside,
            agreed=agreement_of(config.to_dict()),
            caution=caution,
            owners_ledgers=ledgers,
            progress=progress,
            owners_provenance=data.owners_provenance,
        )
    certificate, scores = _release(config, folder, data, fitted, progress)
    return Outcome(
        folder,
        certificate,
        scores,
        config.method,
        traffic=None if resume else fitted.traffic,
        remarks=fitted.remarks,
        incidents=fitted.incidents,
        accounts=tuple(ledger.path for ledger in ledgers.values() if ledger.path is not None),
    )


def _release(
    config: Config, folder: Path, data: JobData, fitted: Method[Any], progress: Progress
) -> tuple[Certificate, Scores | None]:
    """Write what was fitted, with rows where it makes such, and score it."""
    told, sample = config.to_dict(), config.sample
    if isinstance(fitted, Synthesizer):
        try:
            how = sample.where, sample.proportions, sample.seed, sample.persons
            rows = fitted.sample(sample.rows, *how)
        except ConfigError as error:
            raise ConfigError(f"sample: {error}{_mend(folder)}") from None
        certificate = write_release(folder, fitted, rows, config=told, kind=sample.format)
        score = partial(score_rows, rows=rows)
    else:
        certificate = write_model_release(folder, fitted, config=told)
        score = partial(score_classifier, model=cast("FederatedClassifier", fitted))
    if data.test is None:
        return certificate, None
    progress("scores", 0, 1, certificate.epsilon)
    scores = score(data, data.test, seed=config.seed)
    progress("scores", 1, 1, certificate.epsilon)
    return certificate, scores
