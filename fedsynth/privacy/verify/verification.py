"""Verify a release without trusting the job that made it.

Files against their hashes, the ledger's chain and what it says of them
(:mod:`fedsynth.privacy.verify.binding`), every figure derived anew from the ledger, and the derived
ones against second accountants (:mod:`fedsynth.privacy.verify.opinions`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from fedsynth.demands import demand_kind, demand_path
from fedsynth.errors import FedsynthError, ReleaseError
from fedsynth.files import FIGURES, read_plain
from fedsynth.privacy.trail.certificate import (
    LEDGER,
    NAME,
    PAGE,
    Certificate,
    certify,
    sha256,
    version_of,
)
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.page import generator_of, page_of
from fedsynth.privacy.trail.signatures import NAME as SIGNATURES
from fedsynth.privacy.trail.signatures import Signature, read_keys, read_signatures
from fedsynth.privacy.verify.binding import binding, vouching
from fedsynth.privacy.verify.check import Check, Checks
from fedsynth.privacy.verify.opinions import ROUNDING, second_opinions

_MOST_SIGNED = 20
"""Signatures of which each may be the last that a page knows of; of more all, or none."""

NOT_VOID = "not void"
"""The check that a job without privacy fails, whose certificate says so."""


def verify(
    folder: str | Path, *, head: str | None = None, trust: str | Path | None = None
) -> Checks:
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
    folder = demand_path("folder (of a release)", folder)
    if head is not None:
        demand_kind("head", head, str, "a hash, as text")
    keys = None if trust is None else read_keys(demand_path("trust", trust))
    certificate = Certificate.load(folder)
    return Checks(_carefully(_checks(folder, certificate, head, keys)))


def _carefully(checks: Iterator[Check]) -> Iterator[Check]:
    """Up to one that fails for what its reader did not foresee in files that may be anybody's."""
    try:
        yield from checks
    except (FedsynthError, MemoryError, OSError):
        raise
    except Exception as error:
        found = f"its files hold what fedsynth never writes ({type(error).__name__})"
        yield Check("release", False, found)


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
    yield from binding(folder, ledger, certificate)
    yield from vouching(folder, ledger, head, keys)
    yield from _figures(certificate, derived)
    if (folder / PAGE).exists():
        yield Check(PAGE, *_same_page(folder))
    # What the certificate says equals what the ledger implies, or the check above has failed: from
    # here on the latter is held to account.
    yield from second_opinions(folder / LEDGER, derived)
    yield _within_budget(ledger, derived)
    yield Check(NOT_VOID, derived.void is None, derived.void or "noise was secret")


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
    known = {*listed, NAME, PAGE, SIGNATURES}
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    found = f"not certified: {', '.join(others)}" if others else "none"
    # Format 1 allowed them.
    yield Check("other files", not others or certificate.content["format"] == 1, found)


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


def _same_page(folder: Path) -> tuple[bool, str]:
    """Whether the page for people is the certificate's own."""
    try:
        page = read_plain(folder / PAGE, ReleaseError, FIGURES).decode(errors="replace")
    except ReleaseError as error:
        return False, str(error)
    signed: tuple[Signature, ...] = ()
    # Damaged ones fail a check of their own.
    with suppress(ReleaseError):
        signed = read_signatures(folder)
    # Some may have signed since it was written.
    several = len(signed) if len(signed) > _MOST_SIGNED else 1
    if any(page == page_of(folder, None, signed[:k]) for k in range(0, len(signed) + 1, several)):
        return True, "says what the certificate says"
    said = "says otherwise than the certificate"
    if generator_of(page) != version_of("fedsynth"):
        # It may be right, and anybody can write a version: what cannot be compared is not believed.
        said = f"cannot be compared: of {generator_of(page) or 'no'} fedsynth"
    return False, f"{said}: `fedsynth certificate` writes it anew"


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=ROUNDING)
    return ours == theirs


def _within_budget(ledger: Ledger, derived: Certificate) -> Check:
    target = ledger.job.budget.epsilon
    return Check(
        "budget",
        derived.epsilon <= target * (1 + ROUNDING),
        f"epsilon {derived.epsilon:.6g} of {target:g}",
    )


def require(folder: Path) -> Checks:
    """As :func:`verify`, but raises ReleaseError naming every check that fails."""
    checks = verify(folder)
    failed = [f"{check.name}: {check.found}" for check in checks if not check.passed]
    if failed:
        raise ReleaseError(f"{folder} does not verify: " + "; ".join(failed))
    return checks
