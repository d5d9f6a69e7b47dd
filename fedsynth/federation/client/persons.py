"""Whose a client's records are, where persons are protected: drawn, cut and joined by person."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Persons:
    """Whose each of a client's records is.

    Attributes:
        labels: a number for each record's person, [records], of any kind that tells them apart.
    """

    labels: NDArray[Any]

    @staticmethod
    def of(data: object) -> Persons | None:
        """As a client's data know it (`persons`, [records]); None where they do not."""
        labels = getattr(data, "persons", None)
        return None if labels is None else Persons(np.asarray(labels))

    @cached_property
    def numbers(self) -> Positions:
        """The person of each record [records], from 0 without gaps."""
        return np.unique(self.labels, return_inverse=True)[1].astype(np.int64).reshape(-1)

    @cached_property
    def _records(self) -> list[Positions]:
        """Positions of each person's records."""
        order = np.argsort(self.numbers, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.numbers[order])) + 1)

    def __len__(self) -> int:
        """How many persons; private."""
        return len(self._records) if len(self.numbers) else 0

    def records(self, persons: Positions) -> Positions:
        """Positions of all records of these persons, one person behind another."""
        own = self._records
        return np.concatenate([np.zeros(0, np.int64), *(own[person] for person in persons)])

    def starts(self, sample: Positions) -> Positions:
        """Where in a sample of records another person's begin than those before, [persons]."""
        return np.flatnonzero(np.diff(self.numbers[sample], prepend=-1))

    def weights(self, sample: Positions, weigh: str) -> NDArray[np.float64]:
        """Of each record of a sample that holds all records of its persons."""
        if weigh == "row":
            return np.ones(len(sample))
        sizes = np.bincount(self.numbers)
        return 1.0 / sizes[self.numbers[sample]]
