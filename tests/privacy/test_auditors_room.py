"""The auditor's room stays small, and whole: nothing in it rests on what it does not name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES = 1_000

SECTION = (ROOT / "docs/guarantee.md").read_text().split("## The auditor's room\n")[1]
TABLES = re.split(r"\nBeside it ", SECTION.split("\n## ")[0])
ROOM, BESIDE = (re.findall(r"^\| `([^`]+\.py)`", table, re.M) for table in TABLES)


def test_what_an_auditor_must_read_is_at_most_a_thousand_lines():
    lines = {name: len((ROOT / name).read_text().splitlines()) for name in ROOM}
    assert len(ROOM) >= 9 and sum(lines.values()) <= MOST_LINES, lines


def test_how_much_stands_beside_the_room_is_told():
    lines = sum(len((ROOT / name).read_text().splitlines()) for name in BESIDE)
    told = re.search(r"the room names, ([\d,]+) lines more", SECTION)
    assert told is not None and abs(lines - int(told[1].replace(",", ""))) < 100


def imported(path: Path) -> set[str]:
    """Files of fedsynth that a module imports, as paths from the root."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fedsynth"):
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for module in modules:
            place = ROOT / module.replace(".", "/")
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.exists():
                    found.add(str(file.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("name", [name for name in ROOM if "/privacy/" in name])
def test_the_room_rests_on_nothing_that_it_does_not_name(name: str):
    # Packages that only hold modules say nothing.
    empty = {"fedsynth/privacy/__init__.py", "fedsynth/privacy/rows/__init__.py"}
    known = {*ROOM, *BESIDE, *empty, "fedsynth/privacy/trail/__init__.py", "fedsynth/errors.py"}
    assert imported(ROOT / name) <= known


def test_stable_noise_fixed_size_samples_and_second_accountants_are_no_part_of_it():
    for word in ("stable", "fixed_size", "verify", "laplace"):
        assert not [name for name in (*ROOM, *BESIDE) if word in name]
