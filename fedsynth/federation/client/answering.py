"""The client half of a round: sample, contribute, clip, add noise, answer.

This is all that touches private data, and clipping and noise come last, whatever the task did.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.groups import grouped_sums
from fedsynth.federation.client.site import Site
from fedsynth.federation.client.steps import Steps, drawn
from fedsynth.federation.client.tasks import GroupTask, Learner, Task, learner, lookup
from fedsynth.federation.request import Answer, Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import clip_and_sum, clip_blocks


def answer(sites: Sequence[Site], request: Request, noise: NoiseSource) -> list[Answer]:
    """Answer a request for one site, or for several simulated together.

    Args:
        sites: those that consent to the round (:meth:`Site.consent`).
        noise: where secret record samples and the clients' noise come from.

    Raises:
        PrivacyError: a task gave rows of the wrong length, or more rows than units; or of a task
            whose rows belong to groups of records, see :func:`grouped_sums`.
    """
    if request.steps is not None:
        return _learned(learner(request.task), sites, request, noise)
    task = lookup(request.task)
    if isinstance(task, GroupTask):
        sums = grouped_sums(task, sites, request)
    else:
        sums = _clipped_sums(task, sites, request, noise)
    terms = request.terms
    answers = []
    for site, total in zip(sites, sums, strict=True):
        if request.kept and not isinstance(task, GroupTask):
            held = terms.noised(total[: request.kept], noise)
            task.keep(site, held, request)
        sent = terms.client_noised(total[request.kept :], noise)
        answers.append(Answer(site.name, request.job, request.round, sent))
    return answers


def _learned(
    task: Learner, sites: Sequence[Site], request: Request, noise: NoiseSource
) -> list[Answer]:
    """What each site's own training made of its noisy sums: nothing is added to that any more."""
    answers = []
    for site in sites:
        sent = np.asarray(task.learn(Steps(site, request, noise), request), np.float64)
        answers.append(Answer(site.name, request.job, request.round, sent))
    return answers


def _clipped_sums(
    task: Task, sites: Sequence[Site], request: Request, noise: NoiseSource
) -> NDArray[np.float64]:
    """Each site's sum of clipped rows, [sites, kept + dim]."""
    terms, width = request.terms, request.kept + request.dim
    samples = [drawn(site, request, noise) for site in sites]
    units = [terms.protects.rows(len(sample)) for sample in samples]
    sums = np.zeros((len(sites), width))
    for position, rows in task.contribute(sites, samples, request):
        units[position] -= len(rows)
        if rows.dim != width or units[position] < 0:
            raise PrivacyError(
                f"task {task.name}: rows of {rows.dim} numbers do not fit the request ({width} "
                f"numbers), or there are more of them than {terms.unit}s"
            )
        if terms.kind.selects:
            starts = np.asarray(request.arrays["starts"], np.int64)
            sums[position] += clip_blocks(rows, starts, terms.clip)
        else:
            sums[position] += clip_and_sum(rows, terms.clip, terms.norm)
    return sums
