"""A job's folder has one life: a copy of it is not resumed beside it.

Both would ask the rounds after the copy, each within its own budget, and neither ledger would know
of the other. A copy is another file, so the job remembers the number of its ledger's file (inode),
which a folder keeps wherever it is moved on its disk. Snapshots of whole disks keep it too: of
them this knows nothing, and owners' own ledgers do.
"""

from __future__ import annotations

from pathlib import Path

from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import PrivacyError
from fedsynth.holding import CHECKPOINT
from fedsynth.privacy.trail.certificate import LEDGER
from fedsynth.privacy.trail.ledger import Ledger

_ORIGIN = "origin"


def remember(folder: Path) -> None:
    """Write down, on disk, which file the ledger is."""
    path = folder / CHECKPOINT / _ORIGIN
    make_folder(path.parent, private=True)
    write_whole(path, f"{(folder / LEDGER).stat().st_ino}\n".encode())


def demand_original(folder: Path, ledger: Ledger) -> None:
    """Raises PrivacyError where the folder is not that in which its job began, for all it says."""
    path = folder / CHECKPOINT / _ORIGIN
    if path.exists():
        original = path.read_text(encoding="utf-8").strip() == str((folder / LEDGER).stat().st_ino)
    else:
        # A crash may have come between the ledger's first line and this: nothing was asked yet.
        original = not ledger.events
    if original:
        return
    raise PrivacyError(
        f"{folder} is a copy of the folder that its job began in, or was moved from another disk "
        "or restored from a backup. If the folder that it came from is still there, resume that "
        "one: resumed twice, a job costs more than its certificates say. If it is gone for "
        "good, say so by `--moved` (in Python, moved=True)"
    )
