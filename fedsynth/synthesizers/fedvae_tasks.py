"""The client half of FedVAE: what a client computes from its own records.

Three tasks. Record level: ``vae-gradient``, the gradients of drawn records. Client level:
``vae-training``, one epoch of local training (paper 001, ClientTrain of Algorithms 4 to 7).
``vae-gradient`` covers the three ways to treat the encoder:

- shared: its gradient is released beside the decoder's.
- private: every client has its own. A record moves its client's encoder and the released decoder
  sum together, so both gradients are clipped as one row; the encoder's part stays at the client and
  carries the whole noise there, or the encoder would tell the next rounds what noise hides.
- frozen: a random public encoder that never learns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import PrivacyError
from fedsynth.federation.request import Request
from fedsynth.federation.site import Site
from fedsynth.federation.tasks import register
from fedsynth.models import stacked, vae
from fedsynth.models.spec import VAESpec
from fedsynth.privacy.clipping import DenseRows, FactoredRows, Rows, clip_parts
from fedsynth.synthesizers.counting import target_index
from fedsynth.synthesizers.momentum import Momentum
from fedsynth.synthesizers.owners import codes_of, pixels_of

Samples = Sequence[NDArray[np.int64]]

# Records whose gradients are computed at once: large enough for speed, and bounded in memory, for
# convolutions write a record's gradient out (in floats: 128 MB).
_CHUNK = 2048
_WRITTEN_OUT = 2**25


@dataclass(frozen=True)
class Model:
    """What the server announces of the model: its spec, and how classes are told apart.

    Attributes:
        spec: of one VAE.
        parts: number of VAEs side by side: the classes under the scheme ``sep``, else 1.
    """

    spec: VAESpec
    parts: int

    def encoder_part(self, phi: torch.Tensor, part: int) -> torch.Tensor:
        size = self.spec.encoder_dim
        return phi[part * size : (part + 1) * size]

    def decoder_part(self, theta: torch.Tensor, part: int) -> torch.Tensor:
        size = self.spec.decoder_dim
        return theta[part * size : (part + 1) * size]

    @property
    def chunk(self) -> int:
        """Records whose gradients fit in memory together."""
        if self.spec.kind == "mlp":
            return _CHUNK
        return max(1, _WRITTEN_OUT // (self.spec.encoder_dim + self.spec.decoder_dim))

    def blocks(self, part: int, frozen: bool) -> tuple[list[int], int]:
        """Where a part's layers lie in a row, and how long a row is.

        A row is the encoders of all parts, unless frozen, then their decoders.
        """
        encoders = 0 if frozen else self.parts * self.spec.encoder_dim
        starts = []
        if not frozen:
            sizes = [layer.size for layer in self.spec.encoder_layers]
            starts += _running(part * self.spec.encoder_dim, sizes)
        sizes = [layer.size for layer in self.spec.decoder_layers]
        starts += _running(encoders + part * self.spec.decoder_dim, sizes)
        return starts, encoders + self.parts * self.spec.decoder_dim

    def to_dict(self) -> dict[str, Any]:
        return {"spec": self.spec.to_dict(), "parts": self.parts}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Model:
        return Model(VAESpec.from_dict(plain["spec"]), int(plain["parts"]))


def _running(start: int, sizes: Sequence[int]) -> list[int]:
    return [start + sum(sizes[:i]) for i in range(len(sizes))]


@dataclass(frozen=True)
class Batch:
    """Records of one site as the model sees them: ``x`` [b, ...], ``y`` [b] or None."""

    x: torch.Tensor
    y: torch.Tensor | None


def _batch(site: Site, rows: NDArray[np.int64], model: Model) -> Batch:
    if model.spec.shape:
        labels = site.data.labels
        y = None if labels is None else torch.from_numpy(labels[rows])
        return Batch(torch.from_numpy(pixels_of(site, rows)), y)
    codes = codes_of(site)[rows]
    if not model.spec.classes and model.parts == 1:
        return Batch(torch.from_numpy(codes), None)
    target = site.board.read("encoding", _target_of)
    y = torch.from_numpy(codes[:, target].astype(np.int64))
    return Batch(torch.from_numpy(np.delete(codes, target, axis=1)), y)


def _target_of(encoding: dict[str, Any]) -> int:
    return target_index(TableEncoding.from_dict(encoding).schema)


def _generator(site: Site) -> torch.Generator:
    """Latent draws and batch order, from the site's secret coins.

    Latent draws go with places in a sample. Were they known, removing a record would shift every
    later one to another draw and move the sum without bound; being secret and alike, they can be
    thought of as going with the records, and each record moves its own row alone.
    """
    return torch.Generator().manual_seed(site.coins.seed())


def _tensor(array: NDArray[np.generic]) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


class GradientTask:
    """Gradients of drawn records, one row each.

    A row is [phi, theta] of all parts (``encoder`` shared or private) or theta alone (frozen); a
    record touches only the part of its class.
    """

    name = "vae-gradient"

    def contribute(
        self, sites: Sequence[Site], samples: Samples, request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.unit != "record":
            raise PrivacyError(f"{self.name} gives a row a record, not a {request.terms.unit}")
        private = request.settings["encoder"] == "private"
        for group in [[i] for i in range(len(sites))] if private else [list(range(len(sites)))]:
            phi = request.arrays["phi"]
            if private:
                phi = _private_encoder(sites[group[0]], request).weights
            drawn = _draw(group, sites, samples)
            yield from _gradient_rows(drawn, phi, request, sites[0])

    def keep(self, site: Site, values: NDArray[np.float64], request: Request) -> None:
        """One step of the private encoder, by the noisy mean gradient of this site's records."""
        optimiser = _private_encoder(site, request)
        gradient = values / _number(request, "expected")
        optimiser.step(gradient.astype(np.float32), _number(request, "learning_rate"))
        site.state.save(optimiser.to_vector())


