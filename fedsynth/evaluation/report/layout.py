"""Sections, tables and what stands where a part of the report is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedsynth.evaluation.report.markup import Html, join, tag
from fedsynth.evaluation.report.wording import capital, interval, known, score, sentence

Content = Mapping[str, Any]


def section(key: str, title: object, *children: object) -> Html:
    """A part of the report under a heading of the second level; key is its address."""
    head = tag("h2", title, id=f"{key}-title")
    return tag("section", head, *children, id=key, aria_labelledby=f"{key}-title")


def part(key: str, title: object, *children: object) -> Html:
    """A part of a section, under a heading of the third level."""
    return tag("div", tag("h3", title, id=key), *children, class_="part")


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
    class_: str | None = None,
) -> Html:
    """A table in a frame that scrolls; the first cell of each row is its heading.

    texts: places of the columns that hold text or charts; the others hold figures.
    """
    kinds = ["text" if place == 0 or place in texts else "num" for place in range(len(head))]
    top = [tag("th", title, scope="col", class_=kinds[i]) for i, title in enumerate(head)]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_="text"),
            *(tag("td", cell, class_=kinds[i]) for i, cell in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    inner = [tag("caption", caption, class_="unseen"), tag("thead", tag("tr", *top))]
    return region(caption, tag("table", *inner, tag("tbody", *body), class_=class_))


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
    head, _, rest = why.partition(": ")
    if rest and head.lower() == title.lower():
        why = capital(rest)
    return tag("p", lead, " ", why, class_="absent")


_WORDS = {
    "fidelity": ("fidelity", "marginal", "column"),
    "columns": ("per column", "column scores"),
    "pairs": ("pair",),
    "marginals": ("marginal", "triple"),
    "detection": ("detect", "two-sample", "propensity", "pmse"),
    "quality": ("sdmetrics", "quality"),
    "diagnostic": ("sdmetrics", "diagnostic"),
    "utility": ("utility", "target", "classifier"),
    "curves": ("roc", "curve"),
    "agreement": ("agreement", "rank", "settings"),
    "membership": ("membership", "shadow", "domias", "lira"),
    "risks": ("singling", "linkab", "anonymeter"),
    "attributes": ("attribute",),
    "neighbours": ("neighbour", "copies", "distance"),
    "anonymity": ("anonym", "quasi", "pycanon"),
    "images": ("image", "student"),
    "clients": ("client", "owner"),
}
"""What a note that explains a missing part is likely to say."""


def reason(content: Content, key: str) -> str:
    """Why a part is missing: what the data make plain, else the notes that speak of it."""
    plain = _plain_reason(content, key)
    privacy = content.get("privacy") or {}
    notes = [*(privacy.get("skipped") or []), *(content.get("notes") or [])]
    told = [note for note in notes if any(word in str(note).lower() for word in _WORDS[key])]
    if told:
        return " ".join(sentence(note) for note in told)
    if not plain and key in _ATTACKS and privacy.get("skipped"):
        return "See “Attacks that were not run” below."
    return plain or "The run recorded no reason for it."


_ATTACKS = frozenset({"membership", "risks", "attributes"})


def _plain_reason(content: Content, key: str) -> str | None:
    data = content.get("data") or {}
    if key == "images" and data.get("kind") == "table":
        return "The data are a table."
    if key in {"fidelity", "columns", "pairs", "marginals"} and data.get("kind") == "image":
        return "The data are images, which have no columns to compare one by one."
    if key == "utility" and data.get("kind") == "image" and content.get("images"):
        return "What a network learns from the images stands under “Images”."
    if key == "utility" and not data.get("target"):
        return "No target was named, so there is nothing to predict."
    if key == "curves" and (data.get("task") == "regression" or data.get("kind") == "image"):
        return "A ROC curve needs a target of two classes."
    if key in {"risks", "attributes"} and data.get("kind") == "image":
        return "The attack is one on tables, and the data are images."
    if key in {*_ATTACKS, "neighbours"} and (data.get("rows") or {}).get("train") is None:
        return "It needs the rows that the generator learned from, and they were not given."
    if key == "anonymity":
        return "No quasi-identifiers were named."
    if key == "clients":
        return "The rows were not scored at the clients."
    return None


def others(content: Content) -> str:
    """The rows that stand in place of the synthetic ones: what `real` figures are of."""
    rows = (content.get("data") or {}).get("rows") or {}
    return "other real rows" if rows.get("train") is None else "real training rows"


def is_void(certificate: Content) -> bool:
    """Whether nothing is guaranteed, whatever epsilon was reckoned: the sentence says so."""
    return str(certificate.get("sentence") or "").startswith("Void")


def several(entries: Iterable[object]) -> Html:
    """Parts in a grid that fills the width it has."""
    return tag("div", join(entries), class_="several")
