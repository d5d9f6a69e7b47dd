"""Record level, the client half: gradients of drawn records, one global step a round.

The networks that see real rows, discriminator and perhaps a classifier, take one step along the
noisy sum of their clipped gradients. A record's two gradients are one row, so a step is one event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.joining import pieces
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.methods.gan.game import Game
from fedsynth.methods.training.batches import cut_by_owner, tensor
from fedsynth.methods.training.rows import Row, Seen, Weights
from fedsynth.models.vae import unflatten
from fedsynth.privacy.rows.clipping import Rows

# Records whose gradients are computed at once: their factors stay within 128 MB.
_CHUNK, _FLOATS = 2048, 2**25

Samples = Sequence[NDArray[np.int64]]


class GradientTask:
    """A row for every drawn record: see :class:`Row`."""

    name = "gan-gradient"
    keeps_order = True

    def contribute(
        self, clients: Sequence[View], samples: Samples, request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if not request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a record, not a {request.terms.unit}")
        game = clients[0].board.read("game", Game.from_dict)
        row = row_of(game, request.terms.clip)
        weights = weights_of(game, tensor(request.arrays["weights"]))
        coins = [client.coins.generator() for client in clients]
        owners = np.repeat(np.arange(len(clients)), [len(sample) for sample in samples])
        drawn = np.concatenate(samples)
        for at in pieces(clients, samples, request, _chunk(game)):
            members = owners[at]
            seen = [
                game.seen(clients[index], drawn[at][members == index], coins[index])
                for index in np.unique(members).tolist()
            ]
            yield from cut_by_owner(row.of(_join(seen), weights), members)


GRADIENT = register(GradientTask())


def row_of(game: Game, clip: float) -> Row:
    """The row of a record in a game."""
    return Row(game.discriminator, game.classifier, clip, loss=game.loss)


def weights_of(game: Game, flat: torch.Tensor) -> Weights:
    """The weights of discriminator and classifier, from one vector of both."""
    stop = game.discriminator.dim
    classifier = game.classifier
    known = [] if classifier is None else unflatten(flat[stop:], classifier.layers)
    return Weights(game.discriminator_weights(flat[:stop], 0), known)


def _chunk(game: Game) -> int:
    each = game.cells.width + sum(game.discriminator.hidden)
    if game.discriminator.kind == "conv":
        # The gradient of a convolution is written out.
        each = game.discriminator.dim
    return max(1, min(_CHUNK, _FLOATS // each))


def _join(seen: Sequence[Seen]) -> Seen:
    """The records of several clients behind one another."""
    labels = [one.labels for one in seen if one.labels is not None]
    classes = [one.classes for one in seen if one.classes is not None]
    return Seen(
        torch.cat([one.cells for one in seen]),
        torch.cat([one.blurred for one in seen]),
        torch.cat(labels) if labels else None,
        torch.cat(classes) if classes else None,
    )
