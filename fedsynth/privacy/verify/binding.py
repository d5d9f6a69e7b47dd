"""What a release's ledger says of its files, job and schema, and who vouches for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedsynth.errors import ReleaseError
from fedsynth.files import FIGURES, read_plain
from fedsynth.plain import hash_plain
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.adversaries import known_to
from fedsynth.privacy.selecting import BestOf, released
from fedsynth.privacy.trail.agreement import agreement_of
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER, MODEL, SCHEMA, Certificate
from fedsynth.privacy.trail.chain import parse_strictly
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import read_signatures
from fedsynth.privacy.verify.check import Check
from fedsynth.yaml_files import read_yaml


def binding(folder: Path, ledger: Ledger, certificate: Certificate) -> Iterator[Check]:
    """What the ledger itself says of the files, so that no other ones go with it."""
    job, closing = ledger.job, ledger.closing
    if job.format == 1:
        words = (
            "an earlier fedsynth wrote this: its files are bound to the certificate alone, not to "
            "the ledger"
        )
        if any(terms.trusts.shares for terms in ledger.counts):
            seen = charged(known_to(ledger.counts, 1), job.participations, job.budget.unit)
            cost = spent(seen, job.budget.resolved_delta).epsilon
            words += f"; to another owner, who knows its share of the noise, epsilon is {cost:.4g}"
        yield Check("format 1", True, words)
        return
    if closing is None:
        yield Check("closing line", False, "the ledger does not say of which files it is")
        return
    files = {k: v for k, v in certificate.content["files"].items() if k != LEDGER}
    same = files == dict(closing.files)
    words = "the ledger names the same files" if same else "the ledger names other files"
    if closing.edited:
        words += "; their rows were edited after they were sampled"
    yield Check("closing line", same, words)
    if CONFIG in files or MODEL in files:
        yield Check("job", *_agree(folder, ledger))
    if SCHEMA in files or job.schema_digest:
        yield Check("schema", *_same_schema(folder, job))


def _agree(folder: Path, ledger: Ledger) -> tuple[bool, str]:
    """Whether the job's file and the model are those of the ledger's first line."""
    job = ledger.job
    try:
        config = read_yaml(folder / CONFIG, ReleaseError)
        model = parse_strictly(read_plain(folder / MODEL, ReleaseError, FIGURES))
        budget = {**asdict(job.budget), "delta": job.budget.resolved_delta}
        asked = {**config["privacy"], "epsilon": float(config["privacy"]["epsilon"])}
        wrong = [key for key in budget if asked.get(key) not in (None, budget[key])]
        if config["method"] != job.method:
            wrong.append("method")
        methods = _methods(config)
        if hash_plain(config.get("settings") or {}) != job.settings_digest:
            wrong.append("settings")
        # A release of Python's says nothing of how rows came to their owners.
        kept = bool(job.agreed_digest) and "sites" in config
        if kept and hash_plain(agreement_of(config)) != job.agreed_digest:
            wrong.append("seed, holdout, sites or limits")
        if model["method"] not in methods:
            wrong.append("the model's method")
        least = _least_noise(ledger)
        told = [one for _, noise in model.get("measured", ()) for one in _one_by_one(noise)]
        if not all(deviation >= least for deviation in told):
            wrong.append("the noise of the model's tables")
    except (ReleaseError, ValueError, KeyError, TypeError, AttributeError):
        return False, f"{CONFIG} or {MODEL} cannot be read"
    if wrong:
        return False, f"not as the ledger's first line says: {', '.join(wrong)}"
    return True, f"{job.method}, its settings and budget are the ledger's"


def _methods(config: Mapping[str, Any]) -> list[str]:
    """Those that may have made the model: the job's, or of a selection the candidates'."""
    if config["method"] != BestOf.name:
        return [config["method"]]
    return [candidate["method"] for candidate in config["settings"]["candidates"]]


def _least_noise(ledger: Ledger) -> float:
    """The smallest deviation that an unbiased count from one of the ledger's sums can have, less
    rounding, by the noise that its multiplier says: that of older releases was no wider.

    One record more moves a sum by its clip at the most, so no count is surer than the noise over
    the clip (Cramer and Rao), however many of the sum's numbers tell of it.
    """
    scales = [
        terms.noise.deviation(terms.summed_scale(terms.survivors)) / terms.clip / terms.noise.wider
        for terms in released(ledger.counts)
        if not terms.kind.selects
    ]
    return min(scales, default=0.0) * (1 - 1e-9)


def _one_by_one(noise: float | list[float]) -> list[float]:
    """Deviations of a table's cells: one for all, or one for each."""
    return noise if isinstance(noise, list) and noise else [noise]  # type: ignore[list-item]


def _same_schema(folder: Path, job: Job) -> tuple[bool, str]:
    try:
        schema = read_yaml(folder / SCHEMA, ReleaseError)
        same = hash_plain(schema) == job.schema_digest
    except (ReleaseError, ValueError, TypeError):
        return False, f"{SCHEMA} cannot be read"
    return same, "is the ledger's" if same else "another than the job was run with"


def vouching(
    folder: Path, ledger: Ledger, head: str | None, keys: Mapping[str, str] | None
) -> Iterator[Check]:
    """The published head, and who signed it."""
    if head is not None:
        same = ledger.head == head.strip().lower()
        yield Check("head", same, "as published" if same else f"the ledger's is {ledger.head}")
    try:
        signatures = read_signatures(folder)
    except ReleaseError as error:
        yield Check("signatures", False, str(error))
        return
    for one in signatures:
        if not one.holds(ledger.head):
            yield Check("signatures", False, f"that of {one.name} is not of this release")
            return
    names = ", ".join(f"{one.name} (key {one.key[:16]})" for one in signatures)
    if keys is None:
        found = (
            f"by {names}; whose keys these are, --trust tells"
            if names
            else (
                "none: nobody vouches that ledger, certificate and files were not all written "
                f"anew; compare the head with the published one ({ledger.head})"
            )
        )
        yield Check("signatures", True, found)
        return
    signed = {one.key for one in signatures}
    vouching = [name for key, name in keys.items() if key in signed]
    silent = [name for key, name in keys.items() if key not in signed]
    found = f"{', '.join(vouching) or 'none of the trusted keys'} vouched for this release"
    yield Check("trust", bool(vouching), found + (f"; not {', '.join(silent)}" if silent else ""))
