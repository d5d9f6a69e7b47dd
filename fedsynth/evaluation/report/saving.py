"""Writing the report: the page and the figures it was made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedsynth.durable import make_folder, write_whole
from fedsynth.evaluation.report.page import page
from fedsynth.files import writing

PAGE = "report.html"
FIGURES = "report.json"


def save(content: dict[str, Any], folder: str | Path, *, private: bool = True) -> tuple[Path, Path]:
    """Write `report.html` and `report.json` into a folder, which is made if need be.

    Each is written whole or not at all, and replaces one of an earlier run.

    Args:
        private: it tells of private rows: a folder that is made, and both files, are for this user
            alone.

    Returns:
        The paths of the page and of the figures.

    Raises:
        ConfigError: content that :func:`~fedsynth.evaluation.report.page.page` refuses.
        MachineError: a folder that cannot be written to; nothing was changed then.
    """
    folder = Path(folder)
    shown = page(content)
    figures = json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"
    with writing(folder):
        make_folder(folder, private=private)
        for name, body in ((FIGURES, figures), (PAGE, shown)):
            write_whole(folder / name, body.encode(), private=private)
    return folder / PAGE, folder / FIGURES
