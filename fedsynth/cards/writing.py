"""Writing a card: both of its files."""

from __future__ import annotations

import json
from pathlib import Path

from fedsynth.cards.annex import REPORT, read_report, write_annex
from fedsynth.cards.croissant import describe
from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import ConfigError
from fedsynth.files import writing
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.verify.verification import require

METADATA, ANNEX = "croissant.json", "annex.md"


def write_card(release: Path, out: Path, report: Path | None = None) -> tuple[Path, Path]:
    """Write `croissant.json` and `annex.md` of a release.

    Args:
        out: made if need be. Not the release's own folder, which holds what is certified.
        report: a folder of `fedsynth evaluate`; None for the release's own, if it has one. With
            figures of private rows the annex is for this user alone.

    Returns:
        The paths of the two.

    Raises:
        ConfigError: `out` is the release, or `report` is none of it.
        ReleaseError: the folder holds no release, or one that does not verify.
        MachineError: the folder cannot be written to.
    """
    if out.resolve() == release.resolve():
        raise ConfigError(f"{out} is the release, which takes no more files: choose another folder")
    require(release)
    certificate = Certificate.load(release)
    if report is None and REPORT in certificate.content["files"]:
        report = release
    found = None if report is None else read_report(report, certificate)
    metadata = json.dumps(describe(release), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    private = found is not None and not found["disclosure"]["public"]
    annex = write_annex(release, found)
    with writing(out):
        make_folder(out)
        write_whole(out / METADATA, metadata.encode())
        write_whole(out / ANNEX, annex.encode(), private=private)
    return out / METADATA, out / ANNEX
