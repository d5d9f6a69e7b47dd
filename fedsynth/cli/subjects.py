"""What `fedsynth plan` plans: a method, by a job file or by options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fedsynth.cli.trainings import Wanted
from fedsynth.errors import ConfigError
from fedsynth.plain import print_note

if TYPE_CHECKING:
    from fedsynth.methods.fitting import Method
    from fedsynth.privacy.budget import Budget
    from fedsynth.queries.plan import Plan
    from fedsynth.release import Settings
    from fedsynth.schema import ImageSchema, Schema

# Values of a column that no schema describes, as many as the bins of a number.
_VALUES = 24


@dataclass(frozen=True)
class Subject:
    """What is planned: a method, and what a job file says beside it.

    Attributes:
        apart: whether its owners are on their own machines.
        carrier: that the job asks for there.
    """

    synth: Method[Any]
    reason: str | None
    budget: Budget
    clients: int
    survivors: float
    secure: bool
    apart: bool = False
    carrier: str | None = None

    @classmethod
    def of(
        cls,
        config: str | None,
        changes: list[str],
        schema_file: Path | None,
        columns: int | None,
        method: str | None,
        trained: Mapping[str, Any],
        wanted: Wanted,
    ) -> Subject:
        schema: Schema | ImageSchema
        settings: Settings | None = None
        clients, survivors, given = wanted.clients, 1.0, dict[str, Any]()
        secure = apart = False
        public = carrier = None
        if config is not None:
            from fedsynth.jobs.config import AUTO, load_config
            from fedsynth.jobs.data import count_clients, read_public, read_schema

            job, base = load_config(config, changes)
            schema = read_schema(job, base)
            given, survivors = job.privacy.model_dump(), job.federation.survivors
            secure, carrier = job.federation.secure, job.federation.carrier
            apart = job.federation.runtime is not None
            clients = count_clients(job, schema) if clients is None else clients
            if method is None and job.method != AUTO:
                method = job.method
                settings = job.settings
                public = read_public(job, schema, base, warn)
        else:
            schema = _schema_of(schema_file, columns)
        if clients is None:
            raise ConfigError("give --clients: how many take part is public, and sizes the noise")
        from fedsynth.registry import choose, make

        budget = wanted.budget(given, noise="noise_multiplier" in trained)
        reason = None
        if method is None:
            choice = choose(schema, budget)
            method, reason = choice.method, choice.reason
        synth = make(method, schema, settings, public)
        for name in trained:
            if name not in synth.settings_type.model_fields:
                option = {"noise_multiplier": "noise"}.get(name, name)
                raise ConfigError(
                    f"--{option} is of a training, and {method} has none: its noise follows from "
                    "--epsilon"
                )
        if trained:
            more = {} if public is None else {"public": public}
            # A protocol that all methods' settings meet, which are models.
            synth = type(synth)(schema, cast("Any", settings), **trained, **more)
        given_survivors = survivors if wanted.survivors is None else wanted.survivors
        given_secure = secure if wanted.secure is None else wanted.secure
        sure = given_survivors, given_secure
        return cls(synth, reason, budget, clients, *sure, apart, carrier)

    def plan(self, budget: Budget) -> Plan:
        return self.synth.plan(budget, self.clients, self.survivors, self.secure)

    def carried(self, plan: Plan) -> tuple[str, str] | None:
        """What carries it on Flower, and why; None where owners are in one process."""
        if not self.apart:
            return None
        from fedsynth.jobs.carriers import carrier_of

        return carrier_of(self.carrier, self.synth.settings_type.method, plan)


def warn(sentence: str) -> None:
    print_note(f"Caution: {sentence}")


def _schema_of(file: Path | None, columns: int | None) -> Schema | ImageSchema:
    from fedsynth.schema import Categorical, Schema, load_schema

    if file is not None:
        return load_schema(file)
    assert columns is not None
    if columns < 1:
        raise ConfigError(f"--columns must be at least 1, not {columns}")
    values = tuple(range(_VALUES))
    names = (f"column {k + 1}" for k in range(columns))
    return Schema(columns=tuple(Categorical(name=name, values=values) for name in names))
