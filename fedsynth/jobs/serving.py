"""A job at its server: owners join from their own machines, and their rows stay there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from fedsynth.errors import Caution, ConfigError, PrivacyError, warn_of
from fedsynth.federation.keys import load_keys
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.courier import Mail
from fedsynth.federation.runtimes.messages import Messages, Starter
from fedsynth.federation.runtimes.stream import Streams
from fedsynth.jobs.carriers import MESSAGES, STREAM, choose_carrier
from fedsynth.jobs.clients import LISTEN
from fedsynth.jobs.config import Config, load_config
from fedsynth.jobs.run import Outcome, Progress, resume, start
from fedsynth.privacy.trail.certificate import CONFIG
from fedsynth.release import is_release

Tell = Callable[[str], None]
Carry = Callable[[Config, Path], AbstractContextManager[tuple[Config, Federation]]]
"""From a job, and what its paths are relative to, to the job with its carrier said, and the way to
its owners."""


def serve(
    config: Config,
    base: Path,
    folder: Path,
    carry: Carry,
    progress: Progress,
    caution: Caution = warn_of,
) -> Outcome:
    """Run a job whose owners are on their own machines, in a new folder.

    Args:
        base: what the job's paths (schema, public rows) are relative to.
        carry: :func:`by_streams` or :func:`by_messages`.

    Raises:
        FedsynthError: as :func:`fedsynth.jobs.run.start`.
    """
    demand_apart(config)
    with carry(config, base) as (carried, federation):
        return start(carried, base, folder, progress, caution, federation)


def go_on(
    folder: Path,
    carry: Carry,
    progress: Progress,
    caution: Caution = warn_of,
    *,
    changes: Sequence[str] = (),
    moved: bool = False,
) -> Outcome:
    """Continue the job that a folder holds, as :func:`fedsynth.jobs.run.resume`."""
    if is_release(folder) or not (folder / CONFIG).exists():
        return resume(folder, progress, caution, changes=changes, moved=moved)
    config, base = load_config(folder / CONFIG)
    demand_apart(config)
    with carry(config, base) as (_, federation):
        return resume(
            folder, progress, caution, changes=changes, moved=moved, federation=federation
        )


def by_streams(keys: Path | None, tell: Tell = print) -> Carry:
    """Streams, which sites open.

    Args:
        keys: folder of the server's keys; None does without encryption, on this machine alone, and
            voids the certificate.
        tell: called with who joins and leaves, a sentence each.
    """

    @contextmanager
    def carry(config: Config, base: Path) -> Iterator[tuple[Config, Federation]]:
        own = None if keys is None else load_keys(keys)
        federation = config.federation
        if federation.carrier == MESSAGES:
            raise ConfigError(
                "federation: carrier: messages are Flower's, which is to run the job, or go on "
                "with it (fedsynth.flower); `fedsynth serve` runs new jobs that do not say so"
            )
        owners = federation.owners or ()
        with Streams(owners, federation.listen or LISTEN, own, tell) as streams:
            yield config.carried_by(STREAM), streams
            tell(streams.hub.words)

    return carry


def by_messages(
    mail: Mail,
    *,
    keys: Path | None = None,
    insecure: bool = False,
    pinned: Mapping[str, int] | None = None,
    tell: Tell = print,
) -> Carry:
    """Messages of an engine that has nodes where sites are: of a job with many questions one each,
    which has its site dial.

    Args:
        mail: the engine's.
        keys: folder of the server's keys, for streams.
        insecure: whether it does not encrypt, or lets in whoever comes: voids the certificate.
        pinned: nodes of owners, by their names.
    """

    @contextmanager
    def carry(config: Config, base: Path) -> Iterator[tuple[Config, Federation]]:
        carrier, why = choose_carrier(config, base)
        federation, owners = config.federation, config.federation.owners or ()
        if carrier == STREAM and keys is None and not insecure:
            raise ConfigError(
                f"federation: carrier: this job goes by stream ({why}): give the folder of the "
                "server's keys for it (`keys`), or say `carrier: messages` and have it take long"
            )
        tell(f"carrier: {carrier} ({why})")
        if carrier == STREAM:
            own, token = None if keys is None else load_keys(keys), secrets.token_hex(16)
            starter = Starter(owners, mail, token, pinned)
            streams = Streams(owners, federation.listen or LISTEN, own, tell, token)
            # Sites say that they are done once their streams are closed.
            with starter, streams:
                yield config.carried_by(STREAM), streams
                tell(streams.hub.words)
            return
        with Messages(owners, mail, plain=insecure, pinned=pinned) as messages:
            yield config.carried_by(MESSAGES), messages
        tell(f"messages: {messages.courier.words}")

    return carry


def demand_apart(config: Config) -> None:
    """Raises ConfigError for a job whose owners are in this process, and PrivacyError for one whose
    sums sites refuse."""
    federation, budget = config.federation, config.privacy.budget
    if federation.runtime is None or federation.owners is None:
        raise ConfigError(
            "this job's owners are in this process: `fedsynth run` runs it. To serve it to owners "
            "on their own machines write `federation: {runtime: stream, owners: [..]}` into it"
        )
    if budget.trusts.shares and not federation.secure:
        raise PrivacyError(
            f"privacy: trust {budget.trust} needs sums that nobody can open, and sites refuse it "
            "without: write `federation: {secure: true}`. Or say `trust: central`, if the owners "
            "trust this server with what they send, or `trust: local`, where each protects its own "
            "message. Nobody was asked"
        )
