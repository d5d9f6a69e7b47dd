"""A fit under way, whatever the method: plan, ledger, channel, checkpoints, progress.

A checkpoint holds only what was released and what was computed from that, so it is as public as the
release; private vectors of simulated clients lie beside it and are deleted when the job is done.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from fedsynth.codec import Arrays, pack, unpack
from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import ConfigError, MachineError, PrivacyError, ReleaseError
from fedsynth.federation.runtime import Federation
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.counts import Total
from fedsynth.federation.server.incidents import names_clients
from fedsynth.federation.simulation.simulation import Owners, Simulation
from fedsynth.files import refused, writing
from fedsynth.holding import CHECKPOINT, hold
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.certificate import LEDGER
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.progress import showing
from fedsynth.queries.options import Options, Progress
from fedsynth.queries.origin import demand_original, remember
from fedsynth.queries.plan import Plan, count_survivors, digest_of
from fedsynth.queries.secure import demand_everybody, rules_for
from fedsynth.queries.tasks.persons import KEY
from fedsynth.schema import ImageSchema, Schema

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules
    from fedsynth.queries.persons import RowsAPerson

_SHOW_EPSILON_EVERY = 5.0
# Private vectors as earlier versions kept them.
_EARLIER = "private.bin"

Restored = tuple[dict[str, NDArray[Any]], dict[str, Any]]
T = TypeVar("T")


@dataclass
class Session:
    """A fit under way. It reaches clients through its channel alone.

    Attributes:
        plan: what it may ask.
        settings: of the method, resolved.
        restored: the last checkpoint of a resumed job, if there is one.
        rows_a_person: the released histogram of rows a person, of a job that asks it.
    """

    channel: Channel
    options: Options
    plan: Plan
    settings: Any
    restored: Restored | None = None
    rows_a_person: RowsAPerson | None = None
    _computed: float = -math.inf
    _showing: ExitStack = field(default_factory=ExitStack)
    _held: ExitStack = field(default_factory=ExitStack)
    _report: Progress | None = None

    @property
    def ledger(self) -> Ledger:
        return self.channel.ledger

    def progress(self, label: str, done: int, total: int) -> None:
        """Report, with the epsilon spent every few seconds and at the end: an old one would be too
        low, and computing it takes long."""
        now, epsilon = time.monotonic(), math.nan
        if done == total or now - self._computed > _SHOW_EPSILON_EVERY:
            self._computed, epsilon = now, self.ledger.spent().epsilon
        if self._report is None:
            self._report = self._showing.enter_context(showing(self.options.progress))
        self._report(label, done, total, epsilon)

    def checkpoint(self, arrays: Arrays, meta: Mapping[str, Any]) -> None:
        """Save the state of the fit, all of it or nothing."""
        if self.options.folder is None:
            return
        folder = self.options.folder / CHECKPOINT
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        body = save_tensors(
            plain,
            {"meta": json.dumps({**meta, **self._told(), "sites": self.channel.names})},
        )
        path = folder / "state.safetensors"
        try:
            make_folder(folder)
            write_whole(path, body)
        except OSError as error:
            raise MachineError(
                f"{refused(path, error)}. Nothing is lost: what was released since the last "
                "checkpoint is kept. Resume the job then"
            ) from None
        self.channel.settle()

    def save(self, state: Any) -> None:
        """Checkpoint a dataclass: :meth:`restore` gives it back when the job is resumed."""
        self.checkpoint(*pack(state))

    def restore(self, kind: type[T], **known: Any) -> T | None:
        """The dataclass that the interrupted job saved last; None where it saved nothing.

        Args:
            known: its :data:`fedsynth.codec.GIVEN` fields.
        """
        if self.restored is None:
            return None
        return unpack(kind, *self.restored, known)

    def _told(self) -> dict[str, Any]:
        """What the job and its channel know and may tell: how many rows persons have; how many
        rounds were asked; how often each client was drawn, where that is limited, for then the
        server knows anyway; who was dropped, where a release tells that too; and what sums of
        counts said of how many units there are."""
        job, told = self.ledger.job, dict[str, Any](events=self.channel.asked)
        if self.rows_a_person is not None:
            told[KEY] = self.rows_a_person.to_dict()
        if job.participations is not None:
            told["participations"] = self.channel.participations
        if names_clients(job.budget):
            told["dropped"] = self.channel.dropped.entries()
        if self.channel.counted is not None:
            told["counted"] = asdict(self.channel.counted)
        return told

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the ledger and, unless the fit failed, delete all private vectors.

        The last checkpoint stays until the release is written: a crash in between loses nothing,
        and a fit that failed can be resumed, in the same process too.
        """
        self._showing.__exit__(kind, error, trace)
        self.ledger.close()
        self.channel.close(finished=kind is None)
        self._held.close()


