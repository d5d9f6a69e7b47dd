"""The certificate: what a release cost, derived from its ledger alone."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedsynth.demands import demand_path
from fedsynth.durable import write_whole
from fedsynth.errors import ReleaseError
from fedsynth.files import FIGURES, open_plain, read_plain
from fedsynth.plain import round_up
from fedsynth.privacy.accounting import Spent, replaces_one
from fedsynth.privacy.adversaries import (
    Adversary,
    adversaries,
    adversary_grid,
    name_promised,
)
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.chain import parse_strictly
from fedsynth.privacy.trail.job import Event, chosen_clip
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.spelling import spell
from fedsynth.privacy.trust import SECURED
from fedsynth.views import Grid, Said, Shown, View

FORMATS = (1, 2)
NAME, PAGE = "certificate.json", "certificate.html"
LEDGER = "ledger.jsonl"
CONFIG, SCHEMA, MODEL = "config.yaml", "schema.yaml", "model.json"

_NEEDED = {"sentence", "void", "ledger", "not_covered", "cautions"}
_CHANGE = {
    "add-or-remove-one": "Adding or removing",
    "replace-one": "Exchanging",
    "zero-out-one": "Blanking or filling the contribution of",
}


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """What a release guarantees and what that rests on.

    Attributes:
        content: JSON-able, as ``certificate.schema.json`` describes it.
    """

    content: dict[str, Any]

    @property
    def epsilon(self) -> float:
        """The figure to quote: against the server and against whoever holds the release."""
        return float(self.content["guarantee"]["epsilon"])

    @property
    def void(self) -> str | None:
        """Why nothing is guaranteed, or None."""
        value: str | None = self.content["void"]
        return value

    @property
    def sentence(self) -> str:
        return str(self.content["sentence"])

    def _view(self) -> View:
        content = self.content
        void = self.void is not None
        parts: list[Said | Grid] = [Said(self.sentence, "void" if void else "strong")]
        if not void:
            parts.append(adversary_grid(content.get("adversaries", ())))
            parts.append(Said(content["guarantee"]["trust_in_words"]))
        told = (*content["not_covered"], *content["cautions"])
        parts += [Said(sentence, "caution") for sentence in told]
        parts.append(Said(f"Head of the ledger: {content['ledger']['head']}", "quiet"))
        return View("Certificate", parts)

    def save(self, folder: Path) -> Path:
        """Write ``certificate.json``, the whole of it or nothing."""
        path = folder / NAME
        write_whole(path, (json.dumps(self.content, indent=2, allow_nan=False) + "\n").encode())
        return path

    @staticmethod
    def load(folder: str | Path) -> Certificate:
        """Raises ReleaseError where there is no readable certificate."""
        path = demand_path("folder", folder) / NAME
        if not path.exists():
            raise ReleaseError(_why_none(path.parent))
        try:
            content = parse_strictly(read_plain(path, ReleaseError, FIGURES))
            certificate = Certificate(content)
            known = content["format"] in FORMATS and isinstance(content["files"], dict)
            math.isnan(certificate.epsilon)
            if not content.keys() >= _NEEDED:
                raise ValueError("not all of it")
        except (ValueError, KeyError, TypeError, OverflowError):
            raise ReleaseError(f"{path} is damaged: it is no certificate") from None
        if not known:
            raise ReleaseError(f"{path} is of a format that this fedsynth does not read")
        return certificate


def _why_none(folder: Path) -> str:
    """Why a folder is no release, and what to give in its place."""
    if folder.is_file():
        return f"{folder} is a file: give the folder of a release"
    missing = f"{folder / NAME} is missing"
    if not folder.exists():
        return f"{missing}: there is no such folder"
    missing += ": this is no complete release"
    if (folder / CONFIG).exists():
        return f"{missing}. A job has begun here: let it end, or fedsynth run --resume {folder}"
    if (folder / LEDGER).exists():
        return f"{missing}. A fit has begun here: let it end, or fit(.., folder=.., resume=True)"
    if (folder / MODEL).exists():
        return f"{missing}, but a model alone, which the load of its method's class reads"
    return missing


def certify(ledger: Ledger, files: Mapping[str, str]) -> Certificate:
    """Derive the certificate of a ledger.

    Args:
        ledger: of the finished job.
        files: SHA-256 of each file of the release, by name.
    """
    job, budget = ledger.job, ledger.job.budget
    charged = ledger.spent()
    void = _void(ledger)
    return Certificate(
        {
            "format": job.format,
            "fedsynth": version_of("fedsynth"),
            "job": job.job,
            "sentence": void or _sentence(ledger, charged),
            "void": void,
            **_date(ledger),
            "guarantee": {
                "unit": budget.unit,
                "neighbours": _neighbours(ledger),
                "trust": budget.trust,
                "trust_in_words": _trust_in_words(ledger),
                "delta": budget.resolved_delta,
                "target_epsilon": _number(budget.epsilon),
                "epsilon": _number(charged.epsilon),
                "rdp": _number(charged.rdp),
                "pld": None if charged.pld is None else _number(charged.pld),
            },
            **_parties(ledger),
            "releases": [
                {
                    "label": label,
                    "count": sum(_alike(e, label, terms, steps) for e in ledger.events),
                    "terms": spell(terms),
                    **({"steps": steps} if steps > 1 else {}),
                }
                for label, terms, steps in dict.fromkeys(
                    (e.label, e.terms, e.steps) for e in ledger.events
                )
            ],
            "not_covered": list(not_covered(job.schema_provenance, job.owners_provenance)),
            "cautions": [
                *_edited(ledger),
                *budget.cautions(job.format),
                *_exchanges(ledger),
                *_persons(ledger),
                *_mechanisms(ledger),
            ],
            "schema": {"sha256": job.schema_digest, "provenance": job.schema_provenance},
            "ledger": {"events": len(ledger.events), "head": ledger.head},
            "accountant": f"dp-accounting {version_of('dp-accounting')}",
            "files": dict(sorted(files.items())),
        }
    )


def sha256(path: Path) -> str:
    """Hash of a file, read in pieces."""
    with open_plain(path, ReleaseError) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _date(ledger: Ledger) -> dict[str, str]:
    """The day of the release and its method; earlier ledgers have no day."""
    closing = ledger.closing
    if closing is None or not closing.date:
        return {}
    return {"date": closing.date, "method": ledger.job.method}


def _void(ledger: Ledger) -> str | None:
    if ledger.job.insecure:
        return (
            "Void: the noise came from a known seed (insecure_noise_seed), so it can be "
            "subtracted, or owners joined unencrypted (--insecure). Nothing is guaranteed."
        )
    if not math.isfinite(ledger.spent().epsilon):
        return "Void: at least one release carries no noise. Nothing is guaranteed."
    return None


def _sentence(ledger: Ledger, cost: Spent) -> str:
    budget = ledger.job.budget
    change = _CHANGE[_neighbours(ledger)]
    against = f", for {name_promised(_adversaries(ledger))}" if ledger.job.format > 1 else ""
    factor = math.exp(cost.epsilon) if cost.epsilon < 700 else math.inf
    shown = round_up(factor, 3) if math.isfinite(factor) else "an astronomical number"
    return (
        f"{change} any one {budget.protects.words} changes the probability of any outcome by at "
        f"most a factor of {shown} (epsilon {round_up(cost.epsilon, 4)}), except with probability "
        f"{budget.resolved_delta:g} (delta){against}."
        + (" This holds of the model: the rows were edited." if _edited(ledger) else "")
    )


def _neighbours(ledger: Ledger) -> str:
    """In what neighbouring data sets differ (:class:`~fedsynth.privacy.terms.Terms`)."""
    if replaces_one(ledger.counts):
        return "replace-one"
    if ledger.job.format == 1 and all(terms.trusts.server_adds for terms in ledger.counts):
        return "add-or-remove-one"
    return ledger.job.budget.protects.neighbours


def _adversaries(ledger: Ledger) -> tuple[Adversary, ...]:
    job = ledger.job
    return adversaries(ledger.counts, job.budget, job.clients, job.participations)


def _parties(ledger: Ledger) -> dict[str, Any]:
    """Who is held off by how much, who took part, and who was missed; not known of format 1."""
    if ledger.job.format == 1:
        return {}
    return {
        "clients": ledger.job.clients,
        "adversaries": [
            {**asdict(one), "epsilon": _number(one.epsilon)} for one in _adversaries(ledger)
        ],
        "incidents": [dict(one) for one in ledger.closing.incidents] if ledger.closing else [],
    }


def _alike(event: Event, label: str, terms: Terms, steps: int) -> bool:
    return (event.label, event.terms, event.steps) == (label, terms, steps)


def _trust_in_words(ledger: Ledger) -> str:
    trust = ledger.job.budget.trusts
    words = SECURED[ledger.job.secure] if ledger.job.secure else trust.words
    if trust.alone:
        words += ledger.job.budget.protects.parallel
    kinds = dict.fromkeys(terms.kind for terms in ledger.counts)
    return words + "".join(dict.fromkeys(kind.assumes for kind in kinds))


def _edited(ledger: Ledger) -> tuple[str, ...]:
    """What to know of rows that are not as the model gave them."""
    if ledger.closing is None or not ledger.closing.edited:
        return ()
    return (
        "The rows were edited by hand after they were sampled: epsilon covers the model, and "
        "nothing checks that these rows hold nothing private.",
    )


def _exchanges(ledger: Ledger) -> tuple[str, ...]:
    """What to know of releases of one row a client where records are protected."""
    labels = {
        event.label
        for event in ledger.events
        if event.terms.unit != ledger.job.budget.unit and event.terms.noise_multiplier > 0
    }
    if not labels:
        return ()
    return (
        f"{', '.join(sorted(labels))}: one row for a whole client. A {ledger.job.budget.unit} "
        "exchanges its client's row for another, which moves the sum by up to twice the clip, so "
        "these releases are charged at half their noise multiplier.",
    )


def _persons(ledger: Ledger) -> tuple[str, ...]:
    """What to know of a guarantee of persons: who is one, and what the release describes."""
    budget = ledger.job.budget
    if not budget.protects.joined:
        return ()
    described = {
        "person": "rows of a random person: each of a person's k rows weighs 1/k",
        "row": "random rows: each weighs the same, but those of persons with many count less",
    }
    clip, chosen = budget.person_clip, ""
    if clip is None:
        clip = chosen_clip(ledger.job, ledger.events)
        chosen = ", a number chosen from the released histogram of rows a person"
    return (
        budget.protects.several[1],
        f"The release describes {described[budget.weigh or 'person']} (weigh: {budget.weigh}). A "
        f"person's rows together move a sum no further than {clip:g} rows could{chosen}.",
    )


def _mechanisms(ledger: Ledger) -> Iterator[str]:
    """What to know of the mechanisms that were used."""
    warned = [event for event in ledger.events if event.terms.kind.caution]
    for caution in dict.fromkeys(event.terms.kind.caution for event in warned):
        found = {(e.label, e.terms.alpha) for e in warned if e.terms.kind.caution == caution}
        named = (
            label if alpha is None else f"{label} (alpha {alpha:g})"
            for label, alpha in sorted(found, key=lambda one: (one[0], one[1] or 0.0))
        )
        yield f"{', '.join(named)}: {caution}"


def version_of(package: str) -> str:
    """Of an installed package; a source tree that is not installed has none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def not_covered(schema_provenance: str, owners_provenance: str) -> Iterator[str]:
    """What epsilon does not cover, in sentences; known before anything is asked.

    Args:
        schema_provenance, owners_provenance: of :class:`~fedsynth.privacy.trail.job.Job`.
    """
    if schema_provenance == "private-data":
        yield (
            "The schema (bounds, categories, decimals, which columns have missing values) was "
            "drafted from private rows: what it tells about them is not covered by epsilon."
        )
    if owners_provenance == "private-data":
        yield (
            "The owners' names were read off private rows: which owners there are, and how many, "
            "tells that each has a record, which is not covered by epsilon. Declare the names "
            "(sites: names)."
        )


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else "inf"
