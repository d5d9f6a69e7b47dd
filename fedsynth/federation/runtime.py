"""The seam between server and clients: whatever carries requests out and answers back.

The server's half asks a runtime and sees nothing else of clients; what a runtime does lies between:
in this process (:mod:`fedsynth.federation.runtimes.local`), or over a network. Consent, the
client's own ledger, secret samples, the clip and the client's noise are all on the client's side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from fedsynth.errors import Caution, warn_of
from fedsynth.federation.request import Answer, Incident, Plain, Request, Summed
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules


class Runtime(Protocol):
    """Carries one federation's requests; every job of it is told apart by its name."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients' names, which are public."""
        ...

    @property
    def insecure(self) -> bool:
        """Whether somebody knows the seed of a client's randomness."""
        ...

    def open(self, job: str, participations: Mapping[str, int], offered: Job | None = None) -> None:
        """Begin a job, or go on with one.

        Args:
            participations: of a job that goes on, the rounds in which each client was drawn.
            offered: the job as its ledger's first line says it, which clients with rules of their
                own judge; others need none.
        """
        ...

    def announce(self, job: str, key: str, value: Plain) -> None:
        """Send a public, plain value to every client, for a job's tasks to read in later rounds."""
        ...

    def sum(self, request: Request, cohort: Sequence[str]) -> Summed:
        """Ask the clients named, and bring the sum of their answers and no single one.

        No sum of fewer answers than ``terms.fewest`` is opened: it is told how many there are.
        Asked again, before :meth:`settle`, it brings the same sum to the last bit, of the same
        clients' answers: two sums over different clients would tell one of them. Another request
        under the number is refused. A round that was charged to a client, and of which nothing
        ever left it, may be answered by it under that charge.
        """
        ...

    def collect(
        self, request: Request, cohort: Sequence[str]
    ) -> tuple[list[Answer], list[Incident]]:
        """Ask the clients named for messages that are each private on their own (local trust).

        Asked again it brings the same messages, as :meth:`sum` does the same sum.
        """
        ...

    def settle(self, job: str, rounds: int) -> None:
        """The server has for good what the rounds below ``rounds`` gave, and asks none again.

        Clients need not keep it. Under central trust they must not give it again: they send sums
        without noise, and the noise of the server is drawn.
        """
        ...

    def close(self, job: str, *, finished: bool) -> None:
        """End a job; what clients keep of one that is not finished stays for it to go on."""
        ...


class Federation(ABC):
    """Clients that a job can be run with.

    Attributes:
        secures: who adds up in its secure sums (:attr:`fedsynth.privacy.trail.job.Job.secure`);
            empty where it carries none.
    """

    secures: ClassVar[str] = ""

    @abstractmethod
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
    ) -> Runtime:
        """A runtime to these clients.

        Args:
            coins: for clients that are simulated in this process; others have their own.
            ledgers: simulated clients' own accounts across jobs, by name; others have their own.
            private: where simulated clients keep private vectors; None keeps them in memory.
            budget: of the job, which simulated clients insist on; others have floors of their own.
            most_records: that a client may have, a public figure. One that has more takes no part:
                its owner is told, before anything is asked, and decides.
            outside: the share of a column's cells that may be outside the schema, a public figure:
                as above. Shares are told to their owner alone.
            caution: called with what simulated owners are to know of their tables, a sentence each.
            deadline: seconds that a client may take for an answer; None for any number.
            secure: for secure sums of shares, from the number of clients to what they insist on;
                None leaves it to a deployment that sums are secure.

        Raises:
            ConfigError: a ledger of a client that there is not; or as ``secure`` raises.
            DataError: a client has more records than that, or more of a column outside.
        """

    def demand_same_rows(self, *, begun: bool) -> None:
        """Look whether simulated owners' rows are those that the job began with; others' machines
        look at their own.

        Args:
            begun: whether something was charged, so that it is known what they were.

        Raises:
            DataError: they are others, or nothing tells what they were.
        """
        return

    def spare(self) -> None:
        """All that the job to come asks was asked, and its server has it: nobody need be there."""
        return

    def recall(self, ledger: Ledger) -> tuple[str, ...]:
        """What simulated owners are to know of earlier jobs on the same rows, in sentences.

        Args:
            ledger: of the job that begins; nothing was asked yet.
        """
        return ()
