"""The client half: teachers, discriminators that stay with their records and vote on rows.

PATE-GAN (Jordon, Yoon, van der Schaar 2019, Algorithm 1; with votes summed over clients as in
G-PATE, Long et al. 2021). A teacher sees its own group's records and rows of the present generator,
which the server sends; it is trained without noise and never leaves. What leaves are one-hot votes
on generated rows, in a noisy sum over all teachers, as in :mod:`fedsynth.methods.pate.votes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import FederationError
from fedsynth.federation.client.group import Group
from fedsynth.federation.client.groups import GROUPS
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request, number, whole
from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.pategan.teachers import Teacher, TrainingSet, train, training_set
from fedsynth.models import adversarial, gan
from fedsynth.models.cells import Cells
from fedsynth.models.stacked import STACK_FLOATS
from fedsynth.schema import ImageSchema
from fedsynth.schema.target import target_index

Floats = NDArray[np.float64]

_MEMORY = "pate-gan"


@dataclass(frozen=True)
class TeacherVotesTask:
    """Train each group's teacher some steps more, and have it vote on the queries.

    A teacher votes for nothing on a row of a class that none of its records has, and without
    records on nothing at all.
    """

    name: str = "pate-verdicts"

    def group_rows(self, groups: Sequence[Group], request: Request) -> Iterator[tuple[int, Floats]]:
        if not groups:
            return
        game = groups[0].board.read("game", Game.from_dict)
        queries = _Queries.of(game, request)
        weight = 1.0
        if not request.terms.protects.per_record:
            # A whole client has one vote, whatever the number of its teachers.
            weight = 1 / number(request.settings, GROUPS)
        # Teachers without records learn beside the others, from generated rows: rounding depends on
        # a network's place in the stack, which no record may move.
        size = max(1, STACK_FLOATS // game.discriminator.dim)
        for at in range(0, len(groups), size):
            votes = _vote(game, groups[at : at + size], queries, request)
            for position, row in enumerate(votes, at):
                yield position, weight * row


TEACHER_VOTES = register(TeacherVotesTask())


@dataclass(frozen=True, eq=False)
class _Queries:
    """What a round sends.

    Attributes:
        fakes: generated records to learn from, as codes or pixels [f, ...].
        fake_labels: their labels [f]; None without classes.
        queries, query_labels: those to be judged.
    """

    fakes: Tensor
    fake_labels: Tensor | None
    queries: Tensor
    query_labels: Tensor | None

    @staticmethod
    def of(game: Game, request: Request) -> _Queries:
        """Raises FederationError for rows that are none of the announced game."""
        fakes, queries = (_rows(request, name, game.cells) for name in ("fakes", "queries"))
        fake_labels = _labels(request, "fake_labels", len(fakes), game.classes)
        query_labels = _labels(request, "query_labels", len(queries), game.classes)
        if request.dim != 2 * len(queries):
            raise FederationError("pate-verdicts: an answer has two numbers for every query")
        return _Queries(fakes, fake_labels, queries, query_labels)


def _rows(request: Request, name: str, cells: Cells) -> Tensor:
    rows = np.asarray(request.arrays[name], np.float32)
    most = np.array(cells.columns or [2] * cells.width) - 1
    fits = rows.ndim == 2 and rows.shape[1] == len(most) and len(rows)
    if not fits or not ((rows >= 0) & (rows <= most)).all():
        raise FederationError(f"pate-verdicts: {name} are not rows of the announced game")
    return torch.from_numpy(rows)


def _labels(request: Request, name: str, rows: int, classes: int) -> Tensor | None:
    if not classes:
        return None
    labels = np.asarray(request.arrays[name], np.int64)
    if labels.shape != (rows,) or labels.min() < 0 or labels.max() >= classes:
        raise FederationError(f"pate-verdicts: {name} are not classes of the announced game")
    return torch.from_numpy(labels)


def _vote(
    game: Game, groups: Sequence[Group], queries: _Queries, request: Request
) -> NDArray[np.float64]:
    """Rows [groups, 2 * queries]: a one for generated and one for real in turn."""
    training_sets = [_training_set(game, group, queries, request) for group in groups]
    fresh = [index for index, group in enumerate(groups) if _MEMORY not in group.memory]
    rate = number(request.settings, "learning_rate")
    for index in fresh:
        groups[index].memory[_MEMORY] = Teacher.new(game.discriminator, groups[index].seed)
    teacher_of: dict[int, Teacher] = {}
    old = [index for index in range(len(groups)) if index not in set(fresh)]
    for who in (fresh, old):
        # Those that begin take more steps, so they learn beside others that do.
        teachers = [groups[index].memory[_MEMORY] for index in who]
        trained = (
            train(game, teachers, [training_sets[index] for index in who], rate) if who else []
        )
        teacher_of |= dict(zip(who, trained, strict=True))
    for index, teacher in teacher_of.items():
        groups[index].memory[_MEMORY] = teacher
    weights = torch.stack([teacher_of[index].flat for index in range(len(groups))])
    real = _logits(game, weights, queries) > 0
    known = _known(groups, queries)
    votes = torch.stack([~real & known, real & known], dim=-1)
    return np.asarray(votes.flatten(1).numpy(), np.float64)


def _logits(game: Game, flat: Tensor, queries: _Queries) -> Tensor:
    """Of every teacher on every query, [teachers, queries]."""
    weights = gan.leaves(flat, game.discriminator.layers)
    cells = game.dense(queries.queries).expand(len(flat), -1, -1)
    labels = queries.query_labels
    expanded = None if labels is None else labels.expand(len(flat), -1)
    with torch.no_grad():
        return adversarial.conditional_logits(game.discriminator.logits(weights, cells), expanded)


def _known(groups: Sequence[Group], queries: _Queries) -> Tensor:
    """Whether a teacher has records of a query's class, [teachers, queries]."""
    labels = queries.query_labels
    if labels is None:
        has_records = torch.tensor([group.records > 0 for group in groups])
        return has_records[:, None].expand(-1, len(queries.queries))
    return torch.stack([torch.isin(labels, group.memory["labels"]) for group in groups])


