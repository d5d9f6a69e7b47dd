"""Writing the report: the page and the figures it was made from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from fedsynth.evaluation.report.page import page
from fedsynth.files import writing

PAGE = "report.html"
FIGURES = "report.json"


def save(content: dict[str, Any], folder: str | Path) -> tuple[Path, Path]:
    """Write `report.html` and `report.json` into a folder, which is made if need be.

    Each is written whole or not at all, and replaces one of an earlier run.

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
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in ((FIGURES, figures), (PAGE, shown)):
            _write(folder / name, body)
    return folder / PAGE, folder / FIGURES


def _write(path: Path, body: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
