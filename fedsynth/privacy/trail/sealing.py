"""Sealing a release: the last line of its ledger, its page, and its certificate last of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedsynth.durable import sync
from fedsynth.privacy.trail.certificate import LEDGER, Certificate, certify, sha256
from fedsynth.privacy.trail.job import Closing
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.page import write_page


def seal(
    folder: Path,
    ledger: Ledger,
    names: Iterable[str],
    incidents: tuple[Mapping[str, Any], ...] = (),
    *,
    edited: bool = False,
) -> Certificate:
    """Close a job's ledger over the files of its release, then certify them together, on a page
    for people, too.

    Args:
        names: of the files in the folder, without ledger and certificate.
        incidents, edited: see :class:`Closing`.
    """
    files = {}
    for name in sorted(names):
        sync(folder / name)
        files[name] = sha256(folder / name)
    today = datetime.now(UTC).date().isoformat()
    closed = ledger.close_at(folder / LEDGER, Closing(files, incidents, edited, today))
    certificate = certify(closed, {**files, LEDGER: sha256(folder / LEDGER)})
    # Before the certificate, without which there is no release: none is without its page.
    write_page(folder, certificate)
    certificate.save(folder)
    return certificate
