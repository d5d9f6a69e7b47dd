"""A job's folder: new, written down, or finished; whatever a kill left of it is one of these."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fedsynth.demands import demand_path
from fedsynth.durable import write_whole
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.holding import CHECKPOINT, LOCK
from fedsynth.jobs.config import Config
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER, SCHEMA, Certificate
from fedsynth.privacy.verify.verification import NOT_VOID, verify
from fedsynth.release import discard_checkpoint
from fedsynth.schema import ImageSchema, Schema
from fedsynth.yaml_files import yaml_text


def demand_new(folder: Path) -> None:
    """Raises ConfigError for a folder that holds something, but for what a start left that was
    killed before there was a job."""
    folder = demand_path("out", folder)
    if not folder.exists() or (folder.is_dir() and _is_left(folder)):
        return
    words = f"{folder} exists and is not empty: choose another --out"
    if (folder / CONFIG).exists():
        words += f", or continue an interrupted job with --resume {folder}"
    raise ConfigError(words)


def _is_left(folder: Path) -> bool:
    names, begun = {path.name for path in folder.iterdir()}, folder / CHECKPOINT
    if begun.is_dir() and {path.name for path in begun.iterdir()} <= {LOCK}:
        names -= {CHECKPOINT, SCHEMA, f"{SCHEMA}.new", f"{CONFIG}.new"}
    return not names


def write_job(folder: Path, config: Config, schema: Schema | ImageSchema) -> None:
    """The job as its folder keeps it, on disk when this returns; the job file last."""
    write_whole(folder / SCHEMA, yaml_text(schema.to_dict()).encode())
    config.save(folder / CONFIG)


def forget_job(folder: Path) -> None:
    """Remove a job that asked nothing, so that another may start here; the job file first."""
    for name in (LEDGER, CONFIG, SCHEMA):
        (folder / name).unlink(missing_ok=True)
    discard_checkpoint(folder)
    with suppress(OSError):
        folder.rmdir()


def demand_verified(folder: Path) -> Certificate:
    """The certificate of a finished job, of which nothing but its release is left.

    Raises:
        ReleaseError: it does not verify.
    """
    certificate = Certificate.load(folder)
    discard_checkpoint(folder)
    # Of a job without privacy the certificate itself says so.
    failed = [one for one in verify(folder) if not (one.passed or one.name == NOT_VOID)]
    if failed:
        raise ReleaseError(
            f"{folder}: the job is finished, and its release does not verify: "
            + "; ".join(f"{one.name}: {one.found}" for one in failed)
        )
    return certificate
