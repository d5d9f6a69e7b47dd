"""What is expected of a plan's answers before anything is asked, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class ExpectedError:
    """How far off a released table is expected to be.

    Attributes:
        what: tables, in words.
        error: mean magnitude of the noise in a cell of theirs, in what a unit adds to a cell: a
            record 1; a client 1 in all, however many rows it has.
        cells: of such a table, as large as the plan takes it to be.
        least, most: what it may be, where it hangs on what is released first; both None where it
            does not.
    """

    what: str
    error: float
    cells: float
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Expected:
    """What a method states of its plan.

    Attributes:
        sizes: numbers in one answer, by the label of the release; those that hang on what is
            released first are of the size that the plan takes codes to have.
        arrays: bytes of what one request holds beside its terms, by label; those that hang on what
            is released first, of the size that the plan takes codes to have.
        announced: bytes of what everybody is sent once, beside the schema and the plan.
        errors: of tables; empty where a method releases none.
        notes: what the figures take for granted, or leave out, in sentences.
    """

    sizes: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, float] = field(default_factory=dict)
    announced: float = 0.0
    errors: tuple[ExpectedError, ...] = ()
    notes: tuple[str, ...] = ()

    def beside(self, label: str, size: float) -> Expected:
        """The same, with a question more of so many numbers, whose requests hold no arrays."""
        sizes, arrays = {**self.sizes, label: size}, {**self.arrays, label: 0.0}
        return replace(self, sizes=sizes, arrays=arrays)
