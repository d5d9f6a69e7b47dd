"""FedVAE: variational autoencoders trained across clients that share decoders alone.

Paper 001, chapter 4 (Algorithms 4 to 7) at the client level; at the record level one global step a
round from clipped gradients of Poisson-sampled records. The server half: everything here sees
released values only, so all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fedsynth.methods.sampling.labels import draw_labels
from fedsynth.methods.training.rounds import RoundsSynthesizer
from fedsynth.methods.vae.learned import Learned
from fedsynth.methods.vae.server import Training, training_task
from fedsynth.methods.vae.settings import FedVAESettings
from fedsynth.privacy.budget import Budget
from fedsynth.queries.session import Session


class FedVAE(RoundsSynthesizer[Learned]):
    """Federated VAE for tables and images.

    Example:
        >>> synth = FedVAE(schema, rounds=100)                      # doctest: +SKIP
        >>> synth.fit(tables, Budget(epsilon=1.0)).sample(1000)      # doctest: +SKIP
    """

    name: ClassVar[str] = "fedvae"
    settings_type = FedVAESettings
    learned_type = Learned
    settings: FedVAESettings

    def check_draw(
        self, where: Mapping[str, Any] | None, proportions: Mapping[Any, float] | None
    ) -> None:
        """Raises ConfigError for conditions on anything but the target, too."""
        shares = np.full(self.classes, 1 / max(1, self.classes))
        draw_labels(self.schema, shares, 1, where, proportions, np.random.default_rng(0))

    def task(self, budget: Budget) -> str:
        return training_task(budget).name

    def train(self, session: Session) -> Learned:
        return Training(self.schema, session).run()
