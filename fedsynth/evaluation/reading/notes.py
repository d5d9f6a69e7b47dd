"""What a reader of figures must know: rows left out, samples drawn, what was impossible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Part = Literal[
    "data",
    "fidelity",
    "marginals",
    "pairs",
    "coherence",
    "detection",
    "quality",
    "utility",
    "agreement",
    "student",
    "privacy",
    "membership",
    "risks",
    "attributes",
]
"""Keys of the report's parts that notes are about."""


class Note(str):
    """A sentence, as `Utility: tested on 20,000 of 20,500 real rows.`, that knows its part.

    Attributes:
        part: the key of the part of the report that it is about; it says why that part is missing,
            where it is.
        text: the sentence without its topic.
    """

    __slots__ = ("part", "text")

    part: Part
    text: str

    def __new__(cls, part: Part, topic: str, text: str) -> Note:
        note = super().__new__(cls, f"{topic}: {text}" if topic else text)
        note.part, note.text = part, text
        return note

    def __deepcopy__(self, memo: object) -> Note:
        return self


def texts_by_part(notes: Iterable[Note]) -> dict[str, list[str]]:
    """Of each part that notes are about, their texts in order."""
    texts: dict[str, list[str]] = {}
    for note in notes:
        texts.setdefault(note.part, []).append(note.text)
    return texts
