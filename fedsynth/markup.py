"""HTML and SVG elements that escape whatever is not markup already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_UNFITTING = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_UNFIT = re.compile(f"[{_UNFITTING}]")
"""Control characters and lone surrogates: no HTML document may hold them."""

_NOT_PLAIN = re.compile(f"[&<>\"'{_UNFITTING}]")

_COMMAND = re.compile(r"(?<![`\w])`([^`\s][^`]*)`(?![`\w])")
"""Of a sentence; other backticks are somebody's, and stay."""

_VOID = frozenset({"meta", "img", "input", "br", "hr", "col"})


class Html(str):
    """Text that is markup already; every other string is escaped by :func:`tag`."""

    __slots__ = ()


def text(value: object) -> Html:
    """Any value as escaped text; characters that HTML cannot hold become U+FFFD."""
    if isinstance(value, Html):
        return value
    words = str(value)
    if _NOT_PLAIN.search(words):
        words = html.escape(_UNFIT.sub("\ufffd", words), quote=True)
    return Html(words)


def join(parts: Iterable[object], between: str = "") -> Html:
    """Parts one after another; those that are None are left out."""
    return Html(text(between).join(text(part) for part in parts if part is not None))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element.

    Args:
        children: text is escaped, :class:`Html` is not, None is left out.
        attributes: `class_` stands for `class` and `aria_label` for `aria-label`; None and False
            leave an attribute out, True gives it no value.
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{shown}>")
    return Html(f"<{name}{shown}>{join(children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    key = key.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{text(value)}"'


def name(value: object, limit: int | None = None) -> Html:
    """A column's or class's name: kept apart from the text around it, whatever its direction.

    limit: characters shown; the whole name is then the tooltip.
    """
    whole = str(value)
    if limit is None or len(whole) <= limit:
        return tag("bdi", whole)
    return tag("bdi", short(whole, limit), title=whole)


def sentence(words: object) -> Html:
    """A text with what stands between backticks as commands are written."""
    if isinstance(words, Html):
        return words
    parts = _COMMAND.split(str(words))
    return join(tag("code", part) if k % 2 else part for k, part in enumerate(parts))


def apart(value: object, limit: int = 60) -> str:
    """A name for use inside other plain text (an attribute), isolated as <bdi> isolates it."""
    return f"\u2068{short(str(value), limit)}\u2069"


def short(value: object, limit: int) -> str:
    """At most `limit` characters, the last an ellipsis where some were cut."""
    value = str(value)
    return value if len(value) <= limit else value[: limit - 1].rstrip() + "…"
