"""Units of several records: their rows are added up before anything is clipped.

A task gives a row a record, and knows nothing of persons but where it may cut a sample in pieces
(:func:`pieces`). The door knows whose each row is by its place, so what a task promises by
``keeps_order`` is what the guarantee rests on: rows in the samples' order, one for every record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.persons import Persons
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.joining import JoinedRows

Positions = NDArray[np.int64]
Samples = Sequence[Positions]


def joined_persons(client: Client | View, request: Request) -> Persons | None:
    """Whose the client's records are, where the terms protect persons; else None.

    Raises:
        PrivacyError: it does not know.
    """
    if not request.terms.protects.joined:
        return None
    if client.persons is None or len(client.persons.labels) != client.records:
        raise PrivacyError(f"{client.name}: nobody knows whose the rows are, so none can be hidden")
    return client.persons


def draw_records(client: View, request: Request) -> Positions:
    """Positions of a client's records that take part, units at the record level drawn in secret.

    Where persons are protected coins are a person's, and its records lie one behind another.
    """
    terms = request.terms
    if not terms.protects.per_record:
        return np.arange(client.records)
    persons = joined_persons(client, request)
    if persons is None:
        return terms.sampling.draw(client.records, client.coins)
    return persons.records(terms.sampling.draw(len(persons), client.coins))


def count_units(client: View, sample: Positions, request: Request) -> int:
    """How many rows the door is to clip of a client's sample."""
    persons = joined_persons(client, request)
    if persons is None:
        return request.terms.protects.rows(len(sample))
    return len(persons.starts(sample))


def pieces(
    clients: Sequence[View], samples: Samples, request: Request, size: int
) -> Iterator[slice]:
    """Cut the records of all samples, one behind another, in pieces of ``size`` or so.

    No unit is cut, so of a person of more than ``size`` records a piece has all.
    """
    ends, done = [np.zeros(0, np.int64)], 0
    for client, sample in zip(clients, samples, strict=True):
        persons = joined_persons(client, request)
        begins = np.arange(len(sample)) if persons is None else persons.starts(sample)
        ends.append(begins + done)
        done += len(sample)
    places = np.append(np.concatenate(ends), done)
    start = 0
    while start < done:
        # The last place that is near enough, or else the next there is.
        at = int(np.searchsorted(places, start + size, "right")) - 1
        stop = int(places[at])
        if stop <= start:
            stop = int(places[at + 1])
        yield slice(start, stop)
        start = stop


def join(
    rows: Iterator[tuple[int, Rows]],
    clients: Sequence[View],
    samples: Samples,
    request: Request,
    keeps_order: bool,
) -> Iterator[tuple[int, Rows]]:
    """A task's rows, position by position, with a row a unit.

    Raises:
        PrivacyError: of persons, a task that does not keep the order of its sample, cuts a person
            in two, or gives more or fewer rows than records.
    """
    demand_order(request, keeps_order)
    if not request.terms.protects.joined:
        yield from rows
        return
    joiners = [Joiner(*pair, request) for pair in zip(clients, samples, strict=True)]
    begun = 0
    for position, block in rows:
        # Of a client that comes before, the sum is whole, and leaves.
        for joiner in joiners[begun:position]:
            joiner.demand_all()
        begun = max(begun, position)
        fits = 0 <= position < len(joiners)
        yield position, joiners[position].join(block) if fits else block
    for joiner in joiners[begun:]:
        joiner.demand_all()


def demand_order(request: Request, keeps_order: bool) -> None:
    """Raises PrivacyError where persons are protected, by a task that does not keep the order."""
    if request.terms.protects.joined and not keeps_order:
        raise PrivacyError(
            f"task {request.task}: it does not say whose each of its rows is, so it cannot be "
            f"asked where {request.terms.unit}s are protected"
        )


class Joiner:
    """Adds up the rows of one client's persons, as they come.

    Args:
        sample: positions of records, those of a person one behind another.
    """

    def __init__(self, client: View, sample: Positions, request: Request) -> None:
        self._persons, self._sample = joined_persons(client, request), sample
        self._task, self._weigh, self._done = request.task, request.terms.weigh or "", 0

    def join(self, rows: Rows) -> Rows:
        """A row a person of the next records' rows. Raises as :func:`join`."""
        if self._persons is None or not len(rows):
            return rows
        first, last = self._done, self._done + len(rows)
        numbers, sample = self._persons.numbers, self._sample
        if last > len(sample):
            raise PrivacyError(f"task {self._task}: it gives more rows than records")
        if 0 < last < len(sample) and numbers[sample[last - 1]] == numbers[sample[last]]:
            raise PrivacyError(f"task {self._task}: it cuts a person's rows in two")
        self._done, own = last, sample[first:last]
        return JoinedRows(rows, self._persons.starts(own), self._persons.weights(own, self._weigh))

    def demand_all(self) -> None:
        """Raises PrivacyError where records have no row: whose the others are is not known."""
        if self._persons is not None and self._done != len(self._sample):
            raise PrivacyError(f"task {self._task}: it gives fewer rows than records")
