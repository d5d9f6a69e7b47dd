"""What stands in the documentation as code: read, and run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+) -->\n)?"
    r"^ *```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        kind: python, console, yaml; empty for a bare one.
        title: the file that it stands for; empty for none.
        why: it is not run; empty where it is.
    """

    kind: str
    title: str
    text: str
    why: str

    @property
    def commands(self) -> list[list[str]]:
        """Lines that call fedsynth: after a `$` in a console, at a line's start in a bare block."""
        start = {"console": "$ fedsynth ", "": "fedsynth "}.get(self.kind)
        lines = self.text.replace("\\\n", " ").splitlines() if start else []
        found = [line.removeprefix(start) for line in lines if line.startswith(start)]
        # `a & b &` are several; after two spaces and # a comment.
        parts = (
            part for line in found for part in re.split(r"\s+&\s*|\s+\|\s+", line.split("  #")[0])
        )
        return [
            shlex.split(part.removeprefix("fedsynth "), comments=True) for part in parts if part
        ]


def read_page(path: Path) -> list[Block]:
    found = _BLOCK.finditer(path.read_text("utf-8"))
    return [Block(*(one[name] or "" for name in ("kind", "title", "text", "why"))) for one in found]


def pages(*patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(ROOT.glob(pattern))
