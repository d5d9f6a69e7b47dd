"""What a schema says of persons, made sure of: whose a row is, and what all rows of one share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.agreed import suggestion
from fedsynth.schema.columns import Identifier
from fedsynth.schema.constraints import Equal, Sum
from fedsynth.schema.determining import Determines

if TYPE_CHECKING:
    from fedsynth.schema.table import Schema


def demand_person(schema: Schema) -> None:
    """Raises ValueError for a person that is no identifier, and columns that cannot be of one."""
    of = [column for column in schema.columns if column.of is not None]
    if schema.person is None:
        if of:
            raise ValueError(
                f"{of[0].name!r} is `of: person`, and nothing says whose a row is: name the "
                "identifier that does as the `person`, or take `of` out"
            )
        return
    names = [column.name for column in schema.columns]
    if schema.person not in names:
        raise ValueError(
            f"`person` {schema.person!r} is no column{suggestion(schema.person, names)}"
        )
    if not isinstance(column := schema.column(schema.person), Identifier):
        raise ValueError(
            f"`person` {schema.person!r} is of kind {column.kind}, which is learned: whose a row "
            f"is never is, so make it an identifier"
        )
    for column in of:
        if isinstance(column, Identifier):
            raise ValueError(
                f"{column.name!r} is an identifier, which is never learned: `of: person` is of "
                "columns that are, so take it out here"
            )
    _demand_alike(schema)


def _demand_alike(schema: Schema) -> None:
    """Raises ValueError where a column would have to be of a person by a constraint, and is not."""
    for number, one in enumerate(schema.constraints, 1):
        if not isinstance(one, Equal | Sum | Determines):
            continue
        names = one.names()
        own = [name for name in names if schema.column(name).of == "person"]
        rest = [name for name in names if name not in own]
        # Of sums and what a column settles the last follows from the others.
        if own and rest and (isinstance(one, Equal) or names[-1] in own):
            told = own[-1]
            raise ValueError(
                f"constraint {number}: {told!r} is `of: person`, which invented rows keep only if "
                f"{rest[0]!r} is, too: say `of: person` there as well"
            )


def count_varying(persons: NDArray[np.int64], cells: NDArray[Any]) -> int:
    """How many persons have cells that differ; gaps (NaN) are alike.

    Args:
        persons: whose each row is [n], numbers from 0.
        cells: of one column [n].
    """
    first = np.zeros(int(persons.max(initial=-1)) + 1, np.int64)
    first[persons[::-1]] = np.arange(len(persons))[::-1]
    before = cells[first[persons]]
    differ = cells != before
    if cells.dtype.kind == "f":
        differ &= ~(np.isnan(cells) & np.isnan(before))
    return len(np.unique(persons[differ]))
