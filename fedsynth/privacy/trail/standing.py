"""What a release rests on and what it leaves out, whatever its epsilon: in sentences, by topic.

From what is certified alone: the ledger, and the job's file in so far as the ledger bears it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedsynth.privacy.selecting import released
from fedsynth.privacy.trail.ledger import Ledger

Told = tuple[str, str]
"""A topic, and what is to be known of it."""

_MOST = 12


def part_of(config: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A section of a job's file; empty where it has none."""
    found: Any = config
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def owners_of(ledger: Ledger, config: Mapping[str, Any]) -> str:
    """How many there are, and their names where the job's file has them."""
    sites, federation = part_of(config, "sites"), part_of(config, "federation")
    count = ledger.job.clients
    many = f"{count:,}" if count else "not recorded"
    names = [*part_of(sites, "paths")] or sites.get("names") or federation.get("owners") or []
    if not isinstance(names, list) or len(names) != count:
        return many
    listed = ", ".join(str(name) for name in names[:_MOST])
    return f"{many}: {listed}{', ..' if count > _MOST else ''}"


def rests_on(
    ledger: Ledger, config: Mapping[str, Any], trust: str, accountant: str
) -> Iterator[Told]:
    """What has to hold for the guarantee to hold.

    Args:
        config: the job's file; empty where there is none.
        trust, accountant: the certificate's own words for them.
    """
    job = ledger.job
    shares = job.budget.trusts.shares
    assumed = " Nothing here shows that it was so: whoever ran the job answers for it."
    yield "Trust", trust + (assumed if shares and not job.secure else "")
    yield "Where the rows were", _whereabouts(config)
    yield "Noise", " ".join(_noise(ledger))
    yield (
        "Arithmetic",
        f"Epsilon is computed by {accountant} from the ledger, which "
        "names every release before it was made. `fedsynth verify` computes it again, by a second "
        "accountant, and compares every file with its hash.",
    )


def _whereabouts(config: Mapping[str, Any]) -> str:
    if part_of(config, "federation").get("runtime") == "stream":
        return (
            "Owners answered from machines of their own, over a network: their rows stayed there. "
            "What those machines do beside this job is not covered."
        )
    if "sites" in config:
        return (
            "The owners were simulated: one process held all rows, and whoever ran it could see "
            "them."
        )
    return (
        "The job was run by a program: whether the owners were on machines of their own is not "
        "recorded. Take it that one process held all rows."
    )


def _noise(ledger: Ledger) -> Iterator[str]:
    noisy = (terms for terms in released(ledger.counts) if terms.noise_multiplier > 0)
    kinds = {terms.mechanism for terms in noisy}
    if not kinds:
        yield "None was added."
        return
    if "gaussian" in kinds:
        # Releases that say no day are of before Gaussian noise was whole numbers.
        dated = ledger.closing is not None and ledger.closing.date
        yield (
            "Gaussian noise is drawn as whole numbers of a public grid, so that what is added is "
            "what is accounted for."
            if dated
            else "Gaussian noise was drawn in floating point, rounded to a public grid."
        )
    floating = sorted(kinds - {"gaussian", "exponential"})
    if floating:
        yield (
            f"Noise of the kind {', '.join(floating)} is drawn in floating point, rounded to a "
            "public grid: what its rounding tells is not charged."
        )
    if "exponential" in kinds:
        yield "Choices are made by the exponential mechanism, in floating point."
    yield (
        "All of it comes from the operating system's source of randomness, which is taken to be "
        "secret."
    )


def limits_of(ledger: Ledger) -> Iterator[Told]:
    """What the guarantee leaves out, beside what this job's own circumstances do."""
    job = ledger.job
    yield job.budget.protects.several
    if job.schema_provenance == "declared":
        yield (
            "The schema",
            "Columns, bounds and categories are public. They were declared: it is taken on trust "
            "that they tell nothing of the rows.",
        )
    yield (
        "Who took part",
        "How many owners there are, their names, and who answered is public.",
    )
    yield (
        "What is true of everybody",
        "What the rows show of people at large, such as who falls ill, can be concluded for "
        "somebody whose row is not among them, too. No limit on records prevents that.",
    )
    yield (
        "Figures beside the release",
        "Scores and reports on real rows are covered only by a certificate of their own.",
    )
    yield "Time", "How long anything took hangs on the rows, and is not hidden."


def before(ledger: Ledger, config: Mapping[str, Any]) -> str:
    """What is known of other releases of the same rows."""
    alone = (
        "This certificate counts one job. Whatever else was released of the same rows adds to it. "
    )
    accounts = part_of(config, "federation", "ledgers")
    limit, delta = accounts.get("epsilon"), accounts.get("delta", 1e-5)
    reading = "`fedsynth account` reads those accounts: what was released before, and what is left."
    if isinstance(limit, int | float) and isinstance(delta, int | float):
        return alone + (
            "Every owner charged this job to an account of its own, and would have refused had all "
            f"jobs together cost more than epsilon {limit:g} at delta {delta:g}. {reading}"
        )
    if accounts:
        return alone + (
            "Every owner charged this job to an account of its own. The job set no limit on what "
            f"all jobs together cost; one that an owner's account had before was kept. {reading}"
        )
    if part_of(config, "federation").get("runtime") == "stream":
        return alone + "Whether an owner keeps an account across jobs, it knows itself: ask it."
    return alone + (
        "This job was charged to no account of its owners across jobs, so nothing here tells of "
        "earlier releases: ask the owners."
    )
