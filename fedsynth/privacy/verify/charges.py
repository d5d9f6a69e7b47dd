"""Who is charged, and at which noise: the rules a second time, from a ledger's raw lines.

Written from the argument (docs/guarantee.md, "What is counted") and not from the first accountant,
of which nothing is imported: a rule that is wrong there is not wrong here too. `verify` computes
its second opinions from what this reads.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fedsynth.errors import ReleaseError
from fedsynth.files import LINES, read_plain
from fedsynth.privacy.verify.clips import clipped_alike, clips_open

Line = Mapping[str, Any]

# The norm in which rows are clipped for each mechanism's noise.
_NORMS = {
    "gaussian": "l2",
    "laplace": "l1",
    "exponential": "l1",
    "stable": "l1",
    "selection": "l2",
}
# Each protects from whom the one before does, and from more.
_TRUSTS = ("central", "distributed", "local")
_SAMPLINGS = {
    "everyone": {"kind"},
    "poisson": {"kind", "rate"},
    "fixed-size": {"kind", "size", "population"},
}
_TERMS = {"unit", "trust", "clip", "noise_multiplier", "norm", "mechanism", "sampling", "survivors"}
# Of whole clients' rows a unit that lies within one exchanges one for another.
_EXCHANGED = (("client", "record"), ("client", "person"))
_SELECTION = {"trials", "parts"}
_WEIGHED = {"person": ("person", "row")}
_LAWS = ("logarithmic", "geometric", "poisson")
_EVENT = {"kind", "label", "round", "job", "terms"}
_MORE = {"steps", "line", "previous", "hash"}


@dataclass(frozen=True)
class Charge:
    """One release, as it is charged.

    Attributes:
        mechanism: its name.
        noise: scale of the noise over how far a unit that comes or goes moves the sum; 0 for none.
        alpha: index of stable noise, else None.
        sampling: what is not known of who takes part to those whom the charge holds against:
            nothing, coin flips, or a sample without replacement, where neighbours exchange a unit.
        rate: share of the units in a sample, in (0, 1]; 1 where it is known who takes part.
        best: of a selection, the trials; the noise is theirs.
    """

    mechanism: str
    noise: float
    alpha: float | None = None
    sampling: Literal["everyone", "poisson", "fixed-size"] = "everyone"
    rate: float = 1.0
    best: Best | None = None


@dataclass(frozen=True)
class Best:
    """The best trial of a number that is drawn by a law.

    Attributes:
        mean: of the number.
        law: "logarithmic", "geometric" or "poisson".
        parts: of which a unit is in one in a trial: releases, and how often each.
    """

    mean: float
    law: str
    parts: tuple[tuple[tuple[Charge, int], ...], ...]


@dataclass(frozen=True)
class Charges:
    """What a ledger's releases come to.

    Attributes:
        counts: how often each charge is made.
        unit: that is protected.
        delta: in (0, 1).
    """

    counts: Mapping[Charge, int]
    unit: str
    delta: float

    @property
    def replace_one(self) -> bool:
        """Whether neighbours exchange a unit, which moves every sum by twice its clip.

        Samples of a fixed size force it: with one unit more or less there are none.
        """
        return any(one.sampling == "fixed-size" for one in self.counts)


def lines_of(path: Path) -> list[Line]:
    """The lines of a ledger as they stand there. Raises ReleaseError where one is none."""
    try:
        lines = [json.loads(raw) for raw in read_plain(path, ReleaseError, LINES).splitlines()]
    except (ValueError, RecursionError):
        lines = [None]
    if not all(isinstance(line, dict) for line in lines):
        raise ReleaseError(f"{path}: not a ledger, whose lines are JSON objects")
    return lines


def structure(lines: Sequence[Line]) -> Iterator[tuple[str, bool, str]]:
    """What must hold of all releases together: its name, whether it does, and what was found.

    A round is numbered by how many releases were written down before it, whatever crashed in
    between. Releases are labelled by their task and those of a plan by their stage, which may
    differ; their terms may not.

    Raises:
        ReleaseError: a line that is none of a ledger's.
    """
    job, events = _split(lines)
    rounds = [event["round"] for event in events]
    odd = [at for at, number in enumerate(rounds) if type(number) is not int or number != at]
    if not rounds:
        yield "rounds", False, "no release: nothing was asked, so there is nothing to certify"
    elif odd:
        found = f"release {odd[0] + 1} is of round {rounds[odd[0]]}"
        yield "rounds", False, f"{found}: one was left out, doubled or moved"
    else:
        yield "rounds", True, f"0 to {rounds[-1]}, in order"
    planned = [release["terms"] for release in job["plan"]]
    strange = [event["label"] for event in events if event["terms"] not in planned]
    if strange and clips_open(job["budget"]) and clipped_alike(events, planned):
        strange = []
    if not planned:
        yield "plan", False, "nothing was planned, so the noise was calibrated for nothing"
    elif strange:
        yield "plan", False, f"{strange[0]}: released under terms that were not planned"
    else:
        yield "plan", True, "every release is under planned terms"


def charge(lines: Sequence[Line], colluding: int | None = None) -> Charges:
    """What the releases of a ledger are charged as.

    Args:
        colluding: what they cost against so many owners who put together what they know; None for
            as many as are promised.

    Raises:
        ReleaseError: a line that is none of a ledger's, or a release that no rule covers.
    """
    job, events = _split(lines)
    budget, alike = job["budget"], dict[Hashable, list[Line]]()
    for event in events:
        for fault in _faults(event, budget):
            where = f"{event['label']}, round {event['round']}"
            raise ReleaseError(f"{where}: no rule says what a release costs with {fault}")
        alike.setdefault(_frozen(event["terms"]), []).append(event)
    counts: dict[Charge, int] = {}
    for group in alike.values():
        terms = group[0]["terms"]
        one = _charge(terms, budget["unit"])
        if colluding is not None:
            one = replace(one, noise=one.noise * _left(terms, colluding))
        # A client that is drawn refuses after so many rounds: at the worst they took most steps.
        drawn = _shown(terms, budget["unit"]) and terms["sampling"]["kind"] != "everyone"
        steps = sorted((event.get("steps", 1) for event in group), reverse=True)
        counted = sum(steps[: job["participations"]] if drawn else steps)
        counts[one] = counts.get(one, 0) + counted
    return Charges(counts, budget["unit"], _delta(budget))


def _charge(terms: Line, unit: str) -> Charge:
    """A release under these terms, of a job that protects this unit.

    Whoever adds the noise, and whoever may take a share of it off again, what is left is at least
    of its multiplier times the clip: that is how shares are sized.
    """
    mechanism, noise, alpha = terms["mechanism"], terms["noise_multiplier"], terms.get("alpha")
    if mechanism == "selection":
        parts = tuple(
            tuple((_charge(own["terms"], unit), own["count"]) for own in part)
            for part in terms["parts"]
        )
        trials = terms["trials"]
        return Charge(mechanism, float(noise), best=Best(trials["mean"], trials["kind"], parts))
    if terms["unit"] != unit:
        # A record exchanges its client's row for another, each within the clip, so it moves the sum
        # by two. It is in no sample by itself: whoever knows its client knows whether it is in one.
        return Charge(mechanism, noise / 2, alpha)
    kind, rate = terms["sampling"]["kind"], _rate(terms["sampling"])
    if _shown(terms, unit):
        # All are charged as those who took part. Under an exchange they remain one.
        rate = 1.0
    if kind == "poisson" and rate == 1:
        kind = "everyone"
    return Charge(mechanism, float(noise), alpha, kind, rate)


def colluders(lines: Sequence[Line]) -> list[int]:
    """How many owners who collude a certificate has epsilon for, where they add shares: one, as
    many as are promised, and one more; as long as one is left whom they do not know."""
    job, _ = _split(lines)
    budget, clients = job["budget"], job.get("clients", 0)
    if budget["trust"] != "distributed":
        return []
    curious = budget.get("curious") or 0
    numbers = {1, curious, curious + 1} - {0}
    return sorted(n for n in numbers if n < clients or not clients)


def _left(terms: Line, colluding: int) -> float:
    """The noise of shares that colluding owners did not add, in that of a whole release.

    Independent noise adds up by its variance, or where that is infinite by its alpha-th power.
    Laplace noise is whole with all of its shares; with fewer it is unbounded at 0, and hides
    nothing.
    """
    if terms["trust"] != "distributed":
        return 1.0
    others = max(0, terms["survivors"] - colluding)
    whole = terms["survivors"] - terms.get("curious", 0)
    if terms["mechanism"] == "laplace":
        return float(others >= whole)
    return float((others / whole) ** (1 / (terms.get("alpha") or 2.0)))


def _shown(terms: Line, unit: str) -> bool:
    """Whether it shows which of the job's units take part.

    Records are drawn at their client, in secret. Clients are drawn by the server: unless it is
    trusted, those whom the charge must hold against include one who knows. And where clients add
    the noise, how much of it there is tells everybody how many were drawn.
    """
    return bool(terms["unit"] == unit == "client" and terms["trust"] != "central")


def _rate(sampling: Line) -> float:
    if sampling["kind"] == "fixed-size":
        return float(sampling["size"] / sampling["population"])
    return float(sampling.get("rate", 1.0))


def _delta(budget: Line) -> float:
    """As given; else 1e-5, or less where so many units are known that it must be."""
    if budget["delta"] is not None:
        return float(budget["delta"])
    units = budget["units"]
    return 1e-5 if units is None else min(1e-5, 1 / float(units) ** 1.1)


def _split(lines: Sequence[Line]) -> tuple[Line, list[Line]]:
    """The job's line, and those of releases. Raises ReleaseError for lines that are neither."""
    if not lines or lines[0].get("kind") != "job":
        raise ReleaseError("a ledger begins with the line of its job")
    job, events = lines[0], list[Line]()
    for number, line in enumerate(lines[1:], 2):
        if line.get("kind") == "event":
            if fault := _other_fields(line, _EVENT, _MORE):
                raise ReleaseError(f"line {number}: a release with {fault}")
            if lines[number - 2].get("kind") == "closing":
                raise ReleaseError(f"line {number}: a release after the job was closed")
            events.append(line)
        elif line.get("kind") != "closing":
            raise ReleaseError(f"line {number} is of an unknown kind: {line.get('kind')}")
    try:
        budget, limit = job["budget"], job["participations"]
        delta, units = budget["delta"], budget["units"]
        sound = (
            budget["unit"] in ("record", "person", "client")
            and budget["trust"] in _TRUSTS
            and (delta is None or (_number(delta) and 0 < delta < 1))
            and all(n is None or (type(n) is int and n >= 1) for n in (units, limit))
            and all(isinstance(release["terms"], dict) for release in job["plan"])
        )
    except (KeyError, TypeError):
        sound = False
    if not sound:
        raise ReleaseError("line 1 does not say a job's budget, plan and participations")
    return job, events


