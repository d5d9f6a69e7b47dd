"""How a fit runs, whatever the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path

from fedsynth.agreed import demand_whole
from fedsynth.errors import Caution, ConfigError, warn_of
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.progress import demand_report

OUTSIDE = 0.05
"""The share of a column's cells that may be outside the schema, where nobody says otherwise."""

Progress = Callable[[str, int, int, float], None]
"""Called with the step's name, rounds done, rounds in all, and the epsilon spent so far."""


def show_nothing(label: str, done: int, total: int, epsilon: float) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a fit runs; nothing here changes what it costs, except ``survivors``.

    Attributes:
        seed: of everything that is not privacy: initial weights, batch order.
        folder: where ledger and checkpoints go; None keeps the ledger in memory.
        resume: continue the job that ``folder`` holds.
        moved: of a resumed job, that the folder it began in is gone for good, and this one is all
            that is left of it (:mod:`fedsynth.queries.origin`).
        survivors: share of the clients that is sure to answer; under distributed trust their noise
            shares are sized for it, so that losing the others loses no noise. In (0, 1].
        owners_ledgers: owners' own accounts across jobs, by the owner's name
            (:meth:`fedsynth.privacy.trail.ledger.Ledger.of_owner`): an owner refuses the rounds
            that would exceed its own.
        checkpoint_every: rounds between checkpoints; a crash loses the rounds since the last one,
            charged as they are.
        progress: see :data:`Progress`; True for a line on a terminal or in a notebook, False for
            none (:func:`fedsynth.progress.showing`).
        owners_provenance: "declared", or "private-data" where private rows tell which owners there
            are: the certificate then says so.
        most_records: that an owner has, a public figure that all agree on. One that has more is
            refused before anything is asked, and a sum that more records would take fails the job.
        outside: the share of a column's cells that an owner's table may have outside the schema, in
            [0, 1], a public figure; "allow" for any. An owner with more is refused before anything
            is asked. Below it, such cells are replaced by rule (:func:`fedsynth.data.conforming
            .conform`).
        caution: called, before anything is asked, with what a budget promises little by, and with
            what simulated owners are to know of their tables: exact figures of private rows.
        insecure_noise_seed: fixes the noise, for tests; voids the certificate.
    """

    seed: int = 0
    folder: Path | None = None
    resume: bool = False
    moved: bool = False
    survivors: float = 1.0
    owners_ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    checkpoint_every: int = 25
    progress: Progress | bool = True
    owners_provenance: str = "declared"
    most_records: int | None = None
    outside: float | str = OUTSIDE
    caution: Caution = warn_of
    insecure_noise_seed: int | None = None

    @property
    def most_outside(self) -> float:
        """`outside` as a share."""
        return 1.0 if isinstance(self.outside, str) else float(self.outside)

    def __post_init__(self) -> None:
        given = isinstance(self.survivors, Real) and not isinstance(self.survivors, bool)
        if not (given and 0 < self.survivors <= 1):
            raise ConfigError(f"survivors must be in (0, 1], not {self.survivors!r}")
        demand_whole("checkpoint_every", self.checkpoint_every, 1)
        demand_whole("seed", self.seed, 0)
        demand_report(self.progress)
        if self.owners_provenance not in ("declared", "private-data"):
            raise ConfigError(
                f"owners_provenance is declared or private-data, not {self.owners_provenance!r}"
            )
        if self.most_records is not None:
            demand_whole("most_records", self.most_records, 1)
        number = isinstance(self.outside, Real) and not isinstance(self.outside, bool)
        if self.outside != "allow" and not (number and 0 <= self.most_outside <= 1):
            raise ConfigError(f"outside is a share in [0, 1], or allow, not {self.outside!r}")
        if self.insecure_noise_seed is not None:
            demand_whole("insecure_noise_seed", self.insecure_noise_seed, 0)
        if self.resume and self.folder is None:
            raise ConfigError("resume needs the folder of the interrupted job")
        if self.moved and not self.resume:
            raise ConfigError("moved is said of a job that is resumed")
