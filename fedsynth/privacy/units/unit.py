"""A unit: what differential privacy hides, in which neighbouring data sets differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit of privacy.

    Attributes:
        name: in terms and budgets, and so in ledgers and certificates.
        words: what one is, for the certificate.
        per_record: each of a client's rows is one record's, and units are drawn at their client, in
            secret. Else a client gives one row, and the server draws clients and knows whom.
        joined: a unit is all of a client's records that have one person; the client adds their rows
            up before they are clipped. Else, where rows are records', each record is a unit.
        moved: how far one unit moves a sum, in clips, by the name of the unit whose rows it adds
            up. Of a unit that is not named any number may be moved: a job must refuse such a sum.
        delta: the default where the number of units is not public.
        parallel: words where each client's message is collected alone; may be empty.
        few: what to know of a guarantee over fewer than 100 of them; may be empty.
        several: whom it protects less, and by how much: a title and a sentence.
    """

    name: str
    words: str
    per_record: bool
    moved: Mapping[str, float]
    joined: bool = False
    delta: float = 1e-5
    parallel: str = ""
    few: str = ""
    several: tuple[str, str] = ("", "")

    def rows(self, records: int) -> int:
        """How many rows a client may give, of whom so many records take part."""
        return records if self.per_record else 1

    @property
    def neighbours(self) -> str:
        """The neighbouring relation, by its name in certificates.

        Who takes part in a federation is public, so of a client what it contributes is hidden.
        """
        return "add-or-remove-one" if self.per_record else "zero-out-one"