def _faults(event: Line, budget: Line) -> Iterator[str]:
    """Why no rule covers a release, in words; what follows the first may not make sense."""
    terms, steps = event["terms"], event.get("steps", 1)
    if not (type(steps) is int and steps >= 1):
        yield f"{steps} steps"
    if not isinstance(terms, dict) or not isinstance(terms.get("sampling"), dict):
        yield "terms that are none"
    more = _SELECTION if terms.get("mechanism") == "selection" else set()
    if fault := _other_fields(terms, _TERMS | more, {"alpha", "curious", "weigh"}):
        yield fault
    unit, trust, mechanism = terms["unit"], terms["trust"], terms["mechanism"]
    if unit != budget["unit"] and (unit, budget["unit"]) not in _EXCHANGED:
        yield f"rows of {unit}s, of which one {budget['unit']} may move any number"
    if trust not in _TRUSTS or _TRUSTS.index(trust) < _TRUSTS.index(budget["trust"]):
        yield f"{trust} trust, where {budget['trust']} trust is promised"
    if terms["norm"] != _NORMS.get(str(mechanism)):
        yield f"{mechanism} noise for rows that are clipped in {terms['norm']}"
    alpha = terms.get("alpha")
    if alpha is not None if mechanism != "stable" else not (_number(alpha) and 1 <= alpha < 2):
        yield f"{mechanism} noise of index {alpha}"
    noise, clip = terms["noise_multiplier"], terms["clip"]
    if not (_number(noise) and noise >= 0 and _number(clip) and clip > 0):
        yield f"noise of {noise} times a clip of {clip}"
    if terms.get("weigh") not in _WEIGHED.get(unit, (None,)):
        yield f"{unit}s' rows that are weighed by {terms.get('weigh')}"
    yield from _sampling_faults(terms)
    yield from _share_faults(terms, budget)
    if more:
        yield from _selection_faults(terms, budget)


