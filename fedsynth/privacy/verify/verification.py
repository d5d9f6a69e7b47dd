"""Verify a release without trusting the job that made it.

Files against their hashes, the ledger's chain, every figure derived anew from the ledger, and the
derived epsilon against a second accountant, which charges the ledger's releases by rules of its own
(:mod:`fedsynth.privacy.verify.charges`) and composes them apart
(:mod:`fedsynth.privacy.verify.moments`; for the privacy loss distribution
:mod:`fedsynth.privacy.verify.gaussian` or :mod:`fedsynth.privacy.verify.pure`, which are exact, or
Microsoft's PRV accountant where Gaussian releases are of samples).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedsynth.errors import FedsynthError, ReleaseError
from fedsynth.plain import hash_plain
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.adversaries import SERVER, known_to
from fedsynth.privacy.trail.certificate import (
    CONFIG,
    LEDGER,
    MODEL,
    NAME,
    SCHEMA,
    Certificate,
    certify,
    sha256,
)
from fedsynth.privacy.trail.chain import parse_strictly
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import NAME as SIGNATURES
from fedsynth.privacy.trail.signatures import read_keys, read_signatures
from fedsynth.privacy.verify import charges, gaussian, moments, pure
from fedsynth.privacy.verify.charges import Charge, Charges
from fedsynth.yaml_files import read_yaml

# What the second accountants may find above the certified figures: rounding in one case, a mesh in
# the other. The PRV accountant's mesh grows with epsilon and fails for large ones.
_RDP_SLACK = 1e-3
# Another build of the accountant may round the last digits differently.
_ROUNDING = 1e-6
_PRV_ERROR = 0.01
_PRV_LIMIT = 10.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: its name, whether it holds, and what was found."""

    name: str
    passed: bool
    found: str


def verify(
    folder: str | Path, *, head: str | None = None, trust: str | Path | None = None
) -> tuple[Check, ...]:
    """Look at everything a certificate claims.

    Args:
        head: hash of the ledger's last line, as it was published.
        trust: public keys, one of which must have signed: a PEM file, or a folder of them.

    Returns:
        All checks, in order; later ones are left out where an earlier one makes them meaningless.

    Raises:
        ReleaseError: where ``folder`` holds no readable certificate.
        ConfigError: ``trust`` holds no public keys.
    """
    folder = Path(folder)
    keys = None if trust is None else read_keys(Path(trust))
    certificate = Certificate.load(folder)
    return tuple(_checks(folder, certificate, head, keys))


def _checks(
    folder: Path, certificate: Certificate, head: str | None, keys: Mapping[str, str] | None
) -> Iterator[Check]:
    yield from _files(folder, certificate)
    try:
        ledger = Ledger.read(folder / LEDGER)
        derived = certify(ledger, certificate.content["files"])
    except FedsynthError as error:
        yield Check("ledger", False, str(error))
        return
    yield Check("ledger", True, f"releases: {len(ledger.events)}, chain intact")
    yield from _bound(folder, ledger, certificate)
    yield from _vouched(folder, ledger, head, keys)
    yield from _figures(certificate, derived)
    # What the certificate says equals what the ledger implies, or the check above has failed: from
    # here on the latter is held to account.
    yield from _second_opinion(folder / LEDGER, derived)
    yield _within_budget(ledger, derived)
    yield Check("not void", derived.void is None, derived.void or "noise was secret")


def _files(folder: Path, certificate: Certificate) -> Iterator[Check]:
    listed: dict[str, str] = certificate.content["files"]
    if LEDGER not in listed:
        yield Check(LEDGER, False, f"{NAME} does not list the ledger")
    for name, expected in listed.items():
        path = folder / name
        if Path(name).name != name:
            yield Check(name, False, "names a place outside the release")
        elif path.is_symlink():
            yield Check(name, False, "a link: what it leads to may change")
        elif not path.is_file():
            yield Check(name, False, "missing")
        else:
            same = sha256(path) == expected
            yield Check(name, same, "unchanged" if same else "changed since it was certified")
    known = {*listed, NAME, SIGNATURES}
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    found = f"not certified: {', '.join(others)}" if others else "none"
    # Format 1 allowed them.
    yield Check("other files", not others or certificate.content["format"] == 1, found)


