"""The client half: teachers of groups of records, and their votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError
from fedsynth.federation.client.group import Group
from fedsynth.federation.client.groups import GROUPS
from fedsynth.federation.client.progress import advance
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request, whole
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.schema import build_schema

Floats = NDArray[np.float64]


BATCH = 32


# Passes over its rows that a teacher makes at least.
_PASSES = 3


# Added to a teacher's records of each class.
_UNSEEN = 0.5


@dataclass(frozen=True)
class VotesTask:
    """Train a teacher on each group's records, and have it vote on the queries.

    A teacher votes for the class that its own records make likeliest against how often they have
    it, as if all classes were equally frequent: or clients whose records are mostly of one class
    would vote for it whatever the query (Saerens et al. 2002). A teacher of one class votes for it
    everywhere; one without records votes for nothing.
    """

    name: str = "pate-votes"

    def group_rows(self, groups: Sequence[Group], request: Request) -> Iterator[tuple[int, Floats]]:
        queries = _check_queries(request, groups)
        steps, count = whole(request.settings, "steps"), whole(request.settings, GROUPS)
        # A whole client has one vote, whatever the number of its teachers.
        weight = 1.0 if request.terms.protects.per_record else 1 / count
        for position, group in enumerate(groups):
            yield position, weight * _vote(group, queries, steps).ravel()
            advance()


VOTES = register(VotesTask())


def _check_queries(request: Request, groups: Sequence[Group]) -> Floats:
    """The queries of a request. Raises FederationError for some that are none."""
    queries = np.asarray(request.arrays["queries"], np.float64)
    if groups:
        inputs = groups[0].board.read("schema", _inputs_of)
        fits = queries.ndim == 2 and queries.shape[1] == inputs.width and len(queries)
        if not fits or request.dim != len(queries) * inputs.classes:
            raise FederationError("pate-votes: the queries are not rows of the announced schema")
    return queries


def _vote(group: Group, queries: Floats, steps: int) -> Floats:
    """One-hot votes [queries, classes]; zeros without records."""
    inputs = group.board.read("schema", _inputs_of)
    votes = np.zeros((len(queries), inputs.classes))
    if not group.records:
        return votes
    labels = inputs.labels(group.data)
    if (labels == labels[0]).all():
        votes[:, labels[0]] = 1.0
        return votes
    # The seed is public: nothing rests on a teacher's first weights.
    seed = group.seed
    start = Classifier.initial(*inputs.standards(queries), inputs.classes, seed=seed)
    batches = -(-len(labels) // BATCH)
    teacher = Classifier.train(
        inputs.matrix(group.data),
        labels,
        inputs.classes,
        seed=seed,
        epochs=max(_PASSES, -(-steps // batches)),
        batch=BATCH,
        start=start,
    )
    counts = np.bincount(labels, minlength=inputs.classes) + _UNSEEN
    predicted = (teacher.probabilities(queries) / counts).argmax(axis=1)
    votes[np.arange(len(queries)), predicted] = 1.0
    return votes


def _inputs_of(schema: dict[str, object]) -> Inputs:
    return Inputs(build_schema(schema))
