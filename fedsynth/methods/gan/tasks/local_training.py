"""Client level, the client half: discriminators learn at their clients (paper 001, Algorithm 3).

A client takes some steps on its own rows against rows of the server's generator, and answers with
how far its discriminator moved: the whole client is the unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Plain, Request, number, whole
from fedsynth.methods.gan.game import Game
from fedsynth.methods.training.batches import classes_of, tensor
from fedsynth.methods.training.generating import Conditions
from fedsynth.methods.training.learner import BETAS
from fedsynth.models import adversarial
from fedsynth.models.adam import Adam
from fedsynth.models.gan import flatten, leaves
from fedsynth.models.stacked import STACK_FLOATS, side_by_side
from fedsynth.privacy.rows.clipping import Floats, Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.parts import clip_parts

# Numbers in the rows and weights of clients that are simulated at once: 32 MB.
_FLOATS = 2**23

Samples = Sequence[NDArray[np.int64]]


class TrainingTask:
    """Steps of local training; the row is how far the discriminators moved."""

    name = "gan-training"

    def contribute(
        self, clients: Sequence[View], samples: Samples, request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a client, not a {request.terms.unit}")
        rules = Rules.of(clients[0], request)
        size = max(1, _FLOATS // rules.numbers)
        for start in range(0, len(clients), size):
            group = clients[start : start + size]
            moved: Floats = _update(group, rules)
            if rules.game.parts > 1:
                moved = clip_parts(moved, rules.game.parts, request.terms.clip)
            for index, row in enumerate(moved, start):
                yield index, DenseRows(row[None])


TRAINING = register(TrainingTask())


@dataclass(frozen=True)
class Rules:
    """What a round's request says, read once.

    Attributes:
        game: the networks.
        conditions: labels of generated rows.
        discriminators, generators: flat weights of all parts.
        steps, batch: of the local training.
        rate: of its Adam.
        proximal: weight of the squared distance to the round's weights.
    """

    game: Game
    conditions: Conditions
    discriminators: Tensor
    generators: Tensor
    steps: int
    batch: int
    rate: float
    proximal: float

    @staticmethod
    def of(client: View, request: Request) -> Rules:
        return Rules(
            client.board.read("game", Game.from_dict),
            client.board.read("conditions", read_conditions),
            tensor(request.arrays["weights"]),
            tensor(request.arrays["generators"]),
            whole(request.settings, "steps"),
            whole(request.settings, "batch_size"),
            number(request.settings, "learning_rate"),
            number({"proximal": 0.0, **request.settings}, "proximal"),
        )

    @property
    def rows(self) -> int:
        """Rows that one discriminator sees in a round, of each kind."""
        return self.steps * self.batch

    @property
    def numbers(self) -> int:
        """In the real and generated rows of a client, and its weights before and after."""
        rows = 2 * self.rows * self.game.cells.width
        return self.game.parts * (rows + 2 * self.game.discriminator.dim)


def plain_conditions(conditions: Conditions) -> dict[str, Plain]:
    """JSON-able; :func:`read_conditions` gives the same conditions back."""
    cells = conditions.cells
    return {
        "classes": conditions.classes.tolist(),
        "cells": None if cells is None else cells.tolist(),
        "sizes": list(conditions.sizes),
    }


def read_conditions(plain: dict[str, list[float]]) -> Conditions:
    """The inverse of :func:`plain_conditions`."""
    cells = plain["cells"]
    return Conditions(
        np.array(plain["classes"], np.float64),
        None if cells is None else np.array(cells, np.float64),
        tuple(int(size) for size in plain["sizes"]),
    )


@dataclass(frozen=True)
class _LocalRows:
    """What one discriminator learns from: real and generated rows [rows, width] in step order."""

    real: Tensor
    labels: Tensor | None
    fakes: Tensor
    asked: Tensor | None


def _update(clients: Sequence[View], rules: Rules) -> NDArray[np.float32]:
    """How far the discriminators of all parts moved at each client, [clients, parts * dim]."""
    game, size = rules.game, rules.game.discriminator.dim
    updates = np.zeros((len(clients), game.parts * size), np.float32)
    local_rows: list[_LocalRows] = []
    places: list[tuple[int, int]] = []
    for index, client in enumerate(clients):
        for part, rows in _local_rows(client, rules):
            local_rows.append(rows)
            places.append((index, part))
    if not local_rows:
        return updates
    starts = torch.stack([rules.discriminators[p * size : (p + 1) * size] for _, p in places])
    moved = (_train(rules, starts, local_rows) - starts).numpy()
    for (index, part), row in zip(places, moved, strict=True):
        updates[index, part * size : (part + 1) * size] = row
    return updates


def _local_rows(client: View, rules: Rules) -> Iterator[tuple[int, _LocalRows]]:
    """By part; none for a part of whose class the client has no rows."""
    game, rng = rules.game, client.coins.generator()
    source = torch.Generator().manual_seed(client.coins.seed())
    classes = classes_of(client, game.labelled) if game.parts > 1 else None
    for part in range(game.parts):
        members = np.arange(client.records) if classes is None else np.flatnonzero(classes == part)
        if not len(members):
            continue
        real = game.seen(client, _cycle(members, rules.rows, rng), rng)
        conditions = rules.conditions.draw(rules.rows, source) if game.parts == 1 else None
        weights = game.generator_weights(rules.generators, part)
        fakes = game.generator.sample(weights, conditions, rules.rows, source)
        yield part, _LocalRows(real.blurred, real.labels, game.add_noise(fakes, rng), conditions)


def _cycle(members: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers [count]: every row once in a random order, then every row again."""
    passes = -(-count // len(members))
    return np.concatenate([rng.permutation(members) for _ in range(passes)])[:count]


def _train(rules: Rules, starts: Tensor, local_rows: Sequence[_LocalRows]) -> Tensor:
    """Flat weights [models, dim] after all steps; models learn side by side, as if alone."""
    weights = torch.empty_like(starts)

    def work(models: Tensor) -> None:
        rows = [local_rows[model] for model in models.tolist()]
        weights[models] = _take_steps(rules, starts[models], rows)

    side_by_side(work, torch.split(torch.arange(len(local_rows)), _stack(rules, len(local_rows))))
    return weights


def _stack(rules: Rules, models: int) -> int:
    """Models trained in one step: few enough for the cache, and for every thread to have some."""
    network = rules.game.discriminator
    if network.kind == "conv":
        # oneDNN runs one model's convolutions at several times the speed of grouped ones.
        return 1
    fitting = STACK_FLOATS // network.dim
    return max(1, min(fitting, -(-models // torch.get_num_threads())))


def _take_steps(rules: Rules, starts: Tensor, local_rows: Sequence[_LocalRows]) -> Tensor:
    game, alone = rules.game, rules.game.discriminator.kind == "conv"

    def join(rows: Sequence[Tensor | None]) -> Tensor | None:
        held = [one for one in rows if one is not None]
        if not held:
            return None
        return held[0] if alone else torch.stack(held)

    weights = leaves(starts[0] if alone else starts, game.discriminator.layers)
    begun = [weight.detach().clone() for weight in weights]
    optimiser = Adam(weights, rules.rate, BETAS)
    real, fakes = join([d.real for d in local_rows]), join([d.fakes for d in local_rows])
    labels, asked = join([d.labels for d in local_rows]), join([d.asked for d in local_rows])
    assert real is not None and fakes is not None
    axis = 0 if alone else 1
    for step in range(rules.steps):
        at = step * rules.batch
        sides = [
            None if rows is None else rows.narrow(axis, at, rules.batch)
            for rows in (real, labels, fakes, asked)
        ]
        losses = _losses(game, weights, sides)
        total = losses.sum()
        if rules.proximal:
            apart = zip(weights, begun, strict=True)
            total = total + rules.proximal / 2 * sum(((a - b) ** 2).sum() for a, b in apart)
        # A model's loss has weight 1, however many stand beside it.
        optimiser.step(torch.autograd.grad(total, weights))
    flat = flatten(weights)
    return flat[None] if alone else flat


def _losses(game: Game, weights: list[Tensor], sides: Sequence[Tensor | None]) -> Tensor:
    """A discriminator's loss, mean over real rows plus mean over generated ones; one a model.

    Args:
        sides: real rows and their labels, generated rows and theirs.
    """
    real, labels, fakes, conditions = sides
    assert real is not None and fakes is not None
    logits = game.discriminate(weights, real, labels)
    losses = adversarial.adversarial_losses(logits, True, game.loss).mean(-1)
    logits = game.discriminate(weights, fakes, conditions)
    losses = losses + adversarial.adversarial_losses(logits, False, game.loss).mean(-1)
    if game.penalty:
        slope = adversarial.gradient_penalty(
            lambda cells: game.discriminate(weights, cells, conditions), fakes
        )
        losses = losses + game.penalty * slope
    return losses
