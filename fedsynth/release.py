"""A release: what is published, with its certificate; written whole or not at all.

`rows.csv` (or `.parquet`, images `.npz`), `model.safetensors` and `model.json`, `schema.yaml`,
`config.yaml`, `ledger.jsonl`, perhaps a report, and last `certificate.json` with the hash of each:
a folder without it is no release. `certificate.html` says the same for people.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from fedsynth.data.images import Images, read_images, write_images
from fedsynth.data.tables import keys_of, read_table, write_table
from fedsynth.demands import demand_path
from fedsynth.durable import write_whole
from fedsynth.errors import PrivacyError, ReleaseError, SchemaError
from fedsynth.files import FIGURES, demand_plain, read_plain, writing
from fedsynth.holding import CHECKPOINT, hold
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import (
    CONFIG,
    LEDGER,
    MODEL,
    NAME,
    SCHEMA,
    Certificate,
    sha256,
)
from fedsynth.privacy.trail.chain import parse_strictly
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.sealing import seal
from fedsynth.schema import ImageSchema, Schema, load_schema
from fedsynth.yaml_files import yaml_text

WEIGHTS = "model.safetensors"
FORMAT = 1


class Settings(Protocol):
    """How a method models and trains."""

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> BaseModel:
        """With all defaults filled in."""
        ...

    def map_paths(self, change: Callable[[str], str]) -> Self:
        """With another spelling of every path."""
        ...


class Fitted(Protocol):
    """What a release needs of a fitted model."""

    name: ClassVar[str]

    @property
    def schema(self) -> Schema | ImageSchema: ...

    def resolved(self, budget: Budget) -> BaseModel: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def incidents(self) -> tuple[Mapping[str, Any], ...]: ...

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]: ...


class Drawing(Fitted, Protocol):
    """What a release of rows needs of a fitted synthesizer."""

    def drew(self, rows: pd.DataFrame | Images) -> bool: ...


@runtime_checkable
class Report(Protocol):
    """What may be said of the rows beside them."""

    @property
    def public(self) -> bool:
        """Whether it tells nothing of private rows that a budget does not cover."""
        ...

    def save(self, folder: Path) -> Iterable[Path]:
        """Write files into the folder; their paths."""
        ...


def write_release(
    folder: str | Path,
    synth: Drawing,
    rows: pd.DataFrame | Images,
    *,
    config: Mapping[str, Any] | None = None,
    report: Report | None = None,
    kind: str = "csv",
    edited: bool = False,
) -> Certificate:
    """Write a release and certify it.

    Args:
        folder: new, empty, or the folder that the synthesizer was fitted in.
        synth: fitted.
        rows: synthetic rows, as `synth.sample` gave them since the last fit.
        config: the resolved job; None writes what the synthesizer knows of it.
        report: an evaluation on public rows (:class:`fedsynth.Evaluation`).
        kind: "csv" or "parquet", for tables.
        edited: the rows may be others: nobody can tell what is in them, and the certificate says
            so.

    Raises:
        ReleaseError: the folder holds a release, or something else that this would overwrite.
        ConfigError: the synthesizer was not fitted here.
        PrivacyError: a report that was computed on private rows outside any budget, or rows that
            `synth.sample` did not give.
        MachineError: the folder cannot be written; what was fitted is not lost.
    """
    folder = Path(folder)
    _demand_kind(rows, synth.schema, kind)
    if report is not None and not report.public:
        raise PrivacyError(
            "the report was computed on private rows, and no epsilon covers it, so it may not go "
            "into the release: keep it elsewhere by report.save(folder), or evaluate on public "
            "rows (public=True)"
        )
    ledger, drawn = synth.ledger, synth.drew(rows)
    if not (drawn or edited):
        raise PrivacyError(
            "these rows are not as this synthesizer's sample gave them since its last fit (sorted, "
            "cut, changed or other rows), so no epsilon covers them. To release rows of the model, "
            "give their number, as release(folder, 10_000), or what sample returned; to release "
            "rows that you edited and that hold nothing private, say edited=True, which the "
            "certificate will repeat"
        )
    with _at_work(folder, ledger):
        names = [_write_rows(folder, rows, synth.schema, kind)]
        names += _write_job(folder, synth, config)
        if report is not None:
            names += [path.name for path in report.save(folder)]
        certificate = seal(folder, ledger, names, synth.incidents, edited=not drawn)
        discard_checkpoint(folder)
    return certificate


def write_model_release(
    folder: str | Path, model: Fitted, config: Mapping[str, Any] | None = None
) -> Certificate:
    """Write a release of a model that makes no rows, and certify it.

    Args:
        config: the resolved job; None writes what the model knows of it.

    Raises:
        ReleaseError: the folder holds a release, or something else that this would overwrite.
        ConfigError: the model was not fitted here.
    """
    folder, ledger = Path(folder), model.ledger
    with _at_work(folder, ledger):
        names = _write_job(folder, model, config)
        certificate = seal(folder, ledger, names, model.incidents)
        discard_checkpoint(folder)
    return certificate


@contextmanager
def _at_work(folder: Path, ledger: Ledger) -> Iterator[None]:
    """Hold the folder, which is made if there is none, with the job's account in it."""
    _demand_ours(folder, ledger)
    with writing(folder), hold(folder):
        # Another process may have held it before.
        _demand_ours(folder, ledger)
        if ledger.path is None or ledger.path.absolute() != (folder / LEDGER).absolute():
            ledger.write_to(folder / LEDGER)
        yield


