"""A release read back: its model, to sample more rows from, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedsynth.data.images import Images, read_images
from fedsynth.data.tables import keys_of, read_table
from fedsynth.errors import ReleaseError, SchemaError
from fedsynth.privacy.trail.certificate import CONFIG, MODEL, SCHEMA, Certificate, sha256
from fedsynth.registry import METHODS
from fedsynth.release import WEIGHTS, read_model
from fedsynth.schema import ImageSchema, Schema, load_schema

if TYPE_CHECKING:
    from fedsynth.methods.synthesizer import Synthesizer


def load(folder: str | Path) -> Synthesizer[Any]:
    """The synthesizer of a release, to sample more rows from, at no further cost.

    Raises:
        ReleaseError: the release is incomplete, or what is read of it was changed.
    """
    folder = Path(folder)
    certificate = Certificate.load(folder)
    for name in (MODEL, WEIGHTS, SCHEMA):
        _demand_unchanged(folder / name, certificate.content["files"].get(name))
    method, schema, arrays, content = read_model(folder)
    if method not in METHODS:
        raise ReleaseError(f"{folder / MODEL}: of a method that this fedsynth lacks")
    synth: Synthesizer[Any] = METHODS[method].from_state(schema, arrays, content)
    synth.certificate = certificate
    return synth


def read_release(
    folder: str | Path,
) -> tuple[pd.DataFrame | Images, Schema | ImageSchema, Certificate]:
    """A release's rows, their schema and the certificate.

    Raises:
        ReleaseError: the release is incomplete, or what is read of it was changed.
    """
    folder = Path(folder)
    certificate = Certificate.load(folder)
    files = certificate.content["files"]
    name = next((name for name in files if name.startswith("rows.")), "rows.csv")
    for part in (name, SCHEMA, CONFIG):
        _demand_unchanged(folder / part, files.get(part))
    try:
        schema = load_schema(folder / SCHEMA)
    except SchemaError:
        raise ReleaseError(f"{folder / SCHEMA} cannot be read") from None
    if isinstance(schema, ImageSchema):
        return read_images(folder / name, schema), schema, certificate
    written = {"separator": ",", "decimal": ".", "encoding": "utf-8"}
    known: dict[str, Any] = {key: written[key] for key in keys_of(name)}
    return read_table(folder / name, schema, **known), schema, certificate


def _demand_unchanged(path: Path, expected: str | None) -> None:
    if expected is None:
        raise ReleaseError(f"{path} is not in the certificate: this is no complete release")
    if not path.is_file():
        raise ReleaseError(f"{path} is missing: get the release again, whole")
    if sha256(path) != expected:
        raise ReleaseError(
            f"{path} was changed or cut short since it was certified: get the release again"
        )
