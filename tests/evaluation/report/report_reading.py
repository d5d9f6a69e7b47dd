"""A reader of pages: elements in order, with attributes, text and ancestors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "input", "br", "hr", "col", "link"}


@dataclass(eq=False)
class Element:
    """An element with the text and elements in it, and the element that it lies in."""

    tag: str
    attributes: dict[str, str | None]
    parent: Element | None
    content: list[Element | str] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        return [each for each in self.content if isinstance(each, Element)]

    @property
    def own(self) -> str:
        """Text that lies in no element within."""
        return "".join(each for each in self.content if isinstance(each, str))

    @property
    def text(self) -> str:
        return re.sub("[ \\n]+", " ", "".join(self._strings())).strip(" \n")

    def _strings(self) -> list[str]:
        found: list[str] = []
        for each in self.content:
            found += [each] if isinstance(each, str) else each._strings()
        return found

    def all(self, tag: str) -> list[Element]:
        """Descendants of that kind, in order."""
        return [each for each in self.everything()[1:] if each.tag == tag]

    def classed(self, name: str) -> list[Element]:
        return [e for e in self.everything() if name in (e.attributes.get("class") or "").split()]

    def everything(self) -> list[Element]:
        found = [self]
        for child in self.children:
            found += child.everything()
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {}, None)
        self.at = self.root
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> repeats an attribute: {names}")
        element = Element(tag, dict(attrs), self.at)
        self.at.content.append(element)
        if tag not in VOID:
            self.at = element

    def handle_endtag(self, tag: str) -> None:
        if self.at.tag != tag:
            self.faults.append(f"</{tag}> closes <{self.at.tag}>")
        if self.at.parent is not None:
            self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.content.append(data)


def read(page: str) -> Element:
    """The page's elements; an AssertionError where tags do not match."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert not reader.faults, reader.faults[:3]
    assert reader.at is reader.root, f"<{reader.at.tag}> is never closed"
    return reader.root
