"""Groups of a client's records: what a task sees whose rows are functions of many records.

Removing a unit must change one group's row and no other. So the group of a record, or of a person
with all its records, is an independent coin of the client, drawn once a job; the number of groups
is public and the same at every client, records or none; and a task sees a group instead of its
client, with that group's records and memory alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.group import Group
from fedsynth.federation.client.joining import joined_persons
from fedsynth.federation.client.persons import Persons
from fedsynth.federation.client.tasks import GroupTask
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.exchanging import clip_exchanged, nonnegative
from fedsynth.privacy.sampling import Everyone

# Of a request: how many groups a client has.
GROUPS = "groups"
_MOST = 10_000


def assign(
    records: int, groups: int, coins: NoiseSource, persons: Persons | None = None
) -> list[NDArray[np.int64]]:
    """Positions of the records of each group: every unit's group is a coin of its own.

    Args:
        persons: whose the records are, where these are the units.
    """
    units = records if persons is None else len(persons)
    chosen = coins.generator().integers(groups, size=units)
    if persons is not None:
        chosen = chosen[persons.numbers]
    return [np.flatnonzero(chosen == group) for group in range(groups)]


def groups_of(client: Client, request: Request) -> tuple[Group, ...]:
    """The groups of a client, the same ones in all rounds of a job.

    Raises:
        PrivacyError: a request that states no number of groups, or not that of earlier rounds; or
            that protects persons where earlier ones put records in groups one by one, or the other
            way round.
    """
    count, memory = group_count(request), client.memory(request.job)
    by_person = request.terms.protects.joined
    if memory.groups is None:
        persons = joined_persons(client, request)
        memory.by_person = by_person
        memory.groups = tuple(
            Group(
                client.name,
                number,
                client.data.take(members),
                len(members),
                memory.board,
                client.coins,
            )
            for number, members in enumerate(assign(client.records, count, client.coins, persons))
        )
    if memory.by_person != by_person:
        # A person whose records are in several groups would move all of their rows.
        raise PrivacyError(
            f"task {request.task}: groups of persons and groups of records are asked in one job: a "
            "unit never changes its group"
        )
    if len(memory.groups) != count:
        raise PrivacyError(
            f"task {request.task}: {count} groups are asked of a client that has "
            f"{len(memory.groups)} in this job: a record never changes its group"
        )
    return memory.groups


def group_count(request: Request) -> int:
    """How many groups a request wants of every client.

    Raises:
        PrivacyError: no whole number from 1 to 10,000 under ``groups`` in its settings.
    """
    count = request.settings.get(GROUPS)
    if type(count) is not int or not 1 <= count <= _MOST:
        raise PrivacyError(
            f"task {request.task}: its rows belong to groups of records, so the request must state "
            f"under `{GROUPS}` how many every client has, from 1 to {_MOST:,}"
        )
    return count


def sum_groups(
    task: GroupTask, clients: Sequence[Client], request: Request
) -> Iterator[NDArray[np.float64]]:
    """Each client's sum of its groups' rows, clipped so that a unit moves it by at most the clip.

    At the record level every group's row is clipped for an exchange
    (:func:`~fedsynth.privacy.rows.exchanging.clip_exchanged`); at the client level the sum of a
    client's rows is one row, clipped as any other.

    Yields:
        float64 [dim] for every client, in their order.

    Raises:
        PrivacyError: terms or a request that do not go with groups, or a task that gives anything
            but one row of ``dim`` numbers for every group.
    """
    _demand_whole(request)
    terms, count = request.terms, group_count(request)
    groups = [group for client in clients for group in groups_of(client, request)]
    rows = _each_once(task, groups, request)
    for number in range(1, len(clients) + 1):
        total = np.zeros(request.dim)
        for row in islice(rows, count):
            if terms.protects.per_record:
                total += clip_exchanged(row[None], terms.clip, terms.norm)
            else:
                total += nonnegative(row[None]).values[0]
        if not terms.protects.per_record:
            total = clip_and_sum(DenseRows(total[None]), terms.clip, terms.norm)
        if number == len(clients):
            # Has the task end, which shows a row too many.
            deque(rows, maxlen=0)
        yield total


def _each_once(
    task: GroupTask, groups: Sequence[Group], request: Request
) -> Iterator[NDArray[np.float64]]:
    """The task's row of every group in turn."""
    due = 0
    for position, row in task.group_rows(groups, request):
        if position != due or position >= len(groups) or np.shape(row) != (request.dim,):
            due = -1
            break
        due += 1
        yield np.asarray(row, np.float64)
    if due != len(groups):
        raise PrivacyError(
            f"task {task.name}: every group of records has exactly one row of {request.dim} "
            "numbers, in the groups' order, also a group without records; the task gives others, "
            "more or fewer"
        )


def _demand_whole(request: Request) -> None:
    terms = request.terms
    if terms.protects.per_record and terms.sampling != Everyone():
        raise PrivacyError(
            f"task {request.task}: the row of a group depends on all of its records, so drawing "
            "records hides nothing: ask for terms without sampling"
        )
    if terms.kind.selects or request.kept or request.steps is not None:
        raise PrivacyError(
            f"task {request.task}: rows of groups are summed and released, neither selected by nor "
            "kept at their client"
        )
