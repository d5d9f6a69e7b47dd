"""Record level, the client half: gradients of drawn records.

Three ways to treat the encoder:

- shared: its gradient is released beside the decoder's.
- private: every client has its own. A record moves its client's encoder and the released decoder
  sum together, so both gradients are clipped as one row; the encoder's part stays at the client and
  carries the whole noise there, or the encoder would tell the next rounds what noise hides.
- frozen: a random public encoder that never learns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.joining import pieces
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request, number
from fedsynth.methods.training.batches import tensor
from fedsynth.methods.training.momentum import Momentum
from fedsynth.methods.vae.numbers import rows_of
from fedsynth.methods.vae.records import Model, latent_draws
from fedsynth.models import vae
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.factored import FactoredRows

Samples = Sequence[NDArray[np.int64]]


class GradientTask:
    """Gradients of drawn records, one row each.

    A row is [phi, theta] of all parts (``encoder`` shared or private) or theta alone (frozen); a
    record touches only the part of its class.
    """

    name = "vae-gradient"
    # But for parts by class, which take a chunk's rows apart.
    keeps_order = True

    def contribute(
        self, clients: Sequence[View], samples: Samples, request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if not request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a record, not a {request.terms.unit}")
        model = clients[0].board.read("model", Model.from_dict)
        if model.parts > 1 and request.terms.protects.joined:
            raise PrivacyError(
                f"{self.name} takes records apart by class, a {request.terms.unit} too"
            )
        private = request.settings["encoder"] == "private"
        for group in [[i] for i in range(len(clients))] if private else [list(range(len(clients)))]:
            phi = request.arrays["phi"]
            if private:
                phi = _private_encoder(clients[group[0]], request).weights
            own = [clients[i] for i in group], [samples[i] for i in group]
            cuts = pieces(*own, request, model.chunk)
            drawn = _draw(group, clients, samples, model)
            yield from _gradient_rows(drawn, cuts, phi, request, model)

    def keep(self, client: View, values: NDArray[np.float64], request: Request) -> None:
        """One step of the private encoder, by the noisy mean gradient of this client's records."""
        optimiser = _private_encoder(client, request)
        gradient = values / number(request.settings, "expected")
        optimiser.step(gradient.astype(np.float32), number(request.settings, "learning_rate"))
        client.vector.save(optimiser.to_vector())


def _private_encoder(client: View, request: Request) -> Momentum:
    """A client's encoder and its velocity; the first time, the public initial weights."""
    vector = client.vector.load()
    if vector is not None:
        return Momentum.from_vector(vector)
    return Momentum.start(np.asarray(request.arrays["phi"], np.float32))


@dataclass(frozen=True)
class _Drawn:
    """The drawn records of several clients together; ``owner`` [b] says whose each one is."""

    owner: NDArray[np.int64]
    x: torch.Tensor
    y: torch.Tensor | None
    noise: torch.Tensor

    def part(self, chosen: NDArray[np.int64]) -> _Drawn:
        at = torch.from_numpy(chosen)
        y = None if self.y is None else self.y[at]
        return _Drawn(self.owner[chosen], self.x[at], y, self.noise[at])


def _draw(group: Sequence[int], clients: Sequence[View], samples: Samples, model: Model) -> _Drawn:
    batches = [rows_of(clients[i], samples[i], model) for i in group]
    labels = [batch.y for batch in batches if batch.y is not None]
    noise = [
        latent_draws(clients[i].coins.generator(), len(samples[i]), model.spec.latent)
        for i in group
    ]
    return _Drawn(
        np.repeat(np.array(group), [len(samples[i]) for i in group]),
        torch.cat([batch.x for batch in batches]),
        torch.cat(labels) if labels else None,
        torch.cat(noise),
    )


def _gradient_rows(
    drawn: _Drawn,
    cuts: Iterator[slice],
    phi: NDArray[np.generic],
    request: Request,
    model: Model,
) -> Iterator[tuple[int, Rows]]:
    """Gradients in batches that clients share, cut up again by client."""
    frozen = request.settings["encoder"] == "frozen"
    flat_phi, flat_theta = tensor(phi), tensor(request.arrays["theta"])
    records = np.arange(len(drawn.owner))
    for cut in cuts:
        chunk = drawn.part(records[cut])
        gradients: list[tuple[int, Rows]] = []
        for part in range(model.parts):
            members = chunk
            if model.parts > 1 and chunk.y is not None:
                members = chunk.part(np.flatnonzero((chunk.y == part).numpy()))
            if not len(members.owner):
                continue
            factors = vae.record_gradients(
                model.spec,
                model.encoder_part(flat_phi, part),
                model.decoder_part(flat_theta, part),
                members.x,
                members.y if model.spec.classes else None,
                members.noise,
            )
            gradients += _by_owner(factors, members.owner, model, part, frozen)
        yield from sorted(gradients, key=itemgetter(0))


def _by_owner(
    factors: Sequence[tuple[torch.Tensor, torch.Tensor]],
    owner: NDArray[np.int64],
    model: Model,
    part: int,
    frozen: bool,
) -> Iterator[tuple[int, Rows]]:
    layers = [(left.numpy(), right.numpy()) for left, right in factors]
    starts, width = model.blocks(part, frozen)
    layers = layers[len(layers) - len(starts) :]
    for index in np.unique(owner):
        first, last = np.searchsorted(owner, [index, index + 1])
        block = [(left[first:last], right[first:last]) for left, right in layers]
        yield int(index), FactoredRows(block, starts, width)


GRADIENT = register(GradientTask())
