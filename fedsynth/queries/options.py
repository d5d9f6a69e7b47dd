"""How a fit runs, whatever the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedsynth.agreed import demand_whole, shown
from fedsynth.demands import demand_flag, demand_kind, demand_known, demand_mapping, demand_number
from fedsynth.errors import Caution, ConfigError, warn_of
from fedsynth.plain import hash_plain
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.progress import demand_report

OUTSIDE = 0.05
"""The share of a column's cells that may be outside the schema, where nobody says otherwise."""

Progress = Callable[[str, int, int, float], None]
"""Called with the step's name, rounds done, rounds in all, and the epsilon spent so far; NaN where
it was not computed for this report."""


_WHOLE = {"seed": 0, "checkpoint_every": 1, "most_records": 1, "insecure_noise_seed": 0}
"""Options that are whole numbers, and the least of each."""
_KEPT = ("seed", "most_records", "outside")
"""Options that a job is resumed with as it was begun, where nothing else was agreed on."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a fit runs; what it costs hangs on ``survivors`` and nothing else here.

    Attributes:
        seed: of everything that is not privacy: initial weights, batch order.
        folder: where ledger and checkpoints go; None keeps the ledger in memory.
        resume: continue the job that ``folder`` holds.
        moved: of a resumed job, that the folder it began in is gone for good, and this one is all
            that is left of it (:mod:`fedsynth.queries.origin`).
        survivors: share of the clients that is sure to answer; under distributed trust their noise
            shares are sized for it, so that losing the others loses no noise. In (0, 1].
        secure: under distributed trust have sums added up by the whole protocol of secure sums
            (docs/secure-sums.md), for which as many must answer as are sure to; else that is
            assumed.
        owners_ledgers: owners' own accounts across jobs, by the owner's name
            (:meth:`fedsynth.privacy.trail.ledger.Ledger.of_owner`): an owner refuses the rounds
            that would exceed its own.
        checkpoint_every: rounds between checkpoints. What rounds since the last one released is
            kept as it comes, so a crash loses none of it; a resumed job computes their steps anew.
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
        agreed: what else a resumed job keeps to, plain: of a job file how its rows are held out and
            dealt out (:func:`fedsynth.privacy.trail.agreement.agreement_of`).
        deadline: seconds that each client may take for an answer; one that takes longer is dropped
            from the round. None for any number.
        caution: called, before anything is asked, with what a budget promises little by, and with
            what simulated owners are to know of their tables: exact figures of private rows, and
            what earlier jobs on them add up to.
        insecure_noise_seed: fixes the noise, for tests; voids the certificate.
    """

    seed: int = 0
    folder: Path | None = None
    resume: bool = False
    moved: bool = False
    survivors: float = 1.0
    secure: bool = False
    owners_ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    checkpoint_every: int = 25
    progress: Progress | bool = True
    owners_provenance: str = "declared"
    most_records: int | None = None
    outside: float | str = OUTSIDE
    agreed: Mapping[str, Any] | None = None
    deadline: float | None = None
    caution: Caution = warn_of
    insecure_noise_seed: int | None = None

    @property
    def most_outside(self) -> float:
        """`outside` as a share."""
        return 1.0 if isinstance(self.outside, str) else float(self.outside)

    @property
    def agreed_digest(self) -> str:
        """Hash of what a resumed job keeps to."""
        own = {name: getattr(self, name) for name in _KEPT}
        return hash_plain(own if self.agreed is None else self.agreed)

    def __post_init__(self) -> None:
        demand_number("survivors", self.survivors, "in (0, 1]", lambda share: 0 < share <= 1)
        for name, least in _WHOLE.items():
            given = getattr(self, name)
            if given is not None or name in ("seed", "checkpoint_every"):
                object.__setattr__(self, name, demand_whole(name, given, least))
        if self.deadline is not None:
            demand_number("deadline", self.deadline, "seconds above 0", lambda given: given > 0)
        demand_known("owners_provenance", self.owners_provenance, ("declared", "private-data"))
        if not isinstance(self.outside, str) or self.outside != "allow":
            what = "a share in [0, 1], or allow"
            demand_number("outside", self.outside, what, lambda share: 0 <= share <= 1)
        demand_mapping("owners_ledgers", self.owners_ledgers, "{'north': Ledger.of_owner(..)}")
        for name, ledger in self.owners_ledgers.items():
            demand_kind(f"the ledger of {name!r}", ledger, Ledger, "a Ledger, as Ledger.of_owner")
        demand_report(self.progress)
        if not callable(self.caution):
            raise ConfigError(f"caution must be a function, not {shown(self.caution)}")
        for name in ("resume", "moved", "secure"):
            demand_flag(name, getattr(self, name))
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise ConfigError(f"folder: {self.folder} is a file; name a folder")
        if self.resume and self.folder is None:
            raise ConfigError("resume needs the folder of the interrupted job")
        if self.moved and not self.resume:
            raise ConfigError("moved is said of a job that is resumed")