def _write_job(folder: Path, model: Fitted, config: Mapping[str, Any] | None) -> list[str]:
    """Write what was learned, and by which job; the files' names."""
    write_model(folder, model)
    job = _job_of(model) if config is None else config
    write_whole(folder / CONFIG, yaml_text(job).encode())
    return [WEIGHTS, MODEL, SCHEMA, CONFIG]


def is_release(folder: Path) -> bool:
    """Whether the folder holds a finished release."""
    return (folder / NAME).exists()


def discard_checkpoint(folder: Path) -> None:
    """Delete what was needed to resume the job."""
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def _demand_ours(folder: Path, ledger: Ledger) -> None:
    if is_release(folder):
        raise ReleaseError(f"{folder} holds a release, which is never overwritten: choose another")
    if folder.exists() and not folder.is_dir():
        raise ReleaseError(f"{folder} is a file: choose a folder")
    if not folder.exists() or all(path.name == CHECKPOINT for path in folder.iterdir()):
        return
    path = folder / LEDGER
    if not path.exists() or Ledger.read(path).job.job != ledger.job.job:
        raise ReleaseError(f"{folder} is not empty and not this job's: choose another folder")


def _demand_kind(rows: object, schema: Schema | ImageSchema, kind: str) -> None:
    if not isinstance(rows, Images if isinstance(schema, ImageSchema) else pd.DataFrame):
        raise ReleaseError("the rows to release are not of the kind that the schema describes")
    if kind not in ("csv", "parquet"):
        raise ReleaseError(f"tables are released as csv or parquet, not {kind!r}")


def _write_rows(
    folder: Path, rows: pd.DataFrame | Images, schema: Schema | ImageSchema, kind: str
) -> str:
    # Of a release that was interrupted, when rows were drawn in another format.
    for stale in ("rows.csv", "rows.parquet"):
        if stale != f"rows.{kind}":
            (folder / stale).unlink(missing_ok=True)
    if isinstance(schema, ImageSchema):
        assert isinstance(rows, Images)
        write_images(rows, folder / "rows.npz", schema)
        return "rows.npz"
    assert isinstance(rows, pd.DataFrame)
    write_table(rows, folder / f"rows.{kind}", schema)
    return f"rows.{kind}"


def write_model(folder: Path, model: Fitted) -> None:
    """Write what a model learned, and its schema."""
    arrays, meta = model.model_state()
    # Not `save_file`, which makes a file that its owner alone may read.
    body = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    write_whole(folder / WEIGHTS, body)
    plain = {"format": FORMAT, "method": model.name, **meta}
    write_whole(folder / MODEL, (json.dumps(plain, indent=1, allow_nan=False) + "\n").encode())
    write_whole(folder / SCHEMA, yaml_text(model.schema.to_dict()).encode())


