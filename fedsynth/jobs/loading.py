"""A release read back: its model, to sample more rows from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsynth.demands import demand_path
from fedsynth.errors import ReleaseError
from fedsynth.privacy.trail.certificate import MODEL, SCHEMA, Certificate
from fedsynth.registry import METHODS
from fedsynth.release import WEIGHTS, demand_unchanged, read_model

if TYPE_CHECKING:
    from fedsynth.methods.synthesizer import Synthesizer


def load(folder: str | Path) -> Synthesizer[Any]:
    """The synthesizer of a release, to sample more rows from, at no further cost.

    Raises:
        ReleaseError: the release is incomplete, or what is read of it was changed.
    """
    folder = demand_path("folder", folder)
    certificate = Certificate.load(folder)
    for name in (MODEL, WEIGHTS, SCHEMA):
        demand_unchanged(folder / name, certificate.content["files"].get(name))
    method, schema, arrays, content = read_model(folder)
    if method not in METHODS:
        raise ReleaseError(f"{folder / MODEL}: of a method that this fedsynth lacks")
    synth: Synthesizer[Any] = METHODS[method].from_state(schema, arrays, content)
    synth.certificate = certificate
    return synth