def begin(
    owners: Owners | Federation,
    schema: Schema | ImageSchema,
    budget: Budget,
    plan: Callable[[Budget, int], Plan],
    options: Options,
    settings: BaseModel,
    method: str,
) -> Session:
    """Prepare the clients, calibrate the plan and open the ledger; nothing is asked yet.

    Args:
        owners: data to simulate clients with, or a federation of clients.
        plan: from the budget and the number of clients.
        settings: of the method, all defaults filled in; a job is resumed with the same ones.
        method: whose they are.

    Raises:
        DataError, ConfigError, PrivacyError, MachineError: before anything was asked.
    """
    with ExitStack() as held, writing(options.folder or ""):
        if options.folder is not None:
            held.enter_context(hold(options.folder))
        session = _begin(owners, schema, budget, plan, options, settings, method)
        session._held = held.pop_all()  # noqa: SLF001
    return session


def _begin(
    owners: Owners | Federation,
    schema: Schema | ImageSchema,
    budget: Budget,
    plan: Callable[[Budget, int], Plan],
    options: Options,
    settings: BaseModel,
    method: str,
) -> Session:
    """As :func:`begin`, whose folder is held."""
    federation = owners if isinstance(owners, Federation) else Simulation(owners, schema)
    most = options.most_records
    if most is not None and not budget.protects.per_record:
        raise ConfigError(
            "most_records is for jobs that protect records: where clients are protected, each "
            "counts once, however many it has. Leave it out"
        )
    noise = NoiseSource(options.insecure_noise_seed)
    private = None if options.folder is None else options.folder / CHECKPOINT
    agreed = most, options.most_outside, options.caution, options.deadline
    if options.secure and not federation.secures:
        # The certificate would say that all of the protocol ran.
        raise ConfigError("secure: this federation carries no secure sums; leave it out")
    secure = _secure_rules(budget, options.survivors) if options.secure else None
    runtime = federation.open(noise, options.owners_ledgers, private, budget, *agreed, secure)
    clients = runtime.clients
    budget = budget.for_clients(len(clients))
    insecure = noise.insecure or runtime.insecure
    path = None if options.folder is None else options.folder / LEDGER
    if options.resume and path is not None:
        ledger = Ledger.open(path)
    else:
        job_plan = plan(budget, len(clients))
        if options.secure:
            demand_everybody(job_plan.releases)
        job = Job(
            budget=budget,
            plan=job_plan.releases,
            participations=job_plan.participations,
            schema_digest=schema.digest,
            schema_provenance=schema.provenance,
            owners_provenance=options.owners_provenance,
            settings_digest=digest_of(settings),
            agreed_digest=options.agreed_digest,
            insecure=insecure,
            method=method,
            clients=len(clients),
            secure=federation.secures if options.secure else "",
        )
        ledger = Ledger.create(job, path)
    with ExitStack() as failing:
        failing.callback(ledger.close)
        # A ledger that was begun here says the same as it was told.
        asked = (method, digest_of(settings), insecure)
        _demand_same(ledger.job, budget, schema, options, asked)
        if options.resume and options.folder is not None and not options.moved:
            demand_original(options.folder, ledger)
        federation.demand_same_rows(begun=bool(ledger.events))
        restored = _read_checkpoint(options, clients)
        if _has_all(restored, ledger):
            federation.spare()
        if options.folder is not None:
            remember(options.folder)
        channel = Channel(
            runtime,
            ledger,
            noise,
            participations=_participations(restored, ledger),
            most_records=most,
            kept=None if private is None else private / f"{ledger.job.job}.released",
            done=_done(restored),
        )
        failing.callback(channel.close, finished=False)
        if restored is None and channel.asked == len(ledger.events):
            _demand_something_left(ledger)
        if restored is not None:
            channel.dropped.recall(restored[1].get("dropped", ()))
            counted = restored[1].get("counted")
            channel.counted = None if counted is None else Total(**counted)
        channel.announce("schema", schema.to_dict())
        for sentence in federation.recall(ledger):
            options.caution(sentence)
        failing.pop_all()
    return Session(channel, options, Plan.of(ledger.job, len(clients)), settings, restored)


