"""What a fit left behind, whatever the method: rows drawn from it, its account, its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel

from fedsynth.codec import Arrays, pack, unpack
from fedsynth.data.fingerprint import fingerprint
from fedsynth.data.images import Images
from fedsynth.demands import demand_flag, demand_kind, demand_path
from fedsynth.errors import ConfigError, FedsynthError, ReleaseError
from fedsynth.federation.server.incidents import Dropped, names_clients, tell
from fedsynth.federation.server.traffic import Traffic
from fedsynth.methods.configured import Configured
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.arguments import demand_draw, demand_rows, rename
from fedsynth.release import Report, read_model, write_model, write_release
from fedsynth.schema import ImageSchema, Schema

_ROWS = 10_000
"""Of a release, where nobody says how many."""


class Learned(Protocol):
    """What a fit leaves behind: a frozen dataclass of released values and what follows from them.

    It is saved by its fields (:mod:`fedsynth.codec`).
    """

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Synthetic rows: see :meth:`FittedModel.sample`."""
        ...

    def check(self) -> None:
        """Raises ReleaseError where the parts, as they were read, do not go together."""
        ...


L = TypeVar("L", bound=Learned)


class FittedModel(Configured, Generic[L]):
    """What was learned by a method, and what it cost; nothing, before a fit.

    Args:
        schema, settings, overrides: see :class:`Configured`.
    """

    learned_type: ClassVar[Any]
    certificate: Certificate | None = None
    """Of the release that it was loaded from (:func:`fedsynth.load`)."""

    def __init__(
        self,
        schema: Schema | ImageSchema | None = None,
        settings: BaseModel | Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        super().__init__(schema, settings, **overrides)
        self._learned: L | None = None
        self._ledger: Ledger | None = None
        self._traffic: Traffic | None = None
        self._dropped: Dropped | None = None
        self._drawn: set[str] = set()

    def set_params(self, **params: Any) -> Self:
        if self._learned is not None or self._ledger is not None:
            raise ConfigError("what was fitted keeps its settings: make another synthesizer")
        return super().set_params(**params)

    def known(self) -> dict[str, Any]:
        """What the schema and the settings say of something learned: its `given` fields."""
        return {"schema": self.schema}

    def sample(
        self,
        rows: int | None = None,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
        **words: Any,
    ) -> Any:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: a condition by column, which every row is to meet: a value, a list of values, or
                for numbers and dates a range, {"from": a, "to": b} or (a, b); of images, on the
                target. What a method cannot draw by is met by drawing again.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.
            words: rows as `num_rows` or `n`, seed as `random_state`.

        Returns:
            A table of the schema's columns, or :class:`Images`.

        Raises:
            ConfigError: nothing was fitted; rows below 1, conditions that make no sense or that
                hardly a row meets.
        """
        given = {"rows": rows, "where": where, "proportions": proportions, "seed": seed}
        rows, where, proportions, seed = rename("sample", given, words)
        count, seed = demand_rows("sample", rows), demand_draw(where, proportions, seed)
        drawn = self.learned.draw(count, where, proportions, seed)
        self._drawn.add(fingerprint(drawn))
        return drawn

    def drew(self, rows: pd.DataFrame | Images) -> bool:
        """Whether :meth:`sample` gave these rows, in this order, since the last fit."""
        if not isinstance(rows, pd.DataFrame | Images):
            return False
        try:
            return fingerprint(rows) in self._drawn
        except TypeError:
            return False

    @property
    def learned(self) -> L:
        """What the last fit learned. Raises ConfigError before one."""
        if self._learned is None:
            raise ConfigError("nothing to sample from yet: call fit first, or load a release")
        return self._learned

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
        """What went wrong in the last fit without ending it, in sentences; mostly nothing.

        For whoever runs the job: where who takes part is secret, clients are named here and not in
        :attr:`incidents`.
        """
        learned = tuple(getattr(self._learned, "remarks", ()))
        if self._dropped is None:
            return learned
        ledger = self.ledger
        count, budget = getattr(self._learned, "records", None), ledger.job.budget
        if count is not None and budget.protects.per_record:
            learned += budget.cautions_by_estimate(count)
        dropped = tell(self._dropped.entries(), Counter(event.label for event in ledger.events))
        secret = "" if names_clients(ledger.job.budget) else " (secret: who takes part is hidden)"
        return (*(sentence + secret for sentence in dropped), *learned)

    @property
    def incidents(self) -> tuple[dict[str, Any], ...]:
        """Clients whose answers a release of the last fit lacks: JSON-able, sorted.

        Each has ``stage`` (the task asked), ``client``, ``reason`` (one of a fixed set) and
        ``rounds``. Empty, too, where the budget hides who takes part (clients, central trust):
        what is published must not tell. A resumed job's are of all its rounds whose values it
        kept: those after its last checkpoint were lost with their values; where who takes part is
        secret a checkpoint holds none.

        Raises:
            ConfigError: nothing was fitted here.
        """
        ledger = self.ledger
        if self._dropped is None or not names_clients(ledger.job.budget):
            return ()
        return self._dropped.entries()

    def release(
        self,
        folder: str | Path,
        rows: int | pd.DataFrame | Images | None = None,
        report: Report | None = None,
        *,
        seed: int | None = None,
        edited: bool = False,
        **words: Any,
    ) -> Certificate:
        """Write a release of synthetic rows, the model and their certificate.

        Args:
            folder: new, empty, or the one that was fitted in.
            rows: how many to draw, 10,000 by default; or rows that :meth:`sample` gave since the
                last fit.
            report: an evaluation of rows that are given, on public ones.
            seed: makes the draw repeatable.
            edited: the rows that are given were changed after they were drawn: the certificate
                then says that nothing checks what is in them.
            words: rows as `num_rows` or `n`, seed as `random_state`.

        Raises:
            ConfigError: nothing was fitted here; options that do not go together.
            ReleaseError, PrivacyError: see :func:`fedsynth.release.write_release`.
        """
        given = {"folder": folder, "rows": rows, "report": report, "seed": seed, "edited": edited}
        folder, rows, report, seed, edited = rename("release", given, words)
        folder, edited = demand_path("folder", folder), demand_flag("edited", edited)
        if report is not None:
            demand_kind("report", report, Report, "an Evaluation, as fs.evaluate gives")
        _ = self.learned, self.ledger
        if isinstance(rows, pd.DataFrame | Images):
            if seed is not None:
                raise ConfigError("seed is of rows that release draws: give their number as rows")
            return write_release(folder, self, rows, report=report, edited=edited)
        if report is not None or edited:
            raise ConfigError(
                "a report, and edited, are of rows that exist: give those in place of their number"
            )
        drawn = self.sample(_ROWS if rows is None else rows, seed=seed)
        return write_release(folder, self, drawn)

    def save(self, folder: str | Path) -> None:
        """Write the model alone, to :meth:`load` again: no release, for it has no certificate.

        Raises:
            ConfigError: nothing was fitted.
            ReleaseError: the folder holds something that this would overwrite.
        """
        folder = demand_path("folder", folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ReleaseError(f"{folder} exists already: choose another folder")
        _ = self.learned
        folder.mkdir(parents=True, exist_ok=True)
        write_model(folder, self)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A model that :meth:`save` or :meth:`release` wrote; :func:`fedsynth.load` reads any
        method's release, and checks its certificate.

        Raises:
            ReleaseError: the folder holds no model of this method, or a damaged one.
        """
        method, schema, arrays, plain = read_model(demand_path("folder", folder))
        if method != cls.name:
            raise ReleaseError(f"{folder} holds a model of {method}, not of {cls.name}")
        return cls.from_state(schema, arrays, plain)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything that was learned: arrays, and JSON-able values. Nothing private."""
        arrays, plain = pack(self.learned)
        return arrays, {**plain, "settings": self.saved_settings()}

    def saved_settings(self) -> dict[str, Any]:
        """The settings that a model is loaded with."""
        settings: dict[str, Any] = self.settings.model_dump(exclude_unset=True, mode="json")
        return settings

    @classmethod
    def from_state(
        cls, schema: Schema | ImageSchema, arrays: Arrays, meta: Mapping[str, Any]
    ) -> Self:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            synthesizer = cls(schema, meta["settings"])
            learned = unpack(cls.learned_type, arrays, meta, synthesizer.known())
            learned.check()
        except ReleaseError:
            raise
        except (FedsynthError, KeyError, TypeError, ValueError, AssertionError):
            raise ReleaseError("the model's files do not fit together") from None
        synthesizer._learned = learned
        return synthesizer