def _bound(folder: Path, ledger: Ledger, certificate: Certificate) -> Iterator[Check]:
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
    yield Check("closing line", same, words)
    if CONFIG in files or MODEL in files:
        yield Check("job", *_agree(folder, job))
    if SCHEMA in files or job.schema_digest:
        yield Check("schema", *_same_schema(folder, job))


def _agree(folder: Path, job: Job) -> tuple[bool, str]:
    """Whether the job's file and the model are those of the ledger's first line."""
    try:
        config = read_yaml(folder / CONFIG, ReleaseError)
        model = parse_strictly((folder / MODEL).read_bytes())
        budget = {**asdict(job.budget), "delta": job.budget.resolved_delta}
        asked = {**config["privacy"], "epsilon": float(config["privacy"]["epsilon"])}
        wrong = [key for key in budget if asked.get(key) not in (None, budget[key])]
        if config["method"] != job.method:
            wrong.append("method")
        if hash_plain(config.get("settings") or {}) != job.settings_digest:
            wrong.append("settings")
        if model["method"] != job.method:
            wrong.append("the model's method")
    except (ReleaseError, OSError, ValueError, KeyError, TypeError):
        return False, f"{CONFIG} or {MODEL} cannot be read"
    if wrong:
        return False, f"not as the ledger's first line says: {', '.join(wrong)}"
    return True, f"{job.method}, its settings and budget are the ledger's"


def _same_schema(folder: Path, job: Job) -> tuple[bool, str]:
    try:
        schema = read_yaml(folder / SCHEMA, ReleaseError)
        same = hash_plain(schema) == job.schema_digest
    except (ReleaseError, ValueError, TypeError):
        return False, f"{SCHEMA} cannot be read"
    return same, "is the ledger's" if same else "another than the job was run with"


def _vouched(
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


def _figures(certificate: Certificate, derived: Certificate) -> Iterator[Check]:
    """Everything that the ledger determines must stand in the certificate, to the last digit."""
    installed = {"fedsynth", "accountant"}
    for key in derived.content.keys() | certificate.content.keys():
        if key in installed:
            continue
        ours, theirs = derived.content.get(key), certificate.content.get(key)
        if not _same(ours, theirs):
            yield Check(key, False, "the certificate says otherwise than the ledger")
            return
    yield Check("figures", True, f"epsilon {certificate.epsilon:.6g} follows from the ledger")


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=_ROUNDING)
    return ours == theirs


def _second_opinion(path: Path, derived: Certificate) -> Iterator[Check]:
    """The ledger's lines, read and charged a second time, and the figures held against that."""
    claimed = derived.content["guarantee"]
    try:
        lines = charges.lines_of(path)
        yield from (Check(*found) for found in charges.structure(lines))
        read = charges.charge(lines)
        yield _second_reading(claimed, read)
        if not math.isfinite(derived.epsilon) or not read.counts:
            return
        second = moments.epsilon(moments.compose(read.counts, read.replace_one), read.delta)
    except FedsynthError as error:
        yield Check("second reading", False, str(error))
        return
    rdp = float(claimed["rdp"])
    yield Check(
        "second accountant (moments)",
        second <= rdp * (1 + _RDP_SLACK) + _RDP_SLACK,
        f"RDP {rdp:.6g} certified, {second:.6g} computed apart",
    )
    if claimed["pld"] is not None and math.isfinite(second):
        yield from _opinion_on_pld(read.counts, read.delta, float(claimed["pld"]))
    if "adversaries" in derived.content:
        yield _opinion_on_adversaries(lines, derived)


