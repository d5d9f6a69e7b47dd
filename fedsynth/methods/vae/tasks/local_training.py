"""Client level, the client half: one epoch of local training (paper 001, Algorithms 4 to 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request, number, whole
from fedsynth.methods.training.batches import tensor
from fedsynth.methods.vae.numbers import rows_of
from fedsynth.methods.vae.records import Model, latent_draws
from fedsynth.models import stacked
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.parts import clip_parts

Samples = Sequence[NDArray[np.int64]]


class TrainingTask:
    """One epoch of local training; the row is how far the decoder moved (paper 001, ClientTrain).

    The encoder stays at the client, un-noised, from round to round: the whole client is the unit,
    and its clipped difference is all that leaves. A shared encoder starts from the round's, too,
    and its difference is clipped together with the decoder's: nothing stays.
    """

    name = "vae-training"

    def contribute(
        self, clients: Sequence[View], samples: Samples, request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a client, not a {request.terms.unit}")
        model = clients[0].board.read("model", Model.from_dict)
        shared = request.settings["encoder"] == "shared"
        theta = tensor(request.arrays["theta"])
        phi = tensor(request.arrays["phi"])
        encoders = []
        for client in clients:
            kept = None if shared else client.vector.load()
            encoders.append(phi if kept is None else torch.from_numpy(kept))
        phis = torch.stack(encoders)
        E, D = model.spec.encoder_dim, model.spec.decoder_dim
        sent = E if shared else 0
        # By parts, since each is clipped by itself: a shared encoder's weights, then the decoder's.
        moved = torch.empty(len(clients), model.parts, sent + D)
        for part in range(model.parts):
            at, to = slice(part * E, (part + 1) * E), slice(part * D, (part + 1) * D)
            epoch = _epoch(clients, model, part)
            trained, thetas = stacked.train_stacked(
                model.spec,
                phis[:, at].contiguous(),
                theta[to],
                epoch.x,
                epoch.y if model.spec.classes else None,
                epoch.lengths,
                epoch.noise,
                batch_size=whole(request.settings, "batch_size"),
                learning_rate=number(request.settings, "learning_rate"),
                proximal=number({"proximal": 0.0, **request.settings}, "proximal"),
                shared=shared,
            )
            phis[:, at] = trained
            moved[:, part, :sent] = (trained - phi[at])[:, :sent]
            moved[:, part, sent:] = thetas - theta[to]
        if model.parts > 1:
            clipped = clip_parts(moved.flatten(1).numpy(), model.parts, request.terms.clip)
            moved = torch.from_numpy(clipped).view_as(moved)
        # In the order of the server's weights: all parts' encoders, then all parts' decoders.
        rows = torch.cat([moved[..., :sent].flatten(1), moved[..., sent:].flatten(1)], 1).numpy()
        for index, client in enumerate(clients):
            if not shared:
                client.vector.save(phis[index].numpy())
            yield index, DenseRows(rows[index : index + 1])


@dataclass(frozen=True)
class _Epoch:
    """The records of all clients, one client's behind another's, each client's in a fresh order."""

    x: torch.Tensor
    y: torch.Tensor | None
    lengths: torch.Tensor
    noise: torch.Tensor


def _epoch(clients: Sequence[View], model: Model, part: int) -> _Epoch:
    xs, ys, lengths, noises = [], [], [], []
    for client in clients:
        batch = rows_of(client, np.arange(client.records), model)
        chosen = torch.arange(client.records)
        if model.parts > 1 and batch.y is not None:
            chosen = torch.nonzero(batch.y == part)[:, 0]
        rng = client.coins.generator()
        chosen = chosen[torch.from_numpy(rng.permutation(len(chosen)))]
        xs.append(batch.x[chosen])
        if batch.y is not None:
            ys.append(batch.y[chosen])
        lengths.append(len(chosen))
        noises.append(latent_draws(rng, len(chosen), model.spec.latent))
    y = torch.cat(ys) if ys else None
    return _Epoch(torch.cat(xs), y, torch.tensor(lengths), torch.cat(noises))


TRAINING = register(TrainingTask())
