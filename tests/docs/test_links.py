"""README and docs: short where people begin, and no link of theirs leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    ROOT / "evaluation/README.md",
]


def _anchors(page):
    """Of its headings, as they are made from them where Markdown is shown."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = [re.sub(r"[^\w\- ]", "", head.lower()) for head in re.findall("^#+ (.*)", text, re.M)]
    return {head.strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_within_the_project_leads_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        there = page if not path else (page.parent / path).resolve()
        assert there.exists(), link
        assert not anchor or anchor in _anchors(there), link


def test_the_readme_is_short_and_names_every_page():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") < 150
    told = set(re.findall(r"\]\((docs/[\w-]+\.md)", text))
    assert told == {page.relative_to(ROOT).as_posix() for page in ROOT.glob("docs/*.md")}