def _selection_faults(terms: Line, budget: Line) -> Iterator[str]:
    """Trials are a secret of a trusted server's, and all that each releases has noise."""
    if terms["trust"] != "central" or terms["unit"] != budget["unit"]:
        yield f"trials of {terms['unit']}s under {terms['trust']} trust"
    trials, parts = terms["trials"], terms["parts"]
    if not isinstance(trials, dict) or trials.keys() != {"mean", "kind"}:
        yield "trials without a law"
    if trials["kind"] not in _LAWS or not (_number(trials["mean"]) and trials["mean"] >= 1):
        yield f"{trials['mean']} trials by a law called {trials['kind']}"
    lists = isinstance(parts, list) and all(isinstance(part, list) and part for part in parts)
    if not (lists and parts):
        yield "trials of nothing"
    for own in (own for part in parts for own in part):
        if not isinstance(own, dict) or own.keys() != {"terms", "count"}:
            yield "a part that is none"
        yield from _faults({"terms": own["terms"]}, budget)
        inner = own["terms"]
        if inner["mechanism"] == "selection" or inner["sampling"]["kind"] == "fixed-size":
            yield "trials that are selections, or of samples of a fixed size"
        if not (type(own["count"]) is int and own["count"] >= 1 and inner["noise_multiplier"] > 0):
            yield "trials without noise, or without number"