def _opinion_on_adversaries(lines: Sequence[charges.Line], derived: Certificate) -> Check:
    """Each adversary's epsilon, charged a second time: exactly where all sums are Gaussian or all
    releases pure, else as at most what the moments say."""
    rows = derived.content["adversaries"]
    trust = derived.content["guarantee"]["trust"]
    told = [0, 0, *charges.colluders(lines)] if trust == "distributed" else [0] * len(rows)
    if len(told) != len(rows):
        return Check("adversaries", False, "there are others than the certificate names")
    for colluding, row in zip(told, rows, strict=True):
        epsilon = math.inf if row["epsilon"] == "inf" else row["epsilon"]
        read = charges.charge(lines, colluding)
        moment = moments.epsilon(moments.compose(read.counts, read.replace_one), read.delta)
        exact = gaussian.epsilon(read.counts, read.delta)
        if exact is None:
            exact = pure.epsilon(read.counts, read.delta)
        slack = _RDP_SLACK * (1 + moment)
        central = trust == "central" and row["who"] == SERVER
        if central:
            sound = not row["promised"]
        elif exact is not None and math.isfinite(moment):
            sound = exact - slack <= epsilon <= max(moment, exact) + slack
        else:
            sound = epsilon <= moment + slack if math.isfinite(moment) else math.isinf(epsilon)
        if not sound:
            return Check("adversaries", False, f"{row['who']}: epsilon {epsilon:.4g} is not")
    promised = [row for row in rows if row["promised"]]
    worst = max(math.inf if row["epsilon"] == "inf" else row["epsilon"] for row in promised)
    return Check(
        "adversaries",
        worst <= derived.epsilon * (1 + _ROUNDING),
        f"{len(promised)} of {len(rows)} are promised epsilon {worst:.6g} at most",
    )


def _second_reading(claimed: Mapping[str, Any], read: Charges) -> Check:
    """Whom the guarantee is about."""
    same = (
        claimed["unit"] == read.unit
        and (claimed["neighbours"] == "replace-one") is read.replace_one
        and math.isclose(claimed["delta"], read.delta, rel_tol=_ROUNDING)
    )
    found = f"{'exchanging ' if read.replace_one else ''}one {read.unit}, delta {read.delta:g}"
    return Check("second reading", same, found if same else f"another guarantee: {found}")


def _opinion_on_pld(counts: Mapping[Charge, int], delta: float, pld: float) -> Iterator[Check]:
    """Of pure releases, and of Gaussian sums: alone they cost what is certified, beside other
    releases no more than that."""
    exact = pure.epsilon(counts, delta)
    if exact is not None:
        yield _compare("pure", pld, exact, "composed exactly", _RDP_SLACK * (1 + pld))
    sums = {charge: count for charge, count in counts.items() if charge.mechanism == "gaussian"}
    alone = len(sums) == len(counts)
    exact = gaussian.epsilon(sums, delta)
    if exact is not None:
        yield _compare("Gaussian", pld, exact, "exactly", _RDP_SLACK * (1 + pld), alone)
    elif sums and pld <= _PRV_LIMIT and all(one.sampling != "fixed-size" for one in sums):
        # As fine as a small epsilon needs.
        error = max(1e-3, min(_PRV_ERROR, pld / 20))
        yield _compare("PRV", pld, _prv(sums, delta, error), "by PRV", 3 * error, alone)


def _compare(
    name: str, pld: float, second: float, how: str, slack: float, alone: bool = True
) -> Check:
    return Check(
        f"second accountant ({name})",
        second <= pld + slack and (not alone or pld <= second + slack),
        f"PLD {pld:.6g} certified, {second:.6g} {how}"
        + ("" if alone else " for the Gaussian sums alone"),
    )


def _prv(counts: Mapping[Charge, int], delta: float, error: float) -> float:
    """The upper bound of a numerical composition of privacy random variables (Gopi, Lee and
    Wutschitz, 2021, Algorithm 2), by their own package."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    repetitions = list(counts.values())
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        # It first looks for a range by RDP, and warns where its orders end.
        warnings.simplefilter("ignore")
        accountant = PRVAccountant(
            prvs=[
                PoissonSubsampledGaussianMechanism(
                    sampling_probability=charge.rate, noise_multiplier=charge.noise
                )
                for charge in counts
            ],
            max_self_compositions=repetitions,
            eps_error=error,
            delta_error=delta / 1000,
        )
        _, _, upper = accountant.compute_epsilon(delta, repetitions)
    return float(upper)


def _within_budget(ledger: Ledger, derived: Certificate) -> Check:
    target = ledger.job.budget.epsilon
    return Check(
        "budget",
        derived.epsilon <= target * (1 + _ROUNDING),
        f"epsilon {derived.epsilon:.6g} of {target:g}",
    )


def require(folder: Path) -> tuple[Check, ...]:
    """As :func:`verify`, but raises ReleaseError naming every check that fails."""
    checks = verify(folder)
    failed = [f"{check.name}: {check.found}" for check in checks if not check.passed]
    if failed:
        raise ReleaseError(f"{folder} does not verify: " + "; ".join(failed))
    return checks
