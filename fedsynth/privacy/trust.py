"""Whom a release trusts: who adds the noise, and who sees what."""

from __future__ import annotations

from dataclasses import dataclass

from fedsynth.errors import ConfigError


@dataclass(frozen=True)
class Trust:
    """A trust model.

    Attributes:
        protection: a release may be protected better than a budget asks, never worse.
        server_adds: the server adds the noise; else clients do, and who takes part shows, in
            messages and in how much noise their sum carries: then drawing clients hides nothing,
            and neighbours differ in what one client contributes, not in its presence.
        shares: each client adds a share, and the server sees no contribution but in a sum.
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


CENTRAL = Trust(
    "central",
    protection=0,
    server_adds=True,
    shares=False,
    words="The server is trusted: it sees what clients send before it adds the noise.",
)
DISTRIBUTED = Trust(
    "distributed",
    protection=1,
    server_adds=False,
    shares=True,
    words="Nobody sees a client's message alone: the server sees sums (secure aggregation is "
    "assumed), and every client adds its share of the noise.",
)
LOCAL = Trust(
    "local",
    protection=2,
    server_adds=False,
    shares=False,
    words="Nobody is trusted: every client adds the whole noise to its own message.",
)
ADDED_UP = (
    "Nobody sees a client's message alone: the server sees sums, added up by the whole protocol of "
    "secure aggregation{}, and every client adds its share of the noise."
)
"""Words of distributed trust where sums are secure and that is not assumed, with who adds up."""
SECURED = {
    "simulated": ADDED_UP.format(" (between clients that one process simulates)"),
    "apart": ADDED_UP.format(", between owners on their own machines"),
}
"""By :attr:`fedsynth.privacy.trail.job.Job.secure`."""
TRUSTS = {trust.name: trust for trust in (CENTRAL, DISTRIBUTED, LOCAL)}


def trust_of(name: str) -> Trust:
    """The trust model of that name. Raises ConfigError for an unknown one."""
    if name not in TRUSTS:
        raise ConfigError(f"trust must be one of {', '.join(TRUSTS)}, not {name!r}")
    return TRUSTS[name]