def _training_set(game: Game, group: Group, queries: _Queries, request: Request) -> TrainingSet:
    """What a teacher learns from in this round; its records are encoded once."""
    if "records" not in group.memory:
        group.memory["records"], group.memory["labels"] = _records(game, group)
    begins = _MEMORY not in group.memory
    steps = whole(request.settings, "warmup" if begins else "steps")
    # The seed is public: nothing rests on the order in which a teacher sees its own records.
    rng = np.random.default_rng([group.seed, request.round])
    batch = whole(request.settings, "batch_size")
    records, labels = group.memory["records"], group.memory["labels"] if game.classes else None
    if not group.records:
        records, labels = queries.fakes, queries.fake_labels
    return training_set(records, labels, queries.fakes, queries.fake_labels, steps, batch, rng)


def _records(game: Game, group: Group) -> tuple[Tensor, Tensor]:
    """A group's records as codes [n, columns] or pixels [n, width], and their labels [n]."""
    if isinstance(group.data, Images):
        schema = group.board.read("schema", ImageSchema.from_dict)
        labels = group.data.labels
        known = np.zeros(group.records, np.int64) if labels is None else labels
        return torch.from_numpy(image.encode(group.data, schema)), torch.from_numpy(known)
    encoding = group.board.read("encoding", TableEncoding.from_dict)
    codes = encoding.encode(group.data).astype(np.float32)
    if not game.classes:
        return torch.from_numpy(codes), torch.zeros(len(codes), dtype=torch.int64)
    target = target_index(encoding.schema)
    labels = codes[:, target].astype(np.int64)
    return torch.from_numpy(np.delete(codes, target, axis=1)), torch.from_numpy(labels)
