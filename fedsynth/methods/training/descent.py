"""Weights and the rounds that they learn by: the server half, which sees released sums alone.

At the record level it descends along noisy sums of gradients, at the client level it moves by the
noisy mean of how far the clients' weights did, as the aggregation says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.request import Released
from fedsynth.methods.training.aggregation.aggregation import Aggregation
from fedsynth.methods.training.aggregation.fedavg import FedAvg
from fedsynth.methods.training.momentum import Momentum
from fedsynth.queries.session import Session

Floats = NDArray[np.float32]

_WARM_UP = 5


@dataclass
class Descent:
    """Weights under way: what checkpoints hold of them.

    Attributes:
        expected: units that a round has on average, from a public or a released number.
        optimiser: the weights that clients see.
        average: their moving average (record level).
        memory: what the aggregation remembers [vectors, n] (client level).
        round: done.
    """

    expected: float
    optimiser: Momentum
    average: Floats
    memory: Floats
    round: int = 0

    @staticmethod
    def start(weights: Floats, expected: float, aggregation: Aggregation) -> Descent:
        own = weights.astype(np.float32, copy=True)
        return Descent(expected, Momentum.start(weights), own, aggregation.start(len(weights)))


@dataclass(frozen=True)
class Pace:
    """How the server steps.

    Attributes:
        learning_rate: of the descent along clipped gradients divided by the clip; None to take it
            from signal and noise. Of the clients' own SGD at the client level.
        average: decay of the moving average.
        steady, fastest: a learning rate from signal and noise is `steady` times the first over the
            second, `fastest` at most.
        weight_decay: of every weight, or of each; record level.
        aggregation: how the weights move by the clients' mean; client level.
    """

    learning_rate: float | None
    average: float
    steady: float
    fastest: float
    weight_decay: float | Floats = 0.0
    aggregation: Aggregation = field(default_factory=FedAvg)


class Rounds:
    """The rounds of a plan's last release."""

    def __init__(self, session: Session, pace: Pace) -> None:
        self.session, self.pace = session, pace
        self.training = session.plan.releases[-1]
        self.terms = self.training.terms
        self.record = self.terms.protects.per_record

    def run(
        self, descent: Descent, state: Any, ask: Callable[[float], Released], *, kept: bool = False
    ) -> Floats:
        """Train to the end; the weights to release.

        Args:
            descent: where the training stands; changed in place.
            state: what a checkpoint holds, the descent in it.
            ask: from the learning rate to what a round with the weights as they are releases.
            kept: whether something of its answers stays at clients.
        """
        session, rounds = self.session, self.training.count
        while descent.round < rounds:
            # A round that an interrupted run lost stays charged, so a resumed one may end early.
            if not session.channel.affords(self.terms, kept=kept):
                break
            rate = self.learning_rate(descent)
            self._step(descent, ask(rate), rate)
            descent.round += 1
            session.progress("training", descent.round, rounds)
            if descent.round % session.options.checkpoint_every == 0 and descent.round < rounds:
                session.save(state)
        session.save(state)
        return descent.average if self.record else descent.optimiser.weights

    def unit(self, descent: Descent) -> float:
        """Largest norm of a noiseless gradient sum of the expected size: what a step is in."""
        return descent.expected * self.terms.clip

    def learning_rate(self, descent: Descent) -> float:
        """Client level: constant. Record level: a short warm-up, then down to zero in a line.

        By default it starts in proportion to the largest possible signal over the noise, both as
        norms, so that a step is never noise for the most part: all public, or released before.
        """
        full = self.pace.learning_rate
        if not self.record:
            return full or 0.0
        if full is None:
            noise = self.terms.summed_scale(self.session.channel.clients)
            noise *= len(descent.optimiser.weights) ** 0.5
            full = min(self.pace.fastest, self.pace.steady * self.unit(descent) / max(noise, 1e-9))
        done = descent.round
        return full * min(1.0, (done + 1) / _WARM_UP) * (1 - done / self.training.count)

    def _step(self, descent: Descent, released: Released, rate: float) -> None:
        optimiser = descent.optimiser
        if not self.record:
            moved = (released.value / descent.expected).astype(np.float32)
            self.pace.aggregation.step(optimiser.weights, moved, descent.memory)
            return
        gradient = (released.value / self.unit(descent)).astype(np.float32)
        gradient += np.float32(1 / self.terms.clip) * self.pace.weight_decay * optimiser.weights
        optimiser.step(gradient, rate)
        decay = min(self.pace.average, (descent.round + 1) / (descent.round + 10))
        descent.average += (1 - decay) * (optimiser.weights - descent.average)
