"""A job at its server: owners join from their own machines, and their rows stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fedsynth.errors import Caution, ConfigError, PrivacyError, warn_of
from fedsynth.federation.keys import load_keys
from fedsynth.federation.runtimes.stream import Streams
from fedsynth.jobs.clients import LISTEN
from fedsynth.jobs.config import Config, load_config
from fedsynth.jobs.run import Outcome, Progress, resume, start
from fedsynth.privacy.trail.certificate import CONFIG
from fedsynth.release import is_release

Tell = Callable[[str], None]


def serve(
    config: Config,
    base: Path,
    folder: Path,
    keys: Path | None,
    progress: Progress,
    caution: Caution = warn_of,
    tell: Tell = print,
) -> Outcome:
    """Run a job whose owners are on their own machines, in a new folder.

    Args:
        base: what the job's paths (schema, public rows) are relative to.
        keys: folder of the server's keys; None does without encryption, on this machine alone, and
            voids the certificate.
        tell: called with who joins and leaves, a sentence each.

    Raises:
        FedsynthError: as :func:`fedsynth.jobs.run.start`.
    """
    with _sites(config, keys, tell) as streams:
        return start(config, base, folder, progress, caution, streams)


def go_on(
    folder: Path,
    keys: Path | None,
    progress: Progress,
    caution: Caution = warn_of,
    tell: Tell = print,
    *,
    changes: Sequence[str] = (),
    moved: bool = False,
) -> Outcome:
    """Continue the job that a folder holds, as :func:`fedsynth.jobs.run.resume`."""
    if is_release(folder) or not (folder / CONFIG).exists():
        return resume(folder, progress, caution, changes=changes, moved=moved)
    config, _ = load_config(folder / CONFIG)
    with _sites(config, keys, tell) as streams:
        return resume(folder, progress, caution, changes=changes, moved=moved, federation=streams)


@contextmanager
def _sites(config: Config, keys: Path | None, tell: Tell) -> Iterator[Streams]:
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
    own = None if keys is None else load_keys(keys)
    with Streams(federation.owners, federation.listen or LISTEN, own, tell) as streams:
        yield streams
