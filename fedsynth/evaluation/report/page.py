"""The report as one HTML page that loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from fedsynth.evaluation.report.content import Content, check
from fedsynth.evaluation.report.layout import Section
from fedsynth.evaluation.report.sections.clients import clients_section
from fedsynth.evaluation.report.sections.closing import (
    certificate_section,
    footer,
    notes_section,
    reading_section,
)
from fedsynth.evaluation.report.sections.errors import errors_section
from fedsynth.evaluation.report.sections.fidelity import fidelity_section
from fedsynth.evaluation.report.sections.images import images_section
from fedsynth.evaluation.report.sections.privacy import privacy_section
from fedsynth.evaluation.report.sections.summary import first_screen
from fedsynth.evaluation.report.sections.utility import utility_section
from fedsynth.evaluation.report.sections.yardsticks import yardsticks_section
from fedsynth.markup import Html, join, tag


def page(content: dict[str, Any]) -> str:
    """The report's page: self-contained, readable without scripts, in print and by keyboard.

    Args:
        content: the report as JSON has it; parts that are null or missing are said to be absent.

    Raises:
        ConfigError: as :func:`~fedsynth.evaluation.report.content.check`.
    """
    check(content)
    light, dark, script = (_asset(name) for name in ("page.css", "dark.css", "page.js"))
    head = tag("head", *_head(content, light, dark, script))
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    toggle = tag(
        "button", "Dark theme", type="button", id="theme", aria_pressed="false", hidden=True
    )
    bar = tag("header", tag("span", "fedsynth", class_="brand"), toggle, class_="bar")
    sections = _sections(content)
    main = tag("main", *_lines(sections), id="main", tabindex="-1")
    layout = tag("div", _contents(sections), main, class_="layout")
    body = tag("body", skip, bar, layout, footer(content))
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


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


def _contents(sections: Sequence[Section]) -> Html:
    """Links to the sections and to those of their parts that have a name there."""
    entries = []
    for section in sections:
        parts = [tag("li", _link(part.key, part.link)) for part in section.parts if part.link]
        nested = tag("ul", *parts) if parts else None
        entries.append(tag("li", _link(section.key, section.link), nested))
    return tag("nav", tag("ul", *entries), aria_label="Contents", class_="contents")


def _link(key: str, title: str) -> Html:
    return tag("a", title, href=f"#{key}")


def _sections(content: Content) -> list[Section]:
    sections = [
        first_screen(content),
        errors_section(content),
        images_section(content),
        fidelity_section(content),
        utility_section(content),
        yardsticks_section(content),
        privacy_section(content),
        clients_section(content),
        certificate_section(content),
        notes_section(content),
        reading_section(),
    ]
    return [section for section in sections if section is not None]


def _lines(sections: Sequence[Section]) -> list[Html]:
    return [join([section.body, "\n"]) for section in sections]