def read_model(
    folder: Path,
) -> tuple[str, Schema | ImageSchema, dict[str, NDArray[Any]], dict[str, Any]]:
    """What :func:`write_model` wrote: the method's name, schema, arrays and plain values.

    Raises:
        ReleaseError: something is missing or damaged, or of another format.
    """
    try:
        schema = load_schema(folder / SCHEMA)
        content = parse_strictly(read_plain(folder / MODEL, ReleaseError, FIGURES))
        demand_plain(folder / WEIGHTS, ReleaseError)
        arrays = load_file(folder / WEIGHTS)
        method, known = str(content["method"]), content["format"] == FORMAT
    except (SchemaError, SafetensorError, ValueError, KeyError, TypeError):
        raise ReleaseError(f"{folder}: the model or its schema cannot be read") from None
    if not known:
        raise ReleaseError(f"{folder / MODEL}: of a format that this fedsynth lacks")
    return method, schema, arrays, content


def read_certified(
    folder: Path,
) -> tuple[Certificate, str, Schema | ImageSchema, dict[str, NDArray[Any]], dict[str, Any]]:
    """A release's certificate, and its model as :func:`read_model` reads it.

    Raises:
        ReleaseError: the release is incomplete, or what is read of it was changed.
    """
    certificate = Certificate.load(folder)
    for name in (MODEL, WEIGHTS, SCHEMA):
        demand_unchanged(folder / name, certificate.content["files"].get(name))
    return certificate, *read_model(folder)


def read_release(
    folder: str | Path,
) -> tuple[pd.DataFrame | Images, Schema | ImageSchema, Certificate]:
    """A release's rows, their schema and the certificate.

    Raises:
        ReleaseError: the release is incomplete or has no rows, or what is read was changed.
    """
    folder = demand_path("folder", folder)
    certificate = Certificate.load(folder)
    files = certificate.content["files"]
    name = next((name for name in files if name.startswith("rows.")), "rows.csv")
    if name not in files and MODEL in files:
        raise ReleaseError(f"{folder} is a release without rows, of a model alone")
    for part in (name, SCHEMA, CONFIG):
        demand_unchanged(folder / part, files.get(part))
    try:
        schema = load_schema(folder / SCHEMA)
    except SchemaError:
        raise ReleaseError(f"{folder / SCHEMA} cannot be read") from None
    if isinstance(schema, ImageSchema):
        return read_images(folder / name, schema), schema, certificate
    written = {"separator": ",", "decimal": ".", "encoding": "utf-8"}
    known: dict[str, Any] = {key: written[key] for key in keys_of(name)}
    return read_table(folder / name, schema, **known), schema, certificate


def demand_unchanged(path: Path, expected: str | None) -> None:
    """Raises ReleaseError for a file that is not as its certificate says."""
    if expected is None:
        raise ReleaseError(f"{path} is not in the certificate: this is no complete release")
    if not path.is_file():
        raise ReleaseError(f"{path} is missing: get the release again, whole")
    if sha256(path) != expected:
        raise ReleaseError(
            f"{path} was changed or cut short since it was certified: get the release again"
        )


def _job_of(model: Fitted) -> dict[str, Any]:
    """What a model knows of its job: a record, since it does not know where the data are."""
    budget = model.ledger.job.budget
    settings = model.resolved(budget)
    privacy = {
        "epsilon": budget.epsilon if budget.private else "inf",
        "delta": budget.resolved_delta,
        "unit": budget.unit,
        "trust": budget.trust,
        **{
            name: getattr(budget, name)
            for name in ("weigh", "person_clip", "person_share")
            if getattr(budget, name) is not None
        },
    }
    return {
        "schema": SCHEMA,
        "privacy": privacy,
        "method": model.name,
        "settings": settings.model_dump(mode="json", exclude_none=True),
    }
