"""Hybrid fusion's upper half: edge servers train in turn with a cloud that averages (FedAvg).

Paper 004, Algorithms 3 to 5. Edges learn from points that they have regenerated, so nothing here
sees a client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.methods.sampling.classifier import Classifier

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_BYTES = 8


@dataclass(frozen=True)
class Timing:
    """Where hybrid fusion's time goes (paper 004), and what its networks carry.

    Compute is measured on this machine, which does the work of all clients and edges one after
    another; latencies are the user's.

    Attributes:
        edge_cloud_latency, client_edge_latency: seconds a round, the paper's L1 and L2. The paper's
            prose swaps which is the short hop: client to edge is.
        federated_rounds: between edges and cloud: one for the standardisation, and the epochs.
        fusion_rounds: between clients and edges.
        fusion_seconds: of fitting, regenerating and labelling.
        federated_seconds: of the edges' training and the cloud's averaging.
        client_edge_calls, client_edge_bytes: of all clients, as the channel counted them.
        edge_cloud_calls, edge_cloud_bytes: of all edges, of the vectors that were exchanged.
    """

    edge_cloud_latency: float
    client_edge_latency: float
    federated_rounds: int
    fusion_rounds: int
    fusion_seconds: float
    federated_seconds: float
    client_edge_calls: int
    client_edge_bytes: int
    edge_cloud_calls: int
    edge_cloud_bytes: int

    @property
    def seconds(self) -> float:
        """L1 * federated rounds + L2 * fusion rounds + fusion time + federated time."""
        waiting = (
            self.edge_cloud_latency * self.federated_rounds
            + self.client_edge_latency * self.fusion_rounds
        )
        return waiting + self.fusion_seconds + self.federated_seconds


@dataclass(frozen=True)
class Exchange:
    """What passed between edges and cloud."""

    rounds: int = 0
    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def and_vectors(self, *vectors: Floats) -> Exchange:
        """After these, one call each."""
        size = sum(vector.size for vector in vectors) * _BYTES
        return Exchange(self.rounds, self.calls + len(vectors), self.bytes + size, self.seconds)


def deal(clients: Sequence[str], edges: int) -> dict[str, int]:
    """The edge of every client: clients in order, the first edges larger by one."""
    blocks = np.array_split(np.arange(len(clients)), edges)
    return {clients[k]: edge for edge, block in enumerate(blocks) for k in block}


def average(
    points: Sequence[tuple[Floats, Whole]],
    classes: int,
    epochs: int,
    seed: int,
    progress: Callable[[int], None],
) -> tuple[Classifier, Exchange]:
    """FedAvg of the edges' models, weighted by their points, after every epoch.

    Edges first send the sums that standardise inputs alike everywhere; then in every epoch the
    cloud sends the model, each edge passes over its points once, and the cloud averages.

    Args:
        points: of each edge: inputs [n, width], labels [n]; edges without points take no part.
        progress: called with the epochs done.
    """
    started = time.perf_counter()
    held = [(edge, x, y) for edge, (x, y) in enumerate(points) if len(y)]
    sums = [_sums(x) for _, x, _ in held]
    exchange = Exchange().and_vectors(*sums)
    model = Classifier.initial(*_pool(sums), classes, seed=seed)
    weights = np.array([len(y) for _, _, y in held], np.float64)
    for epoch in range(epochs):
        sent = model.to_vector()
        back = []
        for edge, x, y in held:
            epoch_seed = int(np.random.SeedSequence([seed, epoch, edge]).generate_state(1)[0])
            trained = Classifier.train(x, y, classes, seed=epoch_seed, epochs=1, start=model)
            back.append(trained.to_vector())
        exchange = exchange.and_vectors(*[sent] * len(held), *back)
        mean = np.average(back, axis=0, weights=weights)
        # All edges sent back the same standardisation: kept to the last bit.
        mean[: 2 * model.width] = sent[: 2 * model.width]
        model = Classifier.from_vector(mean, model.width, classes)
        progress(epoch + 1)
    exchange = exchange.and_vectors(*[model.to_vector()] * len(held))
    seconds = time.perf_counter() - started
    return model, Exchange(1 + epochs, exchange.calls, exchange.bytes, seconds)


def _sums(x: Floats) -> Floats:
    """Count, sums and sums of squares about the first row, and that row: [1 + 3 width]."""
    shift = x[0]
    moved = x - shift
    return np.concatenate([[len(x)], moved.sum(axis=0), (moved**2).sum(axis=0), shift])


def _pool(sums: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Mean and deviation of all edges' inputs together; 1 where constant."""
    width = (len(sums[0]) - 1) // 3
    counts = np.array([row[0] for row in sums])
    first, second, shift = (
        np.array([row[1 + k * width : 1 + (k + 1) * width] for row in sums]) for k in range(3)
    )
    own_mean = shift + first / counts[:, None]
    mean = counts @ own_mean / counts.sum()
    within = second - first**2 / counts[:, None]
    spread = (within + counts[:, None] * (own_mean - mean) ** 2).sum(axis=0) / counts.sum()
    deviation = np.sqrt(np.maximum(spread, 0))
    constant = deviation <= 1e-9 * np.maximum(np.abs(mean), 1e-30)
    return mean, np.where(constant, 1.0, deviation)
