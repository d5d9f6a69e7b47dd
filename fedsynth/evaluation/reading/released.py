"""What is evaluated where a release is named in place of rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol, cast

import pandas as pd

from fedsynth.data.images import Images, demand_rows
from fedsynth.errors import ConfigError
from fedsynth.privacy.trail.certificate import Certificate, certify
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.release import read_release
from fedsynth.schema import ImageSchema, Schema


class Sampler(Protocol):
    """A synthesizer that has learned, seen from here."""

    schema: Any
    certificate: Certificate | None

    def sample(self, rows: int, *, seed: int) -> Any:
        """Synthetic rows."""
        ...

    def drew(self, rows: Any) -> bool:
        """Whether it drew these."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The account of its fit, where it was fitted here."""
        ...


Released = str | Path | Sampler
"""The folder of a release, or a synthesizer."""


def is_release(given: object, synthetic: object) -> bool:
    """Whether it is a synthesizer or a folder, rather than rows, or a path to some beside which
    synthetic rows are given."""
    # Of the class: some properties of a synthesizer that was not fitted raise.
    if hasattr(type(given), "drew"):
        return True
    return isinstance(given, str | os.PathLike) and synthetic is None


def read_released(
    release: object,
    seed: int,
    real: object,
    beside: Mapping[str, object],
) -> tuple[pd.DataFrame | Images, Schema | ImageSchema, Certificate]:
    """Its rows, schema and certificate; of a synthesizer as many rows as there are real ones.

    Args:
        real: what they will be held against.
        beside: what a release brings along, and was given all the same; None where it was not.

    Raises:
        ConfigError: it brings along what was given, or there are no real rows.
        ReleaseError: it cannot be read.
    """
    if twice := [name for name, given in beside.items() if given is not None]:
        raise ConfigError(f"a release brings its {twice[0]} along: leave {twice[0]} away")
    if real is None:
        raise ConfigError(
            "say which real rows a release is held against: evaluate(release, real=held_out), of "
            "rows that it did not learn from"
        )
    if isinstance(release, str | os.PathLike):
        return read_release(Path(release))
    synth, rows = cast(Sampler, release), demand_rows(real, "real")
    drawn, certificate = synth.sample(len(rows), seed=seed), synth.certificate
    return drawn, synth.schema, certificate or certify(synth.ledger, {})


def errors_of(model: object) -> tuple[dict[str, Any], ...] | None:
    """How far a model's counts may be off, an entry for each column and pair measured; None of
    what does not tell."""
    if not hasattr(type(model), "errors"):
        return None
    told = cast(Any, model)
    names = [column.name for column in told.schema.modelled]
    sets = {", ".join(each): each for k in (1, 2) for each in combinations(names, k)}
    return tuple(
        {**row, "columns": list(sets[row["columns"]])} for row in told.errors().to_dict("records")
    )
