"""Who takes part in a job, in its file: in this process, or on machines of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from fedsynth.agreed import plain
from fedsynth.errors import ConfigError
from fedsynth.jobs.sections import Count, Section, section

PATIENCE = 600.0
LISTEN = "0.0.0.0:8443"
APART = ("data", "sites", "holdout", "outside")
"""Sections and keys of rows, which no server of owners on their own machines has."""


def _spell_owners(value: object) -> object:
    """Names are texts, whatever YAML took them for."""
    return [str(plain(name)) for name in value] if isinstance(value, list | tuple) else value


def demand_placed(values: Mapping[str, object]) -> None:
    """Raises ConfigError for a job that does not say whose rows are whose, or that says it though
    they are over a network.

    Args:
        values: a job file's.
    """
    federation = values.get("federation")
    apart = isinstance(federation, Mapping) and federation.get("runtime") is not None
    if not apart and values.get("sites") is None:
        raise ConfigError("job: `sites` is needed: a section")
    named = next((key for key in APART if values.get(key) is not None), None)
    if apart and named is not None:
        raise ConfigError(
            f"job: leave `{named}` away, which is the owners' own in a job over a network: each "
            "says in its site file where its rows are, what it holds out, and how much may be "
            "outside the schema. Rows are neither pooled nor scored at the server"
        )


class Ledgers(Section):
    """Accounts that owners keep of their own, across jobs: one file an owner in `folder`.

    An owner refuses the rounds that would cost it more than `epsilon` at `delta`, all jobs that
    ever named the folder together, and rounds that it answered before. The first job that gives
    `epsilon` sets both; until one does, what is released is counted and nothing is refused. A
    privacy filter counts, so one job needs about a fifth more than its own epsilon.

    Without `folder` it is `accounts` beside each owner's own file (`sites: paths`), where accounts
    are kept even if a job says nothing of them.
    """

    place: ClassVar[str] = "federation: ledgers"

    folder: Annotated[str | None, Field(description="a path")] = None
    epsilon: Annotated[float | None, Field(gt=0, description="a number above 0")] = None
    delta: Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")] = 1e-5


class Federation(Section):
    """What is known of the clients.

    Attributes:
        runtime: `stream` for owners on their own machines, who join a server; else they are in this
            process.
        owners: of a stream, by the names that their certificates say.
        listen: host and port at which the server of a stream listens.
        carrier: messages or stream, where there is a choice (:mod:`fedsynth.flower`); auto, or
            None, takes messages for few questions.
        survivors: share of them that is sure to answer a round.
        secure: whether the whole protocol of secure sums runs between them.
        most_records: that one has, a figure that all agree on and anybody may know.
        deadline: seconds that one may take for an answer, or the round goes on without it; in a
            stream also to join, and 600 unless it is said.
    """

    place: ClassVar[str] = "federation"

    runtime: Annotated[Literal["stream"] | None, Field(description="stream, or left away")] = None
    owners: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None,
        BeforeValidator(_spell_owners),
        Field(description="a list of names"),
    ] = None
    listen: Annotated[str | None, Field(description="HOST:PORT")] = None
    carrier: Annotated[
        Literal["auto", "messages", "stream"] | None,
        Field(description="auto, messages or stream"),
    ] = None
    survivors: Annotated[float, Field(gt=0, le=1, description="a share in (0, 1]")] = 1.0
    secure: Annotated[bool, Field(strict=True, description="true or false")] = False
    most_records: Count = None
    deadline: Annotated[float | None, Field(gt=0, description="seconds above 0")] = None
    ledgers: Annotated[
        Ledgers | None, section(Ledgers, "ledgers"), Field(description="a section")
    ] = None

    @model_validator(mode="after")
    def _check_runtime(self) -> Federation:
        if self.runtime is None:
            apart = ("owners", "listen", "carrier")
            named = [name for name in apart if getattr(self, name) is not None]
            if named:
                raise ValueError(f"`{named[0]}` goes with `runtime: stream`")
            return self
        if not self.owners:
            raise ValueError("`runtime: stream` needs `owners`: a list of their names")
        if len(set(self.owners)) < len(self.owners):
            raise ValueError("`owners` names one twice")
        if self.ledgers is not None:
            raise ValueError(
                "`ledgers` are of owners in this process: over a network each keeps its own account"
            )
        return self

    @property
    def patience(self) -> float | None:
        """The deadline in force."""
        return PATIENCE if self.runtime is not None and self.deadline is None else self.deadline
