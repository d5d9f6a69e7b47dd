"""What a fit left behind, whatever the method: what was learned, its account, its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from numpy.typing import NDArray
from pydantic import BaseModel

from fedsynth.codec import Arrays, pack, unpack
from fedsynth.demands import demand_path
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError, FedsynthError, ReleaseError
from fedsynth.federation.server.incidents import Dropped, names_clients, tell
from fedsynth.federation.server.traffic import Traffic
from fedsynth.files import writing
from fedsynth.methods.configured import Configured
from fedsynth.methods.persons import person_remarks
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.persons import RowsAPerson
from fedsynth.queries.tasks.persons import KEY
from fedsynth.release import is_release, read_certified, read_model, write_model
from fedsynth.schema import ImageSchema, Schema


class Learned(Protocol):
    """What a fit leaves behind: a frozen dataclass of released values and what follows from them.

    It is saved by its fields (:mod:`fedsynth.codec`).
    """

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
    noun: ClassVar[str]
    """What errors call it."""
    use: ClassVar[str]
    """What a fitted one is there to do, as errors say it."""
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
        self._rows_a_person: RowsAPerson | None = None
        self._ledger: Ledger | None = None
        self._traffic: Traffic | None = None
        self._dropped: Dropped | None = None

    def set_params(self, **params: Any) -> Self:
        if self._learned is not None or self._ledger is not None:
            raise ConfigError(f"what was fitted keeps its settings: make another {self.noun}")
        return super().set_params(**params)

    def known(self) -> dict[str, Any]:
        """What the schema and the settings say of something learned: its `given` fields."""
        return {"schema": self.schema}

    @property
    def learned(self) -> L:
        """What the last fit learned. Raises ConfigError before one."""
        if self._learned is None:
            raise ConfigError(f"nothing to {self.use} yet: call fit first, or load a release")
        return self._learned

    @property
    def rows_a_person(self) -> RowsAPerson | None:
        """Of a fit that protects persons, the released histogram of rows a person; None where it
        was not asked. Raises ConfigError before a fit."""
        _ = self.learned
        return self._rows_a_person

    @property
    def ledger(self) -> Ledger:
        """The account of the last fit. Raises ConfigError before one."""
        if self._ledger is None:
            raise ConfigError(f"this {self.noun} was not fitted here, so it has no ledger")
        return self._ledger

    @property
    def traffic(self) -> Traffic:
        """Calls and bytes of the last fit. Raises ConfigError before one."""
        if self._traffic is None:
            raise ConfigError(f"this {self.noun} was not fitted here, so nothing was sent")
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
        # Of persons whose rows weigh alike what is counted is rows: how many persons, nobody knows.
        if count is not None and budget.protects.per_record and budget.weigh != "row":
            learned += budget.cautions_by_estimate(count)
        learned += person_remarks(self._rows_a_person, budget)
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

    def save(self, folder: str | Path) -> None:
        """Write the model alone, to :meth:`load` again: no release, for it has no certificate.

        Raises:
            ConfigError: nothing was fitted.
            ReleaseError: the folder holds something that this would overwrite.
            MachineError: it cannot be written.
        """
        folder = demand_path("folder", folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ReleaseError(f"{folder} exists already: choose another folder")
        _ = self.learned
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_model(folder, self)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """A model that :meth:`save` wrote, or a release's, as its certificate has it;
        :func:`fedsynth.load` reads a release whatever its method.

        Raises:
            ReleaseError: the folder holds no model of this method, or a damaged one.
        """
        folder, certificate = demand_path("folder", folder), None
        if is_release(folder):
            certificate, method, schema, arrays, plain = read_certified(folder)
        else:
            method, schema, arrays, plain = read_model(folder)
        if method != cls.name:
            raise ReleaseError(f"{folder} holds a model of {method}, not of {cls.name}")
        model = cls.from_state(schema, arrays, plain)
        model.certificate = certificate
        return model

    @contextmanager
    def using(self) -> Iterator[None]:
        """Around what makes use of what was learned: if it was read from files, what fails is them.

        Raises:
            ReleaseError: in place of what no check of the files foresaw.
        """
        try:
            yield
        except (FedsynthError, MemoryError):
            raise
        except Exception as error:
            if self._ledger is not None:
                raise
            raise ReleaseError(
                "this model cannot be used: its files are not as fedsynth wrote them, or of "
                f"another version ({type(error).__name__})"
            ) from None  # It may quote a cell of rows that were to be filled or classified.

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything that was learned: arrays, and JSON-able values. Nothing private."""
        arrays, plain = pack(self.learned)
        if self._rows_a_person is not None:
            plain[KEY] = self._rows_a_person.to_dict()
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
            model = cls(schema, meta["settings"])
            learned = unpack(cls.learned_type, arrays, meta, model.known())
            learned.check()
            encoding = getattr(learned, "encoding", None)
            told = meta.get(KEY)
            model._rows_a_person = None if told is None else RowsAPerson.from_dict(told)
            if isinstance(encoding, TableEncoding) and encoding.schema.digest != schema.digest:
                raise ReleaseError("the model was learned under another schema than its file's")
        except ReleaseError:
            raise
        except Exception:
            # Whatever it is that somebody wrote there.
            raise ReleaseError("the model's files do not fit together") from None
        model._learned = learned
        return model