def _private_encoder(site: Site, request: Request) -> Momentum:
    """A site's encoder and its velocity; the first time, the public initial weights."""
    vector = site.state.load()
    if vector is not None:
        return Momentum.from_vector(vector)
    return Momentum.start(np.asarray(request.arrays["phi"], np.float32))


def _number(request: Request, name: str) -> float:
    value = request.settings[name]
    if not isinstance(value, int | float):
        raise PrivacyError(f"the request's setting {name} is no number")
    return float(value)


@dataclass(frozen=True)
class _Drawn:
    """The drawn records of several sites together; ``owner`` [b] says whose each one is."""

    owner: NDArray[np.int64]
    x: torch.Tensor
    y: torch.Tensor | None
    noise: torch.Tensor

    def part(self, chosen: NDArray[np.int64]) -> _Drawn:
        at = torch.from_numpy(chosen)
        y = None if self.y is None else self.y[at]
        return _Drawn(self.owner[chosen], self.x[at], y, self.noise[at])


def _draw(group: Sequence[int], sites: Sequence[Site], samples: Samples) -> _Drawn:
    model = sites[0].board.read("model", Model.from_dict)
    batches = [_batch(sites[i], samples[i], model) for i in group]
    labels = [batch.y for batch in batches if batch.y is not None]
    noise = [
        torch.randn(len(samples[i]), model.spec.latent, generator=_generator(sites[i]))
        for i in group
    ]
    return _Drawn(
        np.repeat(np.array(group), [len(samples[i]) for i in group]),
        torch.cat([batch.x for batch in batches]),
        torch.cat(labels) if labels else None,
        torch.cat(noise),
    )


