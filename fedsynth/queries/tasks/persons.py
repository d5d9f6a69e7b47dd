"""Rows a person, the client half: in which bin each one's number of rows is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.queries.tasks.counting import CountTask

Whole = NDArray[np.int64]

ENDS = np.array([1, 2, 3, *2 ** np.arange(2, 17)])
"""The most rows in each bin: 1, 2, 3, 4, 5 to 8, 9 to 16, .. and 32,769 and more."""

BINS = len(ENDS)

KEY = "rows_a_person"
"""Of what was released, in checkpoints and models."""


def bins_of(rows: Whole) -> Whole:
    """The bin of each number of rows, which are at least 1."""
    return np.searchsorted(ENDS[:-1], rows).astype(np.int64)


def _bins(client: View) -> Whole:
    """Of every record its person's bin, [records, 1]: the same one for all of a person's."""
    if client.persons is None:
        raise PrivacyError(f"{client.name}: nobody knows whose the rows are")
    numbers = client.persons.numbers
    return bins_of(np.bincount(numbers))[numbers][:, None]


ROWS_A_PERSON = register(CountTask("rows-a-person", _bins))
