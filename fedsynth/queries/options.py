"""How a fit runs, whatever the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.privacy.trail.ledger import Ledger

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
        survivors: share of the clients that is sure to answer; under distributed trust their noise
            shares are sized for it, so that losing the others loses no noise. In (0, 1].
        owners_ledgers: owners' own accounts across jobs, by the owner's name
            (:meth:`fedsynth.privacy.trail.ledger.Ledger.of_owner`): an owner refuses the rounds
            that would exceed its own.
        checkpoint_every: rounds between checkpoints; a crash loses the rounds since the last one,
            charged as they are.
        progress: see :data:`Progress`.
        insecure_noise_seed: fixes the noise, for tests; voids the certificate.
    """

    seed: int = 0
    folder: Path | None = None
    resume: bool = False
    survivors: float = 1.0
    owners_ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    checkpoint_every: int = 25
    progress: Progress = show_nothing
    insecure_noise_seed: int | None = None

    def __post_init__(self) -> None:
        if not (_number(self.survivors) and 0 < self.survivors <= 1):
            raise ConfigError(f"survivors must be in (0, 1], not {self.survivors!r}")
        if not (_whole(self.checkpoint_every) and self.checkpoint_every >= 1):
            raise ConfigError(
                f"checkpoint_every must be a whole number of at least 1, not "
                f"{self.checkpoint_every!r}"
            )
        for name in ("seed", "insecure_noise_seed"):
            value = getattr(self, name)
            if not (value is None and name != "seed") and not (_whole(value) and value >= 0):
                raise ConfigError(f"{name} must be a whole number of at least 0, not {value!r}")
        if self.resume and self.folder is None:
            raise ConfigError("resume needs the folder of the interrupted job")


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
