"""Owners on their own machines, whatever carries frames between them and a hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fedsynth.errors import Caution, ConfigError, PrivacyError, warn_of
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules


class Apart(Federation):
    """Owners who insist on rules of their own, and keep what is theirs themselves.

    Args:
        hub: that their sites join.
    """

    secures = "apart"

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    def open(
        self,
        coins: NoiseSource,
        ledgers: Mapping[str, Ledger],
        private: Path | None,
        budget: Budget,
        most_records: int | None = None,
        outside: float = 1.0,
        caution: Caution = warn_of,
        deadline: float | None = None,
        secure: Callable[[int], Rules] | None = None,
    ) -> Hub:
        """The hub.

        Raises:
            PrivacyError: a trust under which no server may see one site's answer, without secure
                sums.
            ConfigError: accounts, which sites keep themselves; or as ``secure`` raises.
        """
        if budget.trusts.shares and secure is None:
            raise PrivacyError(
                f"trust: {budget.trust} needs sums that nobody can open, and sites refuse it "
                "without: say secure: true, and nothing was asked"
            )
        if ledgers:
            raise ConfigError("owners on their own machines keep their own accounts")
        rules = None if secure is None else secure(len(self.hub.clients))
        self.hub.agree(deadline, most_records, rules)
        return self.hub

    def demand_same_rows(self, *, begun: bool) -> None:
        """Each site looks at its own."""
        self.hub.begun, self.hub.spared = begun, False

    def spare(self) -> None:
        self.hub.spared = True
