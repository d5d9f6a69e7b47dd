"""What every synthesizer keeps of its last fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import pandas as pd
from pydantic import BaseModel

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.federation.server.traffic import Traffic
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.fit import Fitting
from fedsynth.release import Fitted, Report, write_release

L = TypeVar("L")
S = TypeVar("S", bound=BaseModel)


def settled(kind: type[S], settings: S | None, overrides: Mapping[str, Any]) -> S:
    """A synthesizer's settings: those that were given, with fields as keywords in their place.

    Raises:
        ConfigError: fields that ``kind`` does not have, or values that they cannot take.
    """
    given = settings.model_dump(exclude_unset=True) if settings is not None else {}
    return kind(**{**given, **overrides})


class Trained(Generic[L]):
    """What a fit learned, and its account; nothing before one."""

    _learned: L | None = None
    _ledger: Ledger | None = None
    _traffic: Traffic | None = None

    def _begin(self, fitting: Fitting) -> None:
        """Take up the account of a fit, and forget what an earlier one learned.

        A release pairs a model with an account: after a fit that fails there is none to release.
        """
        self._ledger, self._traffic = fitting.ledger, fitting.channel.traffic
        self._learned = None

    @property
    def ledger(self) -> Ledger:
        """The account of the last fit. Raises ConfigError before one."""
        if self._ledger is None:
            raise ConfigError("this synthesizer was not fitted here, so it has no ledger")
        return self._ledger

    @property
    def traffic(self) -> Traffic:
        """Calls and bytes of the last fit. Raises ConfigError before one."""
        if self._traffic is None:
            raise ConfigError("this synthesizer was not fitted here, so nothing was sent")
        return self._traffic

    @property
    def remarks(self) -> tuple[str, ...]:
        """What went wrong in the last fit without ending it, in sentences; mostly nothing."""
        return ()

    def release(
        self, folder: str | Path, rows: pd.DataFrame | Images, report: Report | None = None
    ) -> Certificate:
        """Write a release: see :func:`fedsynth.release.write_release`."""
        # Every synthesizer adds the rest of what a release needs: name, schema, settings, model.
        return write_release(folder, cast("Fitted", self), rows, report=report)

    @property
    def learned(self) -> L:
        """Raises ConfigError before a fit."""
        if self._learned is None:
            raise ConfigError("nothing to sample from yet: call fit first, or load a release")
        return self._learned
