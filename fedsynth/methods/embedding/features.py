"""Public random features of a record, with norm at most 1 by construction.

Three blocks: second moments of few linear coordinates (a polynomial kernel of degree 2), random
Fourier features of all coordinates at several bandwidths (Rahimi, Recht 2007), and for images
random Fourier features of small patches averaged over all places. All draws come from constant
seeds: clients and server compute the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.methods.embedding.coding import Coding, ImageCoding, coding_of
from fedsynth.methods.embedding.settings import MeanEmbeddingSettings
from fedsynth.schema import ImageSchema, Schema

Floats = NDArray[np.float64]

# Seeds of the public draws.
_DIRECTIONS, _FOURIER, _PATCHES = 1, 2, 3
# Energy, as a share of the number of coordinates, at which half of a record's norm goes to its
# constant: keeps faint records from being blown up, and lets the norm tell their energy.
_FLOOR_IMAGE, _FLOOR_TABLE = 0.02, 0.03


@dataclass(frozen=True)
class Projection:
    """Few linear coordinates of a record.

    Attributes:
        matrix: [width, k], applied from the right.
        lift: [k, width], from few coordinates back to all, a right inverse: ``lift @ matrix`` is
            the identity.
    """

    matrix: Floats
    lift: Floats


@dataclass(frozen=True)
class Embedding:
    """The features of a schema under settings, all defaults filled in.

    A block a class holds second moments and random Fourier features (:attr:`own`); patches are of
    all classes together (:attr:`shared`).
    """

    schema: Schema | ImageSchema
    settings: MeanEmbeddingSettings

    @cached_property
    def coding(self) -> Coding:
        # Releases of before images were sheared do not say whether they are.
        return coding_of(self.schema, upright=bool(self.settings.upright))

    @cached_property
    def projection(self) -> Projection:
        components = self.settings.components
        assert components is not None
        if isinstance(self.coding, ImageCoding):
            lowest = _lowest(self.coding.shape, components, self.settings.tilt)
            return _beside(lowest, self.coding.width - self.coding.schema.pixels)
        return _directions(self.coding.width, components)

    @property
    def components(self) -> int:
        """Linear coordinates of a record, k."""
        return int(self.projection.matrix.shape[1])

    @property
    def floor(self) -> float:
        """See :meth:`vectors`."""
        share = _FLOOR_IMAGE if isinstance(self.coding, ImageCoding) else _FLOOR_TABLE
        return share * self.coding.width

    @property
    def moments(self) -> int:
        """Length of the second moments' block: the upper triangle of [k + 1, k + 1]."""
        size = self.components + 1
        return size * (size + 1) // 2

    @cached_property
    def frequencies(self) -> Floats:
        """Of the random Fourier features, [width, features / 2]."""
        bandwidths = self.settings.bandwidths
        assert bandwidths is not None
        pairs = max(1, self.settings.random_features // 2)
        rng = np.random.default_rng(_FOURIER)
        drawn = rng.standard_normal((self.coding.width, pairs))
        each = np.resize(np.array(bandwidths), pairs) * math.sqrt(self.coding.width)
        frequencies: Floats = drawn / each
        return frequencies

    @cached_property
    def filters(self) -> Floats:
        """Of the patches, [features / 2, channels, side, side]; none where there are no patches."""
        settings = self.settings
        if not settings.patch or not isinstance(self.coding, ImageCoding):
            return np.zeros((0, 1, 1, 1))
        channels, side = self.coding.shape[2], settings.patch
        rng = np.random.default_rng(_PATCHES)
        drawn = rng.standard_normal((max(1, settings.patch_features // 2), channels, side, side))
        filters: Floats = drawn / (settings.patch_bandwidth * side * math.sqrt(channels))
        return filters

    @property
    def own(self) -> int:
        """Length of a class's block."""
        return self.moments + 2 * int(self.frequencies.shape[1])

    @property
    def shared(self) -> int:
        """Length of the block of all classes together."""
        return 2 * len(self.filters)

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of a record's squared norm: second moments, random features, patches."""
        moments, patches = self.settings.moments_share, self.settings.patch_share
        return moments, 1 - moments - patches, patches

    def vectors(self, records: Tensor) -> Tensor:
        """Few coordinates and a constant, [n, k + 1], with norm at most 1.

        ``(sqrt(a), sqrt(1 - a) c / sqrt(|c|^2 + floor))`` with the constant's share ``a``.
        """
        matrix = torch.as_tensor(self.projection.matrix, dtype=records.dtype)
        projected = records @ matrix
        projected = projected * torch.rsqrt((projected**2).sum(dim=1, keepdim=True) + self.floor)
        share = self.settings.constant_share
        constant = torch.full((len(records), 1), math.sqrt(share), dtype=records.dtype)
        return torch.cat([constant, math.sqrt(1 - share) * projected], dim=1)

    def coordinates(self, vectors: Floats) -> Floats:
        """The few coordinates alone [n, k], with norm below 1, of :meth:`vectors` [n, k + 1]."""
        coordinates: Floats = vectors[:, 1:] / math.sqrt(1 - self.settings.constant_share)
        return coordinates

    def fourier(self, records: Tensor) -> Tensor:
        """Random Fourier features, [n, features], with norm 1."""
        phases = records @ torch.as_tensor(self.frequencies, dtype=records.dtype)
        return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(phases.shape[1])

    def patches(self, records: Tensor) -> Tensor:
        """Random Fourier features averaged over an image's patches, [n, shared], norm at most 1."""
        if not self.shared:
            return records[:, :0]
        assert isinstance(self.coding, ImageCoding)
        height, width, channels = self.coding.shape
        pixels = records[:, : self.coding.schema.pixels]
        images = pixels.reshape(-1, height, width, channels).permute(0, 3, 1, 2)
        filters = torch.as_tensor(self.filters, dtype=records.dtype)
        phases = functional.conv2d(images, filters, stride=2).flatten(2)
        features = torch.cat([phases.cos().mean(dim=2), phases.sin().mean(dim=2)], dim=1)
        return features / math.sqrt(len(filters))

    def rows(self, records: Floats) -> tuple[Floats, Floats]:
        """Records [n, width] as a class's block [n, own] and the shared one [n, shared]."""
        tensor = torch.from_numpy(np.ascontiguousarray(records, np.float64))
        moments, fourier, patches = (math.sqrt(share) for share in self.shares)
        with torch.no_grad():
            vectors = self.vectors(tensor).numpy()
            waves, local = self.fourier(tensor).numpy(), self.patches(tensor).numpy()
        features = np.concatenate([moments * flatten(vectors), fourier * waves], axis=1)
        return features, patches * local


def embedding_of(plain: Mapping[str, Any]) -> Embedding:
    """The embedding that a server announced: a schema and settings, as plain values."""
    content = plain["schema"]
    kind = ImageSchema if content["kind"] == ImageSchema.document_kind else Schema
    return Embedding(kind.from_dict(content), MeanEmbeddingSettings(**plain["settings"]))


def flatten(vectors: Floats) -> Floats:
    """Outer products of rows [n, m] with themselves as upper triangles [n, m (m + 1) / 2].

    Off the diagonal they are times sqrt(2), so that the norm is that of the whole matrix.
    """
    at, to = np.triu_indices(vectors.shape[1])
    scale = np.where(at == to, 1.0, math.sqrt(2))
    triangles: Floats = vectors[:, at] * vectors[:, to] * scale
    return triangles


def unflatten(triangles: Floats, size: int) -> Floats:
    """Symmetric matrices [c, size, size] from triangles [c, size (size + 1) / 2]."""
    at, to = np.triu_indices(size)
    scale = np.where(at == to, 1.0, math.sqrt(0.5))
    matrices = np.zeros((len(triangles), size, size))
    matrices[:, at, to] = triangles * scale
    matrices[:, to, at] = triangles * scale
    return matrices


def _lowest(shape: tuple[int, int, int], components: int, tilt: float) -> Projection:
    """The lowest frequencies of each channel's discrete cosine transform, higher ones raised."""
    height, width, channels = shape
    down, across = _cosines(height), _cosines(width)
    side = max(height, width)
    rows, columns = np.arange(height) * side / height, np.arange(width) * side / width
    radius = np.hypot(rows[:, None], columns[None, :])
    count = min(height * width, max(1, components // channels))
    chosen = np.argsort(radius.ravel(), kind="stable")[:count]
    waves = np.stack([np.outer(down[i // width], across[i % width]).ravel() for i in chosen])
    # [count, pixels] a channel, pixels of all channels interleaved.
    full = np.kron(waves, np.eye(channels))
    raised = np.repeat((1 + radius.ravel()[chosen]) ** tilt, channels)
    return Projection((full * raised[:, None]).T, full / raised[:, None])


def _beside(projection: Projection, others: int) -> Projection:
    """The projection, and coordinates behind the projected ones as they are, raised.

    The root of an image's pixels makes one of them weigh as much as if every pixel had it.
    """
    width, components = projection.matrix.shape
    raised = math.sqrt(width)
    matrix = np.zeros((width + others, components + others))
    matrix[:width, :components], matrix[width:, components:] = (
        projection.matrix,
        raised * np.eye(others),
    )
    lift = np.zeros((components + others, width + others))
    lift[:components, :width], lift[components:, width:] = projection.lift, np.eye(others) / raised
    return Projection(matrix, lift)


def _cosines(size: int) -> Floats:
    """The orthonormal DCT-II, [frequencies, places]."""
    waves = np.cos(np.pi * np.arange(size)[:, None] * (np.arange(size)[None, :] + 0.5) / size)
    waves[0] /= math.sqrt(2)
    basis: Floats = waves * math.sqrt(2 / size)
    return basis


def _directions(width: int, components: int) -> Projection:
    """All coordinates where they are few, else random orthonormal directions."""
    if width <= components:
        return Projection(np.eye(width), np.eye(width))
    rng = np.random.default_rng(_DIRECTIONS)
    basis, _ = np.linalg.qr(rng.standard_normal((width, components)))
    return Projection(basis, basis.T)
