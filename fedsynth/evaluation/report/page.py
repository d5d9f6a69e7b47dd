"""The report as one HTML page that loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fedsynth.errors import ConfigError
from fedsynth.evaluation.report.layout import Content
from fedsynth.evaluation.report.markup import Html, join, tag
from fedsynth.evaluation.report.sections.closing import (
    certificate_section,
    footer,
    notes_section,
    reading_section,
)
from fedsynth.evaluation.report.sections.fidelity import fidelity_section
from fedsynth.evaluation.report.sections.images import clients_section, images_section
from fedsynth.evaluation.report.sections.privacy import privacy_section
from fedsynth.evaluation.report.sections.summary import first_screen
from fedsynth.evaluation.report.sections.utility import utility_section

FORMAT = 1

_CONTENTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("summary", "Summary", {}),
    ("images", "Images", {"student": "Student network", "classes": "Classes"}),
    (
        "fidelity",
        "Fidelity",
        {
            "columns": "Columns",
            "pairs": "Pairs",
            "marginals": "Marginals",
            "detection": "Detection",
            "quality": "SDMetrics",
        },
    ),
    ("utility", "Utility", {"models": "Models", "agreement": "Agreement", "curves": "ROC curves"}),
    (
        "privacy",
        "Privacy",
        {
            "membership": "Membership",
            "risks": "Singling out",
            "attributes": "Attributes",
            "neighbours": "Neighbours",
            "anonymity": "k-anonymity",
        },
    ),
    ("clients", "Clients", {}),
    ("certificate", "Certificate", {}),
    ("notes", "Notes", {}),
    ("reading", "How to read this", {}),
)
"""Addresses of sections in their order, with those of their parts; not every report has all."""

_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


def page(content: dict[str, Any]) -> str:
    """The report's page: self-contained, readable without scripts, in print and by keyboard.

    Args:
        content: the report as JSON has it; parts that are null or missing are said to be absent.

    Raises:
        ConfigError: content of another format, a figure that JSON has no word for (NaN must be
            null), a value that is no JSON, or a picture that is not embedded.
    """
    check(content)
    light, dark, script = (_asset(name) for name in ("page.css", "dark.css", "page.js"))
    head = tag("head", *_head(content, light, dark, script))
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    toggle = tag(
        "button", "Dark theme", type="button", id="theme", aria_pressed="false", hidden=True
    )
    bar = tag("header", tag("span", "fedsynth", class_="brand"), toggle, class_="bar")
    sections = join(_sections(content))
    main = tag("main", sections, id="main", tabindex="-1")
    layout = tag("div", _contents(sections), main, class_="layout")
    body = tag("body", skip, bar, layout, footer(content))
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


def check(content: object) -> None:
    """Refuse what is no report.

    Raises:
        ConfigError: as :func:`page`.
    """
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, Mapping) else type(content).__name__
        raise ConfigError(
            f"the report's content has format {found!r}; this fedsynth reads format {FORMAT}"
        )
    _check_json(content, "report")
    grid = (content.get("images") or {}).get("grid") or {}
    for key, picture in grid.items():
        if picture is not None and not _PICTURE.fullmatch(str(picture)):
            raise ConfigError(
                f"report.images.grid.{key} is no embedded picture; give a data:image/png;base64 URL"
            )


def _check_json(value: object, where: str) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"{where} is {value}, which JSON cannot hold; put null in its place")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _check_json(each, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            if type(each) is not float or not math.isfinite(each):
                _check_json(each, f"{where}[{index}]")
    else:
        raise ConfigError(f"{where} is a {type(value).__name__}, which JSON cannot hold")


def _asset(name: str) -> Html:
    return Html(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _head(content: Content, light: Html, dark: Html, script: Html) -> list[Html]:
    """The policy allows the two style sheets and the script below and embedded pictures alone."""
    styles = " ".join(_digest(each) for each in (light, dark))
    policy = (
        f"default-src 'none'; style-src {styles}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{content.get('title') or 'Untitled'}: evaluation of synthetic data"),
        tag("style", light),
        tag("style", dark, id="dark", media="screen and (prefers-color-scheme: dark)"),
        tag("script", script),
    ]


def _digest(source: str) -> str:
    hashed = hashlib.sha256(source.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(hashed).decode('ascii')}'"


def _contents(sections: Html) -> Html:
    """Links to those sections and parts that the page has."""
    there = set(re.findall(r'<(?:section|h3) id="([a-z-]+)"', sections))
    entries = []
    for key, title, parts in _CONTENTS:
        within = [_link(each, words) for each, words in parts.items() if each in there]
        if key in there:
            entries.append(tag("li", _link(key, title), _list(within) if within else None))
    return tag("nav", tag("ul", *entries), aria_label="Contents", class_="contents")


def _link(key: str, title: str) -> Html:
    return tag("a", title, href=f"#{key}")


def _list(links: list[Html]) -> Html:
    return tag("ul", *(tag("li", link) for link in links))


def _sections(content: Content) -> list[Html]:
    sections = [
        first_screen(content),
        images_section(content),
        fidelity_section(content),
        utility_section(content),
        privacy_section(content),
        clients_section(content),
        certificate_section(content),
        notes_section(content),
        reading_section(),
    ]
    return [join([each, "\n"]) for each in sections if each is not None]