def _gradient_rows(
    drawn: _Drawn, phi: NDArray[np.generic], request: Request, site: Site
) -> Iterator[tuple[int, Rows]]:
    """Gradients in batches that sites share, cut up again by site."""
    model = site.board.read("model", Model.from_dict)
    frozen = request.settings["encoder"] == "frozen"
    flat_phi, flat_theta = _tensor(phi), _tensor(request.arrays["theta"])
    for part in range(model.parts):
        members = np.arange(len(drawn.owner))
        if model.parts > 1 and drawn.y is not None:
            members = np.flatnonzero((drawn.y == part).numpy())
        step = model.chunk
        for start in range(0, len(members), step):
            chunk = drawn.part(members[start : start + step])
            factors = vae.record_gradients(
                model.spec,
                model.encoder_part(flat_phi, part),
                model.decoder_part(flat_theta, part),
                chunk.x,
                chunk.y if model.spec.classes else None,
                chunk.noise,
            )
            yield from _by_owner(factors, chunk.owner, model, part, frozen)


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


class TrainingTask:
    """One epoch of local training; the row is how far the decoder moved (paper 001, ClientTrain).

    The encoder stays at the client, un-noised, from round to round: the whole client is the unit,
    and its clipped difference is all that leaves.
    """

    name = "vae-training"

    def contribute(
        self, sites: Sequence[Site], samples: Samples, request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.unit != "client":
            raise PrivacyError(f"{self.name} gives a row a client, not a {request.terms.unit}")
        model = sites[0].board.read("model", Model.from_dict)
        theta = _tensor(request.arrays["theta"])
        phi = _tensor(request.arrays["phi"])
        encoders = []
        for site in sites:
            own = site.state.load()
            encoders.append(phi if own is None else torch.from_numpy(own))
        phis = torch.stack(encoders)
        moved = torch.empty(len(sites), len(theta))
        for part in range(model.parts):
            E, D = model.spec.encoder_dim, model.spec.decoder_dim
            at, to = slice(part * E, (part + 1) * E), slice(part * D, (part + 1) * D)
            epoch = _epoch(sites, model, part)
            trained, thetas = stacked.train_stacked(
                model.spec,
                phis[:, at].contiguous(),
                theta[to],
                epoch.x,
                epoch.y if model.spec.classes else None,
                epoch.lengths,
                epoch.noise,
                batch_size=int(_number(request, "batch_size")),
                learning_rate=_number(request, "learning_rate"),
            )
            phis[:, at] = trained
            moved[:, to] = thetas - theta[to]
        rows = moved.numpy()
        if model.parts > 1:
            rows = clip_parts(rows, model.parts, request.terms.clip)
        for index, site in enumerate(sites):
            site.state.save(phis[index].numpy())
            yield index, DenseRows(rows[index : index + 1])

    def keep(self, site: Site, values: NDArray[np.float64], request: Request) -> None:
        raise AssertionError("a whole client is protected: its encoder needs no noise")


@dataclass(frozen=True)
class _Epoch:
    """The records of all sites, one site's behind another's, each site's in a fresh order."""

    x: torch.Tensor
    y: torch.Tensor | None
    lengths: torch.Tensor
    noise: torch.Tensor


def _epoch(sites: Sequence[Site], model: Model, part: int) -> _Epoch:
    xs, ys, lengths, noises = [], [], [], []
    for site in sites:
        batch = _batch(site, np.arange(site.records), model)
        chosen = torch.arange(site.records)
        if model.parts > 1 and batch.y is not None:
            chosen = torch.nonzero(batch.y == part)[:, 0]
        generator = _generator(site)
        chosen = chosen[torch.randperm(len(chosen), generator=generator)]
        xs.append(batch.x[chosen])
        if batch.y is not None:
            ys.append(batch.y[chosen])
        lengths.append(len(chosen))
        noises.append(torch.randn(len(chosen), model.spec.latent, generator=generator))
    y = torch.cat(ys) if ys else None
    return _Epoch(torch.cat(xs), y, torch.tensor(lengths), torch.cat(noises))


GRADIENT = register(GradientTask())
TRAINING = register(TrainingTask())
