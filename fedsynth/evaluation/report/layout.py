"""Sections, tables and what stands where a part of the report is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedsynth.evaluation.report.wording import capital, interval, known, score
from fedsynth.markup import Html, join, tag


@dataclass(frozen=True)
class Part:
    """A part of a section. link: how the table of contents names it; None leaves it out."""

    key: str
    link: str | None
    body: Html


@dataclass(frozen=True)
class Section:
    """A section of the report with those of its parts that it has."""

    key: str
    link: str
    body: Html
    parts: tuple[Part, ...] = ()


def section(key: str, link: str, title: object, *children: Part | Html | None) -> Section:
    """A part of the report under a heading of the second level; key is its address."""
    head = tag("h2", title, id=f"{key}-title")
    parts = tuple(child for child in children if isinstance(child, Part))
    bodies = [child.body if isinstance(child, Part) else child for child in children]
    body = tag("section", head, *bodies, id=key, aria_labelledby=f"{key}-title")
    return Section(key, link, body, parts)


def part(key: str, title: object, *children: object, link: str | None = None) -> Part:
    """A part of a section, under a heading of the third level; key is its address."""
    return Part(key, link, tag("div", tag("h3", title, id=key), *children, class_="part"))


def lede(*children: object) -> Html:
    """What a section answers and how to read it, in a sentence or two."""
    return tag("p", *children, class_="lede")


def bullets(entries: Iterable[object], class_: str | None = None) -> Html | None:
    """A list; None where there is nothing in it."""
    items = [tag("li", entry) for entry in entries]
    return tag("ul", *items, class_=class_) if items else None


def figure(chart: Html, caption: object = None, class_: str | None = None) -> Html:
    """A chart with what it shows."""
    said = None if caption is None else tag("figcaption", caption)
    return tag("figure", chart, said, class_=class_)


def region(label: str, child: Html) -> Html:
    """A frame that scrolls sideways, by keyboard too, where its child is wider than the page."""
    return tag("div", child, class_="scroll", role="region", aria_label=label, tabindex="0")


def table(
    caption: str,
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    texts: Sequence[int] = (),
    below: Sequence[object | None] | None = None,
    class_: str | None = None,
) -> Html:
    """A table that fits a desk, and on a phone becomes a list of cards, a row each.

    Args:
        head: titles; one that is markup, as the axis of a column of charts, is no heading.
        rows: the first cell of each is its heading.
        texts: places of the columns that hold text or charts; the others hold figures.
        below: a sentence for each row, which stands under it across the whole table; or None.
    """
    kinds = ["text" if place == 0 or place in texts else "num" for place in range(len(head))]
    top = [
        tag("td", title, class_=kinds[i])
        if isinstance(title, Html)
        else tag("th", title, scope="col", class_=kinds[i])
        for i, title in enumerate(head)
    ]
    lines = [_line(row, head, kinds) for row in rows]
    if below is None:
        bodies = [tag("tbody", *lines)]
    else:
        wide = str(len(head))
        under = (
            said and tag("tr", tag("td", tag("p", said), colspan=wide), class_="said")
            for said in below
        )
        bodies = [tag("tbody", line, said) for line, said in zip(lines, under, strict=True)]
    inner = [tag("caption", caption, class_="unseen"), tag("thead", tag("tr", *top))]
    classes = f"{class_} cards" if class_ else "cards"
    return region(caption, tag("table", *inner, *bodies, class_=classes))


def _line(row: Sequence[object], head: Sequence[object], kinds: Sequence[str]) -> Html:
    labels = [None if isinstance(title, Html) else title for title in head]
    cells = [
        tag("td", cell, class_=kinds[i], data_head=labels[i]) for i, cell in enumerate(row[1:], 1)
    ]
    return tag("tr", tag("th", row[0], scope="row", class_="text"), *cells)


def pairs_of(entries: Iterable[tuple[object, object]]) -> Html:
    """Names with their figures, as a list of definitions."""
    cells = (tag("div", tag("dt", key), tag("dd", value)) for key, value in entries)
    return tag("dl", *cells, class_="facts")


def within(value: object, low: object, high: object, digits: int = 3) -> Html:
    """A figure over its interval."""
    ends = tag("span", interval(low, high, digits), class_="line-of quiet") if known(low) else None
    return join([score(value, digits), ends])


def absent(title: str, why: str) -> Html:
    """Says that a part is not in the report, and why."""
    lead = tag("strong", f"{title}: not in this report.")
    return tag("p", lead, " ", capital(why), class_="absent")


def several(entries: Iterable[object]) -> Html:
    """Parts in a grid that fills the width it has."""
    return tag("div", join(entries), class_="several")
