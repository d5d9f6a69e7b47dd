"""What an owner insists on before it takes part in a sum, and with whom alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fedsynth.errors import ConfigError
from fedsynth.federation.secure.masks import KEY, LABEL, join

MOST_OWNERS = 100


@dataclass(frozen=True)
class Rules:
    """How many owners add up, and how many of them may fail it.

    Any two groups of `threshold` owners have more than `curious` in common, so an honest one, where
    2 threshold > cohort + curious: then at most one sum of a round is ever opened.

    Attributes:
        cohort: owners that are known to each other, 2 to 100, whether they answer or not.
        threshold: the fewest that a sum may be over, and that must agree to open it.
        curious: how many may tell the server all that they know.

    Raises:
        ConfigError: numbers under which two sums of a round could be opened.
    """

    cohort: int
    threshold: int
    curious: int

    def __post_init__(self) -> None:
        if not 2 <= self.cohort <= MOST_OWNERS:
            raise ConfigError(f"a secure sum is over 2 to {MOST_OWNERS} owners, not {self.cohort}")
        if not 0 <= self.curious < self.cohort:
            raise ConfigError(f"curious: {self.curious} of {self.cohort} owners leave none honest")
        least = least_threshold(self.cohort, self.curious)
        if not least <= self.threshold <= self.cohort:
            raise ConfigError(
                f"threshold: {self.threshold} of {self.cohort} owners, {self.curious} of them "
                f"curious, is not from {least} to {self.cohort}; below, a server could open two "
                "sums that differ by one owner"
            )

    @property
    def numbers(self) -> bytes:
        """A byte each."""
        return bytes((self.cohort, self.threshold, self.curious))

    @property
    def may_drop(self) -> int:
        """Owners without whom a sum is opened all the same."""
        return self.cohort - self.threshold

    @property
    def needs_all(self) -> bool:
        """Whether a sum is over all owners or over none: then no secret is ever dealt out."""
        return self.threshold == self.cohort

    @property
    def shares(self) -> int:
        """Owners whose noise together is the whole: any sum holds that of so many honest ones."""
        return self.threshold - self.curious

    @property
    def noise(self) -> float:
        """Gaussian noise of a sum over all owners, in multiples of what a trusted server adds."""
        return math.sqrt(self.cohort / self.shares)


def least_threshold(cohort: int, curious: int) -> int:
    """The least number that is above (cohort + curious) / 2."""
    return (cohort + curious) // 2 + 1


def list_rules(cohort: int, curious: int) -> tuple[Rules, ...]:
    """All rules for so many owners, by their threshold.

    Raises:
        ConfigError: there are none.
    """
    strictest = Rules(cohort, cohort, curious)
    looser = range(least_threshold(cohort, curious), cohort)
    return (*(Rules(cohort, threshold, curious) for threshold in looser), strictest)


@dataclass(frozen=True)
class Roster:
    """One job's owners, as each of them has them on file; nobody else counts.

    Attributes:
        job: its name.
        keys: each owner's public Ed25519 key, 32 bytes, by name.
        rules: the same for all.

    Raises:
        ConfigError: other than `rules.cohort` owners, a key of two, or none.
    """

    job: str
    keys: Mapping[str, bytes]
    rules: Rules

    def __post_init__(self) -> None:
        if len(self.keys) != self.rules.cohort:
            raise ConfigError(f"{len(self.keys)} owners' keys for a cohort of {self.rules.cohort}")
        for name, key in self.keys.items():
            if len(key) != KEY:
                raise ConfigError(f"{name}: a public Ed25519 key has {KEY} bytes, not {len(key)}")
        if len(set(self.keys.values())) < len(self.keys):
            raise ConfigError("two owners have the same key; each needs its own")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Sorted: an owner's place from 0 on is what it goes by in frames."""
        return tuple(sorted(self.keys))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of job, owners and rules."""
        owners = [part for name in self.names for part in (name.encode(), self.keys[name])]
        told = join(b"roster", self.job.encode(), self.rules.numbers, *owners)
        return hashlib.sha256(LABEL + told).digest()

    def key(self, place: int) -> bytes:
        return self.keys[self.names[place]]

    def context(self, round: int, attempt: int) -> bytes:
        """What every key, signature and share of one attempt is bound to."""
        return join(b"attempt", self.digest, round.to_bytes(8, "big"), attempt.to_bytes(8, "big"))