def _sampling_faults(terms: Line) -> Iterator[str]:
    sampling = terms["sampling"]
    kind = str(sampling.get("kind"))
    if kind not in _SAMPLINGS:
        yield f"{kind} sampling"
    if fault := _other_fields(sampling, _SAMPLINGS[kind]):
        yield fault
    if kind == "poisson" and not (_number(sampling["rate"]) and 0 < sampling["rate"] <= 1):
        yield f"a sampling rate of {sampling['rate']}"
    if kind == "fixed-size":
        size, population = sampling["size"], sampling["population"]
        if not (type(size) is type(population) is int and 1 <= size <= population):
            yield f"{size} drawn of {population}"
        if terms["unit"] != "client":
            yield f"{terms['unit']}s in samples of a fixed size"
    # It takes somebody who sees the exact scores of all.
    if terms["mechanism"] == "exponential" and (terms["trust"], kind) != ("central", "everyone"):
        yield f"a choice under {terms['trust']} trust, of {kind}"


def _share_faults(terms: Line, budget: Line) -> Iterator[str]:
    """Of so many answers that survive some may be curious owners', whose shares count for naught:
    the others carry the whole noise."""
    survivors, curious = terms["survivors"], terms.get("curious", 0)
    if not (type(survivors) is int and survivors >= 1):
        yield f"{survivors} survivors"
    if not (type(curious) is int and 0 <= curious < survivors):
        yield f"{curious} curious owners in {survivors} answers, so that nobody carries the noise"
    if curious and terms["trust"] != "distributed":
        yield f"{curious} curious owners under {terms['trust']} trust, where noise has no shares"
    promised = budget.get("curious") or 0
    if terms["trust"] == "distributed" and curious < promised:
        yield f"{curious} curious owners, where {promised} are promised"


def _other_fields(line: Line, needed: set[str], more: Collection[str] = ()) -> str:
    """Says which fields are missing or unknown: what nobody knows may bear on the cost."""
    missing, unknown = needed - line.keys(), line.keys() - needed - set(more)
    found = [f"no {', '.join(sorted(missing))}"] if missing else []
    found += [f"unknown fields ({', '.join(sorted(unknown))})"] if unknown else []
    return " and ".join(found)


def _number(value: object) -> bool:
    """Finite, and neither a word nor a truth value."""
    return type(value) is not bool and isinstance(value, int | float) and abs(value) < 1e300


def _frozen(terms: Line) -> Hashable:
    """What terms say; those that say the same are one."""
    return json.dumps(terms, sort_keys=True)
