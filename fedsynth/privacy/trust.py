"""Whom a release trusts: who adds the noise, and who sees what."""

from __future__ import annotations

from dataclasses import dataclass

from fedsynth.errors import ConfigError


@dataclass(frozen=True)
class Trust:
    """A trust model.

    Attributes:
        protection: a release may be protected better than a budget asks, never worse.
        server_adds: the server adds the noise; else clients do.
        shares: each client adds a share, else the whole. The server then sees no contribution
            alone, but sums.
        words: for the certificate.
    """

    name: str
    protection: int
    server_adds: bool
    shares: bool
    words: str

    @property
    def alone(self) -> bool:
        """Whether a client's message carries all its noise, and so may be released alone."""
        return not self.server_adds and not self.shares

    @property
    def shows_who(self) -> bool:
        """Whether who takes part shows, in messages and in how much noise their sum carries: then
        drawing clients hides nothing, and neighbours differ in one client's contribution, not in
        its presence."""
        return not self.server_adds


CENTRAL = Trust(
    "central",
    0,
    True,
    False,
    "The server is trusted: it sees what clients send before it adds the noise.",
)
DISTRIBUTED = Trust(
    "distributed",
    1,
    False,
    True,
    "Nobody sees a client's message alone: the server sees sums (secure aggregation is assumed), "
    "and every client adds its share of the noise.",
)
LOCAL = Trust(
    "local",
    2,
    False,
    False,
    "Nobody is trusted: every client adds the whole noise to its own message.",
)
TRUSTS = {trust.name: trust for trust in (CENTRAL, DISTRIBUTED, LOCAL)}


def trust_of(name: str) -> Trust:
    """The trust model of that name. Raises ConfigError for an unknown one."""
    if name not in TRUSTS:
        raise ConfigError(f"trust must be one of {', '.join(TRUSTS)}, not {name!r}")
    return TRUSTS[name]
