"""A release read back: its model, to sample more rows from or to predict with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsynth.demands import demand_path
from fedsynth.errors import ReleaseError
from fedsynth.privacy.trail.certificate import MODEL
from fedsynth.registry import METHODS
from fedsynth.release import read_certified

if TYPE_CHECKING:
    from fedsynth.methods.fitted import FittedModel
    from fedsynth.methods.synthesizer import Synthesizer


def load(folder: str | Path) -> Synthesizer[Any]:
    """The synthesizer of a release, to sample more rows from, at no further cost.

    Raises:
        ReleaseError: the release is incomplete, or what is read of it was changed; or it is of a
            model that makes no rows.
    """
    from fedsynth.methods.synthesizer import Synthesizer

    model = load_model(folder)
    if not isinstance(model, Synthesizer):
        raise ReleaseError(
            f"{folder} is a release of a {model.noun}, which makes no rows: read it by "
            f"fs.{type(model).__name__}.load"
        )
    return model


def load_model(folder: str | Path) -> FittedModel[Any]:
    """The model of a release, whether or not it makes rows.

    Raises:
        ReleaseError: as :func:`load`.
    """
    folder = demand_path("folder", folder)
    certificate, method, schema, arrays, content = read_certified(folder)
    if method not in METHODS:
        raise ReleaseError(f"{folder / MODEL}: of a method that this fedsynth lacks")
    model: FittedModel[Any] = METHODS[method].from_state(schema, arrays, content)
    model.certificate = certificate
    return model
