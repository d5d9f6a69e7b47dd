"""Groups of a site's records: what a task sees whose rows are functions of many records.

Removing a record must change one group's row and no other. So a record's group is an independent
coin of the site, drawn once a job; the number of groups is public and the same at every site,
records or none; and a task sees a group instead of its site, with that group's records and memory
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.group import Group
from fedsynth.federation.client.site import Site
from fedsynth.federation.client.tasks import GroupTask
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import DenseRows, clip_and_sum
from fedsynth.privacy.rows.exchanging import clip_exchanged, nonnegative
from fedsynth.privacy.sampling import Everyone

# Of a request: how many groups a site has.
GROUPS = "groups"
_MOST = 10_000
_KEY = "grouping"


@dataclass(frozen=True, eq=False)
class _Grouping:
    job: str
    groups: tuple[Group, ...]


def assigned(records: int, groups: int, coins: NoiseSource) -> list[NDArray[np.int64]]:
    """Positions of the records of each group: every record's group is a coin of its own."""
    chosen = coins.generator().integers(groups, size=records)
    return [np.flatnonzero(chosen == group) for group in range(groups)]


def groups_of(site: Site, request: Request) -> tuple[Group, ...]:
    """The groups of a site, the same ones in all rounds of a job.

    Raises:
        PrivacyError: a request that states no number of groups, or not that of earlier rounds.
    """
    count = demanded_groups(request)
    known = site.derived.get(_KEY)
    if isinstance(known, _Grouping) and known.job == request.job:
        if len(known.groups) != count:
            raise PrivacyError(
                f"task {request.task}: {count} groups are asked of a site that has "
                f"{len(known.groups)} in this job: a record never changes its group"
            )
        return known.groups
    members = assigned(site.records, count, site.coins)
    found = tuple(
        Group(site.name, number, site.data.take(own), len(own), site.board, site.coins)
        for number, own in enumerate(members)
    )
    site.derived[_KEY] = _Grouping(request.job, found)
    return found


def demanded_groups(request: Request) -> int:
    """How many groups a request wants of every site.

    Raises:
        PrivacyError: no whole number from 1 to 10,000 under ``groups`` in its settings.
    """
    count = request.settings.get(GROUPS)
    if type(count) is not int or not 1 <= count <= _MOST:
        raise PrivacyError(
            f"task {request.task}: its rows belong to groups of records, so the request must state "
            f"under `{GROUPS}` how many every site has, from 1 to {_MOST:,}"
        )
    return count


def grouped_sums(task: GroupTask, sites: Sequence[Site], request: Request) -> NDArray[np.float64]:
    """Each site's sum of its groups' rows, clipped so that a unit moves it by at most the clip.

    At the record level every group's row is clipped for an exchange
    (:func:`~fedsynth.privacy.rows.exchanging.clip_exchanged`); at the client level the sum of a
    client's rows is one row, clipped as any other.

    Returns:
        float64 [sites, dim].

    Raises:
        PrivacyError: terms or a request that do not go with groups, or a task that gives anything
            but one row of ``dim`` numbers for every group.
    """
    _demand_whole(request)
    terms, dim = request.terms, request.dim
    whose = [index for index, site in enumerate(sites) for _ in groups_of(site, request)]
    groups = [group for site in sites for group in groups_of(site, request)]
    sums = np.zeros((len(sites), dim))
    for position, row in _each_once(task, groups, request):
        if terms.protects.per_record:
            sums[whose[position]] += clip_exchanged(row[None], terms.clip, terms.norm)
        else:
            sums[whose[position]] += nonnegative(row[None]).values[0]
    if not terms.protects.per_record:
        for total in sums:
            total[:] = clip_and_sum(DenseRows(total[None]), terms.clip, terms.norm)
    return sums


def _each_once(
    task: GroupTask, groups: Sequence[Group], request: Request
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """What the task yields, once it is known to be one fitting row for every group."""
    waiting = set(range(len(groups)))
    for position, row in task.group_rows(groups, request):
        if position not in waiting or np.shape(row) != (request.dim,):
            waiting.add(-1)
            break
        waiting.discard(position)
        yield position, np.asarray(row, np.float64)
    if waiting:
        raise PrivacyError(
            f"task {task.name}: every group of records has exactly one row of {request.dim} "
            "numbers, also a group without records; the task gives others, more or fewer"
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
