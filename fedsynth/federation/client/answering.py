"""The client half of a round: consent, sample, contribute, clip, add noise, answer.

This is all that touches private data, and clipping and noise come last, whatever the task did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.faults import isolate
from fedsynth.federation.client.groups import sum_groups
from fedsynth.federation.client.joining import count_units, draw_records, join
from fedsynth.federation.client.tasks import GroupTask, Keeper, Task, keeps_order, learn, lookup
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Answer, Incident, Request
from fedsynth.privacy.rows.clipping import clip_and_sum, clip_blocks


def answer(
    clients: Sequence[Client], request: Request, deadline: float | None = None
) -> Iterator[Answer | Incident]:
    """Answer a request as one client, or as several that are simulated together.

    Yields:
        A refusal of every client that does not consent, then the others' answers, each as soon as
        it is made: no more than one of them stands in memory. Last, who failed or was late; where
        all fail, it raises.
    """
    willing = []
    for client in clients:
        reason = client.consent(request)
        if reason is None:
            willing.append(client)
        else:
            yield Incident(client.name, request.round, f"refuses: {reason}")
    yield from isolate(respond, willing, request, deadline)


def respond(willing: Sequence[Client], request: Request) -> Iterator[Answer]:
    """What clients that have consented answer, in their order.

    Raises:
        PrivacyError: a task's rows are too long, out of order or too many; as :func:`sum_groups`.
    """
    views = [View(client, request.job) for client in willing]
    if request.steps is not None:
        messages = (learn(view, request) for view in views)
    else:
        task = lookup(request.task)
        if isinstance(task, GroupTask):
            sums = sum_groups(task, willing, request)
        else:
            sums = _clip_sums(task, views, request)
        messages = (
            _add_noise(task, view, total, request) for view, total in zip(views, sums, strict=True)
        )
    for view, message in zip(views, messages, strict=True):
        yield Answer(view.name, request.job, request.round, message)


def _add_noise(
    task: Task | GroupTask, view: View, total: NDArray[np.float64], request: Request
) -> NDArray[np.float64]:
    """What leaves the client of its clipped sum; what is to stay there carries all of the noise."""
    terms = request.terms
    if request.kept and isinstance(task, Keeper):
        task.keep(view, terms.noised(total[: request.kept], view.coins), request)
    return terms.client_noised(total[request.kept :], view.coins)


def _clip_sums(
    task: Task, views: Sequence[View], request: Request
) -> Iterator[NDArray[np.float64]]:
    """Each client's sum of clipped rows, [kept + dim], in the clients' order."""
    terms, width = request.terms, request.kept + request.dim
    if request.kept and not isinstance(task, Keeper):
        raise PrivacyError(f"task {task.name}: nothing of what it gives can be kept at its client")
    samples = [draw_records(view, request) for view in views]
    units = [count_units(*own, request) for own in zip(views, samples, strict=True)]
    current, total, given = 0, np.zeros(width), task.contribute(views, samples, request)
    for position, rows in join(given, views, samples, request, keeps_order(task)):
        if not current <= position < len(views):
            raise PrivacyError(f"task {task.name}: it gives rows of a client out of their order")
        while current < position:
            yield total
            current, total = current + 1, np.zeros(width)
        units[position] -= len(rows)
        if rows.dim != width or units[position] < 0:
            raise PrivacyError(
                f"task {task.name}: rows of {rows.dim} numbers do not fit the request ({width} "
                f"numbers), or there are more of them than {terms.unit}s"
            )
        if terms.kind.selects:
            starts = np.asarray(request.arrays.get("starts", ()), np.int64)
            total += clip_blocks(rows, starts, terms.clip)
        else:
            total += clip_and_sum(rows, terms.clip, terms.norm)
    while current < len(views):
        yield total
        current, total = current + 1, np.zeros(width)
