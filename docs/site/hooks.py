"""What `mkdocs` needs beside mkdocs.yml: pages that stand elsewhere, or are made of the product."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext
from product import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "evaluation/README.md": "studies.md",
}
"""Pages of the project that stand outside `docs`, by their paths there."""

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_NOTEBOOK_LINK = re.compile(r'href="([^":]+)\.md(?=["#])')
_WARNED = re.compile('<div [^>]*data-mime-type="application/vnd.jupyter.stderr"')
_ROLE = re.compile(r":\w+:(<code>)[.~]?")
_LOADS = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*\bhref=["']?(?:https?:)?//""",
    re.IGNORECASE,
)
_STYLE_LOADS = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//""", re.IGNORECASE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages that stand elsewhere, pages that are made, and files that pages link to."""
    for source, place in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text("utf-8")))
    for place, make in REFERENCE.items():
        files.append(_made(config, place, make))
    sources = [
        *ELSEWHERE,
        *(f"docs/{file.src_uri}" for file in files if file.inclusion.is_included()),
    ]
    for source in dict.fromkeys(sources):
        path = ROOT / source
        if path.suffix == ".md" and path.is_file():
            for _, link, _ in _LINK.findall(_FENCE.sub("", path.read_text("utf-8"))):
                there = _project_path(source, link)
                if there is not None and _site_path(there) == f"files/{there}":
                    _add(files, config, there)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are in the project, turned into those of the site."""
    place = page.file.src_uri
    source = next((one for one, there in ELSEWHERE.items() if there == place), f"docs/{place}")

    def replace(link: re.Match[str]) -> str:
        there = _project_path(source, link[2])
        if there is None:
            return link[0]
        _, mark, anchor = link[2].partition("#")
        target = posixpath.relpath(_site_path(there), posixpath.dirname(place) or ".")
        return f"{link[1]}{target}{mark}{anchor}{link[3]}"

    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(replace, part) for part in parts)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Docstrings name what they speak of by roles; notebooks link as the project does; an empty
    corner of a table is no heading of anything."""
    if page.file.src_uri.endswith(".ipynb"):
        if _WARNED.search(html):
            raise PluginError(f"{page.file.src_uri}: a cell wrote to stderr")
        for link in _NOTEBOOK_LINK.findall(html):
            there = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link))
            if files.get_file_from_path(f"{there}.md") is None:
                raise PluginError(f"{page.file.src_uri}: {link}.md: there is no such page")
        # Code that is wider than its box is scrolled by keys, too.
        html = html.replace(
            '<div class="highlight-ipynb', '<div tabindex="0" class="highlight-ipynb'
        )
        html = _NOTEBOOK_LINK.sub(r'href="\1.html', html)
    return _ROLE.sub(r"\1", html).replace("<th></th>", "<td></td>")


def on_page_context(
    context: TemplateContext, page: Page, config: MkDocsConfig, nav: Navigation
) -> TemplateContext:
    """No bar at a side that would be empty: the text, and its code, are the wider for it."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    elif page.file.src_uri.endswith(".ipynb"):
        page.meta["hide"] = ["toc"]
    return context


def on_post_build(config: MkDocsConfig) -> None:
    """Raises PluginError where a page or a style sheet loads something from a network."""
    for path in Path(config.site_dir).rglob("*"):
        pattern = {".html": _LOADS, ".css": _STYLE_LOADS}.get(path.suffix)
        if pattern and (found := pattern.search(path.read_text("utf-8"))):
            raise PluginError(f"{path}: loads from a network: {found[0]}")


def _made(config: MkDocsConfig, place: str, make: Callable[[], str]) -> File:
    return File.generated(config, place, content=make())


def _add(files: Files, config: MkDocsConfig, path: str) -> None:
    if not (ROOT / path).is_file():
        raise PluginError(f"{path}: there is no such file, and a page links to it")
    if files.get_file_from_path(f"files/{path}") is None:
        files.append(File.generated(config, f"files/{path}", abs_src_path=str(ROOT / path)))


def _project_path(source: str, link: str) -> str | None:
    """Where a link of `source` leads within the project; None for one that leads out of it."""
    path = link.partition("#")[0]
    if not path or re.match(r"\w+:", path):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _site_path(path: str) -> str:
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"
