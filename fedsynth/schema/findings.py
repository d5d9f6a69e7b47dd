"""What the owner of a table is to look at before its draft is agreed on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing about a column, in words; `kind` names it for programs.

    `cells` quotes private cells, as text, the commonest first: for the owner's eyes only.
    """

    column: str
    kind: str
    text: str
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        quoted = f": {', '.join(map(repr, self.cells))}" if self.cells else ""
        return f"{self.column}: {self.text}{quoted}"


def percent(share: float) -> str:
    """A share of cells, for a sentence."""
    return "under 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