def _secure_rules(budget: Budget, survivors: float) -> Callable[[int], Rules]:
    return lambda clients: rules_for(budget, clients, count_survivors(survivors, clients))


def _demand_something_left(ledger: Ledger) -> None:
    """Raises PrivacyError where all that a job planned was asked and the answers were lost."""
    charged = sum(event.steps for event in ledger.events)
    if charged and charged >= sum(planned.count for planned in ledger.job.plan):
        raise PrivacyError(
            "everything that this job planned was asked, and the answers were lost before they "
            "were saved: its epsilon is spent, so there is nothing to resume. Start a new job in "
            "another folder; what both cost adds up"
        )


def _read_checkpoint(options: Options, clients: Sequence[str]) -> Restored | None:
    if not options.resume or options.folder is None:
        return None
    path = options.folder / CHECKPOINT / "state.safetensors"
    if not path.exists():
        # Private vectors without the checkpoint that says whose they are belong to nobody.
        for vectors in path.parent.glob("*.private"):
            vectors.unlink()
        return None
    if path.with_name(_EARLIER).exists():
        raise ReleaseError(
            f"{options.folder}: an earlier version of fedsynth began this job, and its clients' "
            "private vectors cannot be read by this one: finish it with that version, or start a "
            "new job in another folder"
        )
    body = path.read_bytes()
    try:
        length = int.from_bytes(body[:8], "little")
        meta = json.loads(json.loads(body[8 : 8 + length])["__metadata__"]["meta"])
        restored, owners = (load_tensors(body), meta), meta["sites"]
    except (SafetensorError, KeyError, ValueError, TypeError):
        raise ReleaseError(f"{path} is damaged: delete it to start the training anew") from None
    if tuple(owners) != tuple(clients):
        raise ConfigError(
            f"{options.folder}: the job to resume was started with other owners, or in another "
            "order: give the same ones as before, or private vectors would change hands"
        )
    return restored


def _done(restored: Restored | None) -> int | None:
    """How many rounds a checkpoint holds; None where it does not say, as earlier versions did."""
    if restored is None:
        return 0
    done = restored[1].get("events")
    return done if type(done) is int else None


def _has_all(restored: Restored | None, ledger: Ledger) -> bool:
    """Whether a checkpoint holds all that the job ever asks."""
    asked = sum(event.steps for event in ledger.events[: _done(restored)])
    planned = sum(planned.count for planned in ledger.job.plan)
    return restored is not None and _done(restored) is not None and asked >= planned > 0


def _participations(restored: Restored | None, ledger: Ledger) -> dict[str, int] | None:
    """Rounds in which each client was drawn; in those since the checkpoint, perhaps every one."""
    if restored is None or "participations" not in restored[1]:
        return None
    lost = len(ledger.events) - int(restored[1]["events"])
    return {name: count + lost for name, count in restored[1]["participations"].items()}


def _demand_same(
    job: Job,
    budget: Budget,
    schema: Schema | ImageSchema,
    options: Options,
    asked: tuple[str, str, bool],
) -> None:
    """A resumed job keeps the promise that its first ledger line made.

    Args:
        asked: the method, the hash of its settings, and whether somebody knows the noise.
    """
    if job.format == 1 or not job.agreed_digest:
        raise ConfigError(
            f"{options.folder}: an earlier version of fedsynth began this job: finish it with that "
            "version, or start a new job in another folder"
        )
    for what, ours, theirs in (
        ("another budget", budget, job.budget),
        ("another schema", schema.digest, job.schema_digest),
        ("another insecure_noise_seed, or another encryption", asked[2], job.insecure),
        ("another method or other settings", asked[:2], (job.method, job.settings_digest)),
        (
            "another seed, holdout, cut among owners or limit (most_records, outside, survivors)",
            options.agreed_digest,
            job.agreed_digest,
        ),
        ("another choice of secure sums", options.secure, bool(job.secure)),
        ("another owners_provenance", options.owners_provenance, job.owners_provenance),
    ):
        if ours != theirs:
            raise ConfigError(
                f"{options.folder}: the job to resume was started with {what}; start a new job in "
                "another folder instead"
            )
