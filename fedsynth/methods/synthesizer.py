"""What every method is: a plan, something learned within it, and rows drawn from that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel

from fedsynth.agreed import demand_whole
from fedsynth.codec import Arrays, pack, unpack
from fedsynth.data.fingerprint import fingerprint
from fedsynth.data.images import Images
from fedsynth.encoding.resolution import resolution_cautions
from fedsynth.errors import Caution, ConfigError, FedsynthError, ReleaseError, warn_of
from fedsynth.federation.runtime import Federation
from fedsynth.federation.server.incidents import Dropped, names_clients, tell
from fedsynth.federation.server.traffic import Traffic
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.arguments import budget_of, demand_draw, demand_none, folder_of
from fedsynth.methods.overview import overview
from fedsynth.methods.sampling.drawing import Conditioning
from fedsynth.methods.sampling.labels import draw_labels
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.trail.job import Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.options import OUTSIDE, Options, Progress
from fedsynth.queries.plan import Plan, count_survivors, digest_of
from fedsynth.queries.session import Session, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.release import Report, read_model, write_model, write_release
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions
from fedsynth.views import Shown, View


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
        """Synthetic rows: see :meth:`Synthesizer.sample`."""
        ...

    def check(self) -> None:
        """Raises ReleaseError where the parts, as they were read, do not go together."""
        ...


L = TypeVar("L", bound=Learned)


class Synthesizer(Shown, ABC, Generic[L]):
    """A method for one schema: fit it to owners' data, sample from it, release it.

    Args:
        schema: what the parties agreed on.
        settings: of the method, as its settings class or a mapping of its fields.
        overrides: fields of the settings as keywords, in place of those.

    Raises:
        ConfigError: a schema that the method is not for, or settings that are none.

    A method sets the class attributes and writes :meth:`stages` (or :meth:`releases`),
    :meth:`learn` and the class of what it learns.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[Any]]
    learned_type: ClassVar[Any]
    images: ClassVar[bool] = True
    """Whether it is for images too."""

    settings: Any
    certificate: Certificate | None = None
    """Of the release that it was loaded from (:func:`fedsynth.load`)."""

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: BaseModel | Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        if not isinstance(schema, Schema | ImageSchema):
            raise ConfigError(
                f"{self.name} needs a schema (fedsynth.load_schema reads one, the command "
                f"`fedsynth schema draft` drafts one), not {type(schema).__name__}"
            )
        if not self.images and isinstance(schema, ImageSchema):
            raise ConfigError(
                f"{self.name} is for tables: use mean-embedding, fedvae or fedgan for images"
            )
        self.schema: Any = schema
        self.settings = self._merge_settings(settings, overrides)
        self._learned: L | None = None
        self._ledger: Ledger | None = None
        self._traffic: Traffic | None = None
        self._dropped: Dropped | None = None
        self._drawn: set[str] = set()

    @classmethod
    def _merge_settings(
        cls, settings: BaseModel | Mapping[str, Any] | None, overrides: Mapping[str, Any]
    ) -> Any:
        """The settings that were given, with fields as keywords in their place."""
        if isinstance(settings, BaseModel):
            settings = settings.model_dump(exclude_unset=True)
        elif not isinstance(settings, Mapping | None):
            raise ConfigError(
                f"settings of {cls.name} are a {cls.settings_type.__name__} or a mapping of its "
                f"fields, not {settings!r:.80}"
            )
        return cls.settings_type(**{**(settings or {}), **overrides})

    # What a method writes.

    def stages(
        self, settings: Any, budget: Budget, clients: int, surviving: int
    ) -> Sequence[Stage]:
        """What is asked, in order, and the share of the budget that each may use.

        Args:
            settings: resolved.
            surviving: how many of the clients are sure to answer.
        """
        raise NotImplementedError

    def releases(
        self, settings: Any, budget: Budget, clients: int, survivors: float
    ) -> tuple[Planned, ...]:
        """What is asked, in order, with all noise; by default the stages share the budget."""
        whole = count_survivors(survivors, clients)
        return share_out(self.stages(settings, budget, clients, whole), budget)

    def participations(self, settings: Any, budget: Budget, clients: int) -> int | None:
        """Rounds after which a client refuses, where clients are drawn."""
        return None

    @abstractmethod
    def learn(self, session: Session) -> L:
        """Ask through the session's channel what its plan holds, and learn from the answers."""

    def known(self) -> dict[str, Any]:
        """What the schema and the settings say of something learned: its `given` fields."""
        return {"schema": self.schema}

    def resolved(self, budget: Budget) -> Any:
        """The settings with all defaults filled in. Raises ConfigError where they do not fit."""
        return self.settings.resolved(budget, self.schema)

    @property
    def classes(self) -> int:
        """Classes of the target that rows are drawn by; 0 where they are drawn without."""
        return conditions(self.schema)

    def check_draw(
        self, where: Mapping[str, Any] | None, proportions: Mapping[Any, float] | None
    ) -> None:
        """Raises ConfigError for what :meth:`sample` would refuse whatever a fit learns."""
        shares = np.full(self.classes, 1 / max(1, self.classes))
        if isinstance(self.schema, ImageSchema):
            draw_labels(self.schema, shares, 1, where, proportions, np.random.default_rng(0))
        else:
            Conditioning.of(self.schema, shares, where, proportions)

    def _view(self) -> View:
        fitted, paid = self._learned is not None, self._ledger is not None
        return overview(self, fitted=fitted, paid=paid, certificate=self.certificate)

    # What everybody uses.

    def plan(
        self, budget: Budget | Mapping[str, Any] | float, clients: int, survivors: float = 1.0
    ) -> Plan:
        """All that a fit would ask, and what it would cost; needs no owner and no data.

        Args:
            budget: what all releases together may cost.
            clients: how many take part, a public number.
            survivors: share of the clients that is sure to answer, in (0, 1].

        Raises:
            ConfigError: the settings do not go with the schema, the budget or the clients.
            PrivacyError: the budget cannot carry the plan.
        """
        demand_whole("clients", clients, 1)
        Options(survivors=survivors)
        budget = budget_of(budget).for_clients(int(clients))
        settings = self.resolved(budget)
        return Plan(
            budget=budget,
            clients=int(clients),
            releases=self.releases(settings, budget, int(clients), survivors),
            participations=self.participations(settings, budget, int(clients)),
            schema=self.schema.digest,
            settings=digest_of(settings),
        )

    def fit(
        self,
        owners: Owners | Federation,
        budget: Budget | Mapping[str, Any] | float,
        *,
        plan: Plan | None = None,
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        moved: bool = False,
        survivors: float = 1.0,
        owners_ledgers: Mapping[str, Ledger] | None = None,
        checkpoint_every: int = 25,
        progress: Progress | bool = True,
        owners_provenance: str = "declared",
        most_records: int | None = None,
        outside: float | str = OUTSIDE,
        caution: Caution = warn_of,
        insecure_noise_seed: int | None = None,
        **unknown: Any,
    ) -> Self:
        """Learn from every owner's rows, within the budget.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one; or
                a federation of clients.
            budget: what all releases of this job may cost together: a :class:`Budget`, a mapping
                of its fields, or epsilon alone.
            plan: of :meth:`plan`, for this budget and so many clients; made here by default.
            seed: of everything that is not privacy: initial weights, batch order.
            folder: where ledger and checkpoints go; None keeps the ledger in memory.
            resume: continue the job that ``folder`` holds.
            moved: of a resumed job, that the folder it began in is gone for good: a copy is not
                resumed beside it.
            survivors: share of the clients that is sure to answer, in (0, 1]; under distributed
                trust their noise shares are sized for it.
            owners_ledgers: owners' own accounts across jobs, by the owner's name.
            checkpoint_every: rounds between checkpoints.
            progress: True shows it on a terminal or in a notebook, False nowhere; or what is to be
                called, see :data:`fedsynth.queries.options.Progress`.
            owners_provenance: "private-data" where rows told which owners there are, as a cut by a
                column without declared names does: the certificate then says so.
            most_records: that an owner has, a public figure that all agree on: what bounds how far
                an owner that sends something else can move a sum over records.
            outside: the share of a column's cells that an owner may have outside the schema, in
                [0, 1], or "allow" for any. More is refused before anything is asked; what is not
                is clamped, becomes `other` or missing, or its row is left out.
            caution: called, before anything is asked, with how much that is (exact figures of
                private rows), and with what a budget or the bounds promise little by. By default
                warns, without these figures, since logs keep warnings.
            insecure_noise_seed: fixes the noise, for tests; voids the certificate.

        Raises:
            DataError, ConfigError: the data, schema, settings and options do not go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered, or with what no honest ones send together.
        """
        demand_none("fit", unknown, [own.name for own in fields(Options)] + ["plan"])
        options = Options(
            folder=None if folder is None else folder_of(folder),
            seed=seed,
            resume=resume,
            moved=moved,
            survivors=survivors,
            owners_ledgers=owners_ledgers or {},
            checkpoint_every=checkpoint_every,
            progress=progress,
            owners_provenance=owners_provenance,
            most_records=most_records,
            outside=outside,
            caution=caution,
            insecure_noise_seed=insecure_noise_seed,
        )
        allowed = budget_of(budget)
        settings = self.resolved(allowed)

        def agree(budget: Budget, clients: int) -> Plan:
            if plan is None:
                return self.plan(budget, clients, survivors)
            _demand_for(plan, budget, clients, self.schema.digest, digest_of(settings))
            return plan

        with begin(owners, self.schema, allowed, agree, options, settings, self.name) as session:
            if plan is not None and plan.releases != session.plan.releases:
                raise ConfigError("the job to resume was started with another plan")
            foreseen = resolution_cautions(self.schema), session.ledger.job.budget.cautions()
            for sentence in chain(*foreseen):
                caution(sentence)
            # A release pairs a model with an account: after a fit that fails there is none.
            self._ledger, self._traffic = session.ledger, session.channel.traffic
            self._dropped, self._learned = session.channel.dropped, None
            self._drawn = set()
            self._learned = self.learn(session)
        return self

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
        **unknown: Any,
    ) -> Any:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: a condition by column, which every row is to meet: a value, a list of values, or
                for numbers and dates a range, {"from": a, "to": b} or (a, b); of images, on the
                target. What a method cannot draw by is met by drawing again.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Returns:
            A table of the schema's columns, or :class:`Images`.

        Raises:
            ConfigError: nothing was fitted; rows below 1, conditions that make no sense or that
                hardly a row meets.
        """
        demand_none("sample", unknown, ("rows", "where", "proportions", "seed"))
        demand_draw(rows, where, proportions, seed)
        drawn = self.learned.draw(int(rows), where, proportions, seed)
        self._drawn.add(fingerprint(drawn))
        return drawn

    def drew(self, rows: pd.DataFrame | Images) -> bool:
        """Whether :meth:`sample` gave these rows, in this order, since the last fit."""
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
        rows: int | pd.DataFrame | Images = 10_000,
        report: Report | None = None,
        *,
        seed: int | None = None,
        edited: bool = False,
        **unknown: Any,
    ) -> Certificate:
        """Write a release of synthetic rows, the model and their certificate.

        Args:
            folder: new, empty, or the one that was fitted in.
            rows: how many to draw; or rows that :meth:`sample` gave since the last fit.
            report: an evaluation of rows that are given, on public ones.
            seed: makes the draw repeatable.
            edited: the rows that are given were changed after they were drawn: the certificate
                then says that nothing checks what is in them.

        Raises:
            ConfigError: nothing was fitted here; options that do not go together.
            ReleaseError, PrivacyError: see :func:`fedsynth.release.write_release`.
        """
        demand_none("release", unknown, ("folder", "rows", "report", "seed", "edited"))
        folder, _ = folder_of(folder), (self.learned, self.ledger)
        if isinstance(rows, pd.DataFrame | Images):
            if seed is not None:
                raise ConfigError("seed is of rows that release draws: give their number as rows")
            return write_release(folder, self, rows, report=report, edited=edited)
        if report is not None or edited:
            raise ConfigError(
                "a report, and edited, are of rows that exist: give those in place of their number"
            )
        return write_release(folder, self, self.sample(rows, seed=seed))

    def save(self, folder: str | Path) -> None:
        """Write the model alone, to :meth:`load` again: no release, for it has no certificate.

        Raises:
            ConfigError: nothing was fitted.
            ReleaseError: the folder holds something that this would overwrite.
        """
        folder = folder_of(folder)
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
        method, schema, arrays, plain = read_model(folder_of(folder))
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


def _demand_for(plan: Plan, budget: Budget, clients: int, schema: str, settings: str) -> None:
    """Raises ConfigError for the plan of another job."""
    for what, ours, theirs in (
        ("another budget", budget, plan.budget),
        (f"{plan.clients} clients, and there are {clients}", clients, plan.clients),
        ("another schema", schema, plan.schema),
        ("another method or other settings", settings, plan.settings),
    ):
        if ours != theirs:
            raise ConfigError(f"the plan is for {what}: make it anew with plan(budget, clients)")
